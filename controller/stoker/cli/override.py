"""`stoker override`: another count of replicas for a time, outside Git."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import As, Context, Kubeconfig, Namespace, RequestTimeout

__all__ = ["override"]


def override(
    name: Annotated[str, typer.Argument(help="A ModelService (NAME or NAMESPACE/NAME).")],
    *,
    replicas: Annotated[
        int | None, typer.Option("--replicas", min=0, help="The count meanwhile.")
    ] = None,
    duration: Annotated[str, typer.Option("--for", help="Lapses after that time (2h).")] = "",
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever finds it so.")] = "",
    below_floor: Annotated[
        bool,
        typer.Option("--below-floor", help="Also below the floor of Git's count (minReady)."),
    ] = False,
    clear: Annotated[bool, typer.Option("--clear", help="End it now: Git's count again.")] = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Set the count of a service for a while; status, explain and plan show it, and it lapses."""
    from stoker.cli import mirror_asks
    from stoker.cli.session import usage
    from stoker.clock import SystemClock
    from stoker.model.times import rfc3339
    from stoker.objects.wishes import OVERRIDE, text_of_override

    if clear == (replicas is not None):
        raise usage("either --replicas N or --clear", "for instance --replicas 3 --for 2h")
    lasting_ms = 0
    if not clear:
        if not duration:
            raise usage("--for is required: an override lapses", "for instance --for 2h")
        lasting_ms = mirror_asks.milliseconds("--for", duration)
        mirror_asks.check_reason(reason)
    now_ms = SystemClock().now_ms()
    login = mirror_asks.Login(kubeconfig, context, as_user, request_timeout)
    cluster = mirror_asks.logged_in(login)
    try:
        asked = mirror_asks.find_mirror(cluster, name, namespace, fleets=False)
        mirror_asks.narrate_place(login, cluster, asked)
        if replicas is None:
            was = OVERRIDE in asked.annotations
            if was:
                mirror_asks.annotate(cluster, asked, OVERRIDE, None)
            sys.stdout.write(f"{'cleared' if was else 'there was no override of'} {asked.ref}\n")
            return Exit.OK
        mirror_asks.check_override(asked, replicas, below_floor=below_floor)
        value = text_of_override(replicas, reason, now_ms, now_ms + lasting_ms)
        mirror_asks.annotate(cluster, asked, OVERRIDE, value)
    finally:
        cluster.close()
    until = rfc3339(now_ms + lasting_ms)
    sys.stdout.write(f"{asked.ref} wants {replicas} until {until}, then what Git says\n")
    return Exit.OK
