"""`stoker reconcile`: ask the running controller for a pass now, and wait for it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import As, Context, Kubeconfig, RequestTimeout
from stoker.cli.style import narrate

__all__ = ["reconcile"]

LOOK_EVERY_SECONDS = 0.5


def reconcile(
    *,
    fleet: Annotated[
        str, typer.Option("--fleet", help="Name or Fleet file; needed where there are several.")
    ] = "",
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long to wait for the pass.")
    ] = "1m",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Poll Git and look at everything now; what failed is tried again at once."""
    from stoker.cli import mirror_asks
    from stoker.clock import SystemClock
    from stoker.objects.health_fields import mapping, text
    from stoker.objects.wishes import RECONCILE

    clock = SystemClock()
    limit = mirror_asks.milliseconds("--timeout", timeout) / 1000
    login = mirror_asks.Login(kubeconfig, context, as_user, request_timeout)
    cluster = mirror_asks.logged_in(login)
    try:
        asked = mirror_asks.find_fleet(cluster, fleet)
        mirror_asks.narrate_place(login, cluster, asked)
        token = mirror_asks.request_token(clock.now_ms())
        mirror_asks.annotate(cluster, asked, RECONCILE, token)
        ends_at = clock.monotonic() + limit
        while clock.monotonic() < ends_at:
            status = mapping(cluster.get(asked.ref), "status")
            if text(status, "lastHandledReconcileAt") == token:
                sync, health = (
                    text(mapping(status, part), "status") for part in ("sync", "health")
                )
                sys.stdout.write(
                    f"fleet {asked.fleet}   {sync} {text(status, 'revision')}   {health}\n"
                )
                return Exit.OK
            clock.wait(LOOK_EVERY_SECONDS)
    finally:
        cluster.close()
    narrate(f"no pass within {timeout}; the request stands. Does the controller run?")
    return Exit.UNDECIDED
