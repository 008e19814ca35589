"""`stoker apply`: show the difference, ask, then make one pass at a committed revision."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit, is_wrong_use, print_findings
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

__all__ = ["apply"]


def apply(
    revision: Annotated[
        str, typer.Argument(help="Committed revision, or a file of `plan --out`; else HEAD.")
    ] = "HEAD",
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: FleetId = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Make the cluster what one revision says, once. Uncommitted files are never applied.

    A plan that no longer holds is refused, with what has moved (exit 3).
    """
    from stoker.cli.plan_file import moved, plan_file_of, read_plan_file
    from stoker.cli.print_diff import diff_text
    from stoker.cli.session import Session, Target, fleet_header, local_repo, only_fleet
    from stoker.cli.single import writing_alone
    from stoker.cli.status_view import branch_files
    from stoker.diff import summarise
    from stoker.loop.lease import LeaseTiming
    from stoker.model.fleet import FleetMode
    from stoker.reconcile import Reach, State, reconcile
    from stoker.report import previous_from_files

    planned = read_plan_file(Path(revision))
    if planned is not None:
        revision, fleet, fleet_id = planned.revision, planned.fleet_path, planned.fleet_id
    with Session(local_repo(path, revision), Target()) as session:
        at = session.repo.resolve(revision)
        fleet_path = only_fleet(session.repo, at, fleet)
        session.target = Target(
            kubeconfig, context, fleet_path, fleet_id, state_namespace, request_timeout, as_user
        )
        desired = session.desired(at)
        parts = session.parts(desired)
        files, _ = branch_files(path, desired.fleet.status_branch)
        history = parts.history.read_starts()
        state = State(history=history, previous=previous_from_files(files))
        shown = reconcile(parts, state, revision=at, reach=Reach.DIFF)
        if shown.failure is not None or shown.changes is None or shown.live is None:
            print_findings((shown.failure,) if shown.failure else ())
            wrong = shown.failure is not None and is_wrong_use(shown.failure.code)
            return Exit.USAGE if wrong else Exit.UNDECIDED
        last = summarise(shown.changes, shown.plan, shown.live, parts.identity.fleet_id)
        narrate(f"{fleet_header(desired, session.target)}  {at.short}")
        sys.stdout.write(diff_text(shown.changes, desired, Style()))
        sys.stdout.write(f"{last}\n")
        if planned is not None:
            assert shown.plan is not None
            now = plan_file_of(
                shown.changes,
                shown.plan,
                fleet=desired.fleet.name,
                fleet_path=fleet_path,
                fleet_id=parts.identity.fleet_id,
                revision=at.commit,
            )
            if stale := moved(planned, now):
                narrate("\n".join(["the plan no longer holds [plan-stale]; moved:", *stale]))
                return Exit.UNDECIDED
        if not last.differs:
            return Exit.OK
        if desired.fleet.mode is FleetMode.OBSERVE:
            narrate(
                "the fleet is in mode Observe: nothing is written; commit `mode: Correct` first"
            )
            return Exit.OK
        if shown.pending is not None:
            narrate(f"nothing is written: {shown.pending.message}")
            return Exit.UNDECIDED
        if not yes and not typer.confirm("Apply this?", err=True):
            narrate("nothing was written")
            return Exit.OK
        with writing_alone(session, parts.identity.fleet_id, LeaseTiming(), narrate):
            done = reconcile(parts, state, revision=at)
        if done.failure is not None or done.outcome is None:
            print_findings((done.failure,) if done.failure else ())
            return Exit.UNDECIDED
        failed = [
            f"{item.ref}: {item.message} [{item.code}]"
            for unit in done.outcome.units
            for item in unit.objects
            if item.result in {"failed", "unknown", "waiting"}
        ]
        for line in failed:
            narrate(line)
        if failed:
            narrate(f"{at.short} is not applied whole; `stoker status` shows what is missing")
            return Exit.UNDECIDED
        narrate(f"applied {at.short}; `stoker status` shows how it goes")
        return Exit.OK
