"""`stoker suspend`: leave a service or a whole fleet alone for now, outside Git."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import As, Context, Kubeconfig, Namespace, RequestTimeout

__all__ = ["suspend"]


def suspend(
    name: Annotated[
        str, typer.Argument(help="A ModelService (NAME or NAMESPACE/NAME), or fleet/NAME.")
    ],
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever finds it so.")],
    duration: Annotated[
        str, typer.Option("--for", help="Lapses after that time (2h); else until resume.")
    ] = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Write, prune, move and scale nothing of it until it is resumed; what runs stays."""
    from stoker.cli import mirror_asks
    from stoker.clock import SystemClock
    from stoker.model.times import rfc3339
    from stoker.objects.wishes import SUSPEND, text_of_suspension

    login = mirror_asks.Login(kubeconfig, context, as_user, request_timeout)
    lasting_ms = mirror_asks.milliseconds("--for", duration) if duration else None
    mirror_asks.check_reason(reason)
    now_ms = SystemClock().now_ms()
    until_ms = now_ms + lasting_ms if lasting_ms is not None else None
    cluster = mirror_asks.logged_in(login)
    try:
        asked = mirror_asks.find_mirror(cluster, name, namespace, fleets=True)
        mirror_asks.narrate_place(login, cluster, asked)
        value = text_of_suspension(reason, now_ms, until_ms)
        mirror_asks.annotate(cluster, asked, SUSPEND, value)
    finally:
        cluster.close()
    until = rfc3339(until_ms) if until_ms is not None else f"`stoker resume {name}`"
    sys.stdout.write(f"suspended {asked.ref} until {until}\n")
    return Exit.OK
