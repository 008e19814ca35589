"""Options that several commands share, spelled as kubectl and Flux spell theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AllFleets",
    "Context",
    "FleetPath",
    "Kubeconfig",
    "Namespace",
    "NoColor",
    "Output",
    "Ref",
    "RepoUrl",
    "RequestTimeout",
    "Root",
    "StateNamespace",
]

Root = Annotated[
    Path, typer.Option("--path", "-f", help="Folder of the fleet repository.", show_default=False)
]
FleetPath = Annotated[
    str,
    typer.Option(
        "--fleet", help="Fleet file, from the repository root; found by itself if there is one."
    ),
]
AllFleets = Annotated[
    bool,
    typer.Option("--all-fleets", help="Every Fleet file of the repository, one after another."),
]
RepoUrl = Annotated[
    str, typer.Option("--repo", help="URL of the fleet repository (https, ssh, or a path).")
]
Ref = Annotated[str, typer.Option("--ref", help="Branch, tag or commit to follow.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Kubeconfig file (else KUBECONFIG, in-cluster, ~/.kube)."),
]
Context = Annotated[str, typer.Option("--context", help="Context of the kubeconfig.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Only units of this namespace.")]
StateNamespace = Annotated[
    str, typer.Option("--state-namespace", help="Namespace that holds inventory and lease.")
]
RequestTimeout = Annotated[
    float, typer.Option("--request-timeout", help="Seconds that one API request may take.")
]
Output = Annotated[str, typer.Option("--output", "-o", help="text, unified or json.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours (NO_COLOR does the same).")]
