"""`stoker status`: how the fleet is, from the cluster if it can be asked, else from Git."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import (
    AllNamespaces,
    As,
    Context,
    FleetId,
    FleetPath,
    Kubeconfig,
    Namespace,
    NoColor,
    RequestTimeout,
    Root,
    StateNamespace,
)
from stoker.cli.style import Style, narrate

__all__ = ["status"]


def status(
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    selector: Annotated[
        str,
        typer.Option("--selector", "-l", help="Only units with an object of these labels."),
    ] = "",
    git: Annotated[
        bool, typer.Option("--git", help="Read the status branch of this clone, ask no cluster.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Every service and bundle, the healthy too.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 unless the fleet is Ready.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: FleetId = "",
    request_timeout: RequestTimeout = 10.0,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
    no_color: NoColor = False,
) -> int:
    """Show sync, health and what needs attention, worst first."""
    from stoker.cli.connect import context_name
    from stoker.cli.session import Target, usage
    from stoker.cli.status_view import find_view, is_ready, only_namespace
    from stoker.objects.selectors import parse_selector
    from stoker.report import render_status

    if output not in {"text", "json"}:
        raise usage(f"no output {output!r}", "text or json")
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    try:
        chosen = parse_selector(selector) if selector else None
    except ValueError as error:
        raise usage(str(error)) from error
    view = find_view(path, target, git_only=git, show_all=show_all, selector=chosen)
    shown = only_namespace(view, "" if all_namespaces else namespace)
    if view.origin == "cluster":
        uid = str(view.documents.get("status.yaml", {}).get("clusterUID", ""))
        narrate(f"context {context_name(kubeconfig, context)}, cluster {uid[:8]}…")
    if output == "json":
        narrate(f"source: {view.origin}")
        for name in view.unread:
            narrate(f"{name} cannot be read; what it says is unknown")
        sys.stdout.write(json.dumps(dict(shown.documents), indent=2, default=dict) + "\n")
    else:
        sys.stdout.write(render_status(shown, Style(no_color=no_color).paint))
    return Exit.DIFFERENCES if check and not is_ready(view) else Exit.OK
