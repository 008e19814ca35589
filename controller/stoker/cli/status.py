"""`stoker status`: how the fleet is, from the cluster if it can be asked, else from Git."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import Context, FleetPath, Kubeconfig, NoColor, StateNamespace
from stoker.cli.style import Style, narrate

__all__ = ["status"]


def status(
    *,
    path: Annotated[Path, typer.Option("--path", "-f", help="Folder of the repository.")] = Path(),
    fleet: FleetPath = "",
    git: Annotated[bool, typer.Option("--git", help="Read the status branch only.")] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Every service, the healthy too.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 unless the fleet is Ready.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: Annotated[str, typer.Option("--fleet-id", help="Id of an installed fleet.")] = "",
    request_timeout: Annotated[
        float, typer.Option("--request-timeout", help="Seconds that one API request may take.")
    ] = 10.0,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
    no_color: NoColor = False,
) -> int:
    """Show sync, health and what needs attention, worst first."""
    from stoker.cli.session import Target, usage
    from stoker.cli.status_view import find_view, is_ready
    from stoker.report import render_status

    if output not in {"text", "json"}:
        raise usage(f"no output {output!r}", "text or json")
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout)
    view = find_view(path, target, git_only=git, show_all=show_all)
    narrate(f"source: {view.origin}")
    if output == "json":
        sys.stdout.write(json.dumps(dict(view.documents), indent=2, default=dict) + "\n")
    else:
        sys.stdout.write(render_status(view, Style(no_color=no_color).paint))
    return Exit.DIFFERENCES if check and not is_ready(view) else Exit.OK
