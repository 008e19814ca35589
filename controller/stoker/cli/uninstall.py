"""`stoker uninstall`: leave a cluster. Workloads stay as they are, and nobody manages them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import (
    As,
    Context,
    FleetId,
    FleetPath,
    Kubeconfig,
    RequestTimeout,
    Root,
    StateNamespace,
)
from stoker.cli.style import narrate

__all__ = ["uninstall"]


def uninstall(
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be given up, write nothing.")
    ] = False,
    definitions: Annotated[
        bool,
        typer.Option("--definitions", help="Also delete the CRDs, if no other fleet uses them."),
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: FleetId = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Keep every object, give up its fields and marks, remove the fleet's own state."""
    from stoker.cli.connect import context_name
    from stoker.cli.fleet_here import fleet_here
    from stoker.cli.leave import Leave
    from stoker.cli.session import Target
    from stoker.clock import SystemClock

    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    with fleet_here(path, target) as here:
        uid = here.cluster.server().cluster_uid
        place = context_name(kubeconfig, context)
        narrate(f"fleet {here.name or here.fleet_id} (context {place}, cluster {uid[:8]}…)")
        leave = Leave(here.cluster, SystemClock(), here.fleet_id, state_namespace)
        found = leave.look(definitions=definitions)
        sys.stdout.write(found.text(verbose=dry_run))
        if dry_run:
            return Exit.OK
        leave.refuse_running(narrate)
        if not yes and not typer.confirm("Leave this cluster?", err=True):
            narrate("nothing was written")
            return Exit.OK
        left = leave.go(found)
        for line in left.problems:
            narrate(line)
        sys.stdout.write(f"{left}\n")
        if left.problems:
            narrate("run it again: what is done stays done")
            return Exit.UNDECIDED
        narrate(
            f"next: kubectl -n {state_namespace} delete deployment,serviceaccount,role,rolebinding "
            f"-l app.kubernetes.io/instance=stoker-{here.fleet_id}"
        )
    return Exit.OK
