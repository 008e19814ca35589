"""`stoker uninstall`: leave a cluster. Workloads stay as they are, and nobody manages them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from stoker.cli.style import Style, narrate

if TYPE_CHECKING:
    from stoker.cli.leave import Found
    from stoker.cli.leave_delete import Emptying

__all__ = ["uninstall"]


def uninstall(
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be given up, write nothing.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep everything, whatever spec.deletionPolicy says.")
    ] = False,
    delete: Annotated[
        str,
        typer.Option(
            "--delete",
            metavar="FLEET",
            help="With --yes and a Fleet that says deletionPolicy Delete: its name, once more.",
        ),
    ] = "",
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
    """Keep every object, give up its fields and marks, remove the fleet's own state.

    A Fleet whose committed file says `deletionPolicy: Delete` is asked about by name; then
    what is provably its own is drained and deleted, and the rest is kept.
    """
    from stoker.cli.connect import context_name
    from stoker.cli.fleet_here import fleet_here
    from stoker.cli.leave import Leave
    from stoker.cli.leave_delete import Emptying, fleet_that_deletes
    from stoker.cli.session import Target
    from stoker.clock import SystemClock

    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    with fleet_here(path, target) as here:
        clock = SystemClock()
        uid = here.cluster.server().cluster_uid
        place = context_name(kubeconfig, context)
        narrate(f"fleet {here.name or here.fleet_id} (context {place}, cluster {uid[:8]}…)")
        leave = Leave(here.cluster, clock, here.fleet_id, state_namespace)
        found = leave.look(definitions=definitions)
        desired = None if keep else fleet_that_deletes(path, target, uid)
        emptying = None
        if desired is not None and found.held:
            emptying = Emptying(here.cluster, clock, desired, here.fleet_id, state_namespace)
            found = _shown(emptying, found)
        sys.stdout.write(found.text(verbose=dry_run))
        if dry_run:
            return Exit.OK
        name = emptying.desired.fleet.name if emptying is not None else ""
        if not _agreed(name, yes=yes, delete=delete, before=partial(leave.refuse_running, narrate)):
            narrate("nothing was written")
            return Exit.OK
        deleted = 0
        if emptying is not None:
            held = len(leave.look().held)
            problems = emptying.go(narrate, leave.checkpoint)
            if problems:
                return _unfinished(problems)
            found = leave.look(definitions=definitions)
            deleted = held - len(found.held)
        left = leave.go(found, deleted)
        if left.problems:
            sys.stdout.write(f"{left}\n")
            return _unfinished(left.problems)
        sys.stdout.write(f"{left}\n")
        narrate(
            f"next: kubectl -n {state_namespace} delete deployment,serviceaccount,role,rolebinding "
            f"-l app.kubernetes.io/instance=stoker-{here.fleet_id}"
        )
    return Exit.OK


def _shown(emptying: Emptying, found: Found) -> Found:
    """Print what is going to be deleted, and why the rest is not; what stays comes back."""
    from stoker.cli.print_diff import diff_text

    changes, going = emptying.look()
    sys.stdout.write(diff_text(changes, emptying.desired, Style()))
    sys.stdout.write(f"deletionPolicy Delete: {len(going)} objects go\n")
    gone = set(going)
    return replace(found, held=tuple(item for item in found.held if item.ref not in gone))


def _agreed(name: str, *, yes: bool, delete: str, before: Callable[[], None]) -> bool:
    """Whether a person wants this: what deletes is confirmed by the fleet's name.

    `before` is what must hold before anybody is asked. Raises BadInput for --yes without it.
    """
    from stoker.cli.session import usage

    if delete != name if yes and name else delete and delete != name:
        message = f"--delete {delete}: " if delete else ""
        if not name:
            raise usage(f"{message}no Fleet here says deletionPolicy Delete in a commit")
        raise usage(
            f"{message}the workloads of fleet {name} would be deleted, and --yes alone is not enough",
            f"--delete {name}, or --keep",
        )
    before()
    if yes:
        return True
    if not name:
        return bool(typer.confirm("Leave this cluster?", err=True))
    question = "Delete all this, and leave? Type the fleet's name"
    return delete == name or typer.prompt(question, default="", err=True) == name


def _unfinished(problems: tuple[str, ...]) -> int:
    for line in problems:
        narrate(line)
    narrate("run it again: what is done stays done")
    return Exit.UNDECIDED
