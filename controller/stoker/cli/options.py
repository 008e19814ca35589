"""Options that several commands share, spelled as kubectl and Flux spell theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AllFleets",
    "AllNamespaces",
    "As",
    "Context",
    "FleetId",
    "FleetPath",
    "Kubeconfig",
    "Namespace",
    "NoColor",
    "Output",
    "Ref",
    "RepoUrl",
    "RequestTimeout",
    "Root",
    "Selected",
    "StateNamespace",
]

Root = Annotated[
    Path,
    typer.Option(
        "--path", "-f", help="Folder of the fleet repository (else this one).", show_default=False
    ),
]
FleetPath = Annotated[
    str,
    typer.Option(
        "--fleet", help="Fleet file, from the repository root; needed where there are several."
    ),
]
AllFleets = Annotated[
    bool,
    typer.Option("--all-fleets", help="Every Fleet file of the repository, one after another."),
]
RepoUrl = Annotated[
    str, typer.Option("--repo", help="URL of the fleet repository: https, ssh or git@host:path.")
]
Ref = Annotated[str, typer.Option("--ref", help="Branch, tag or commit to follow.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Kubeconfig (else KUBECONFIG, in-cluster, ~/.kube/config)."),
]
Context = Annotated[
    str, typer.Option("--context", help="Context of the kubeconfig (else its current one).")
]
As = Annotated[str, typer.Option("--as", help="User to act as, as kubectl's --as.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Only units of this namespace.")]
AllNamespaces = Annotated[
    bool,
    typer.Option(
        "--all-namespaces", "-A", help="Units of every namespace, whatever -n says; the default."
    ),
]
Selected = Annotated[
    str,
    typer.Option("--selector", "-l", help="Only objects with these labels, as kubectl's -l."),
]
StateNamespace = Annotated[
    str, typer.Option("--state-namespace", help="Namespace that holds inventory and lease.")
]
FleetId = Annotated[
    str,
    typer.Option("--fleet-id", help="Id fixed at the install (else from cluster and fleet name)."),
]
RequestTimeout = Annotated[
    float, typer.Option("--request-timeout", help="Seconds that one API request may take.")
]
Output = Annotated[
    str,
    typer.Option(
        "--output", "-o", help="text, unified, names, markdown or json (stoker schema Diff)."
    ),
]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours (NO_COLOR does the same).")]
LogFormat = Annotated[str, typer.Option("--log-format", help="text or json.")]
LogLevel = Annotated[str, typer.Option("--log-level", help="debug, info, warning, error.")]
