"""`stoker wait`: until a unit or the fleet is Synced, Ready or Healthy, within bounded time."""

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
    Namespace,
    RequestTimeout,
    Root,
    StateNamespace,
)
from stoker.cli.style import narrate

__all__ = ["wait"]

LOOK_EVERY_SECONDS = 1.0
TELL_EVERY_SECONDS = 30.0
"""How far a start is, is told again at least so often, though nothing but its time changed."""


def wait(
    name: Annotated[
        str,
        typer.Argument(help="A unit (NAME, NAMESPACE/NAME, KIND/NAMESPACE/NAME) or fleet/NAME."),
    ],
    *,
    goal: Annotated[
        str,
        typer.Option("--for", help="Synced, Synced=HEAD (or another revision), Ready, Healthy."),
    ] = "Ready",
    timeout: Annotated[str, typer.Option("--timeout", help="How long at most.")] = "10m",
    path: Root = Path(),
    fleet: FleetPath = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: FleetId = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Exit 0 when it is so, 1 when the time is over first, 3 when a person must act."""
    from stoker.cli import mirror_asks
    from stoker.cli.session import Target
    from stoker.cli.waiting import goal_of, subject_of
    from stoker.clock import SystemClock

    wanted = goal_of(goal)
    limit = mirror_asks.milliseconds("--timeout", timeout) / 1000
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    clock = SystemClock()
    cluster = mirror_asks.logged_in(
        mirror_asks.Login(kubeconfig, context, as_user, request_timeout)
    )
    told, told_at = ("", ""), 0.0
    try:
        subject = subject_of(cluster, path, target, name, namespace, wanted, clock)
        narrate(subject.header)
        started = clock.monotonic()
        while True:
            seen = subject.look()
            if seen.reached:
                sys.stdout.write(f"{subject.name} {seen.text}\n")
                return Exit.OK
            if seen.stalled:
                narrate(f"{subject.name} {seen.stalled}")
                return Exit.UNDECIDED
            waited = clock.monotonic() - started
            news = (seen.progress.words, seen.text)
            if news != told or (seen.progress.words and waited >= told_at + TELL_EVERY_SECONDS):
                told, told_at = news, waited
                words = ", ".join(word for word in (seen.progress.text, seen.text) if word)
                narrate(f"{round(waited)}s  {words}")
            if waited >= limit:
                narrate(f"not {goal} within {timeout}")
                return Exit.DIFFERENCES
            clock.wait(min(LOOK_EVERY_SECONDS, max(0.05, limit - waited)))
    finally:
        cluster.close()
