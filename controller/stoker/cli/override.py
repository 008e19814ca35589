"""`stoker override`: another count of replicas, or a node asked for, for a time, outside Git."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import As, Context, Kubeconfig, Namespace, RequestTimeout

if TYPE_CHECKING:
    from stoker.cli.mirror_asks import Asked
    from stoker.model.ports import Cluster

__all__ = ["override"]


def override(
    name: Annotated[str, typer.Argument(help="A ModelService (NAME or NAMESPACE/NAME).")],
    *,
    replicas: Annotated[
        int | None, typer.Option("--replicas", min=0, help="The count meanwhile.")
    ] = None,
    when_full: Annotated[
        str,
        typer.Option(
            "--when-full",
            help="Unpinned: ask for a node where it fits nowhere; Hold: do not.",
        ),
    ] = "",
    duration: Annotated[str, typer.Option("--for", help="Lapses after that time (2h).")] = "",
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever finds it so.")] = "",
    below_floor: Annotated[
        bool,
        typer.Option("--below-floor", help="Also below the floor of Git's count (minReady)."),
    ] = False,
    clear: Annotated[
        bool, typer.Option("--clear", help="End it now: what Git says again.")
    ] = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Set the count of a service, or what it does where it fits nowhere, for a while; status,
    explain and plan show it, and it lapses.
    """
    from stoker.cli import mirror_asks
    from stoker.cli.session import usage
    from stoker.clock import SystemClock
    from stoker.model.limits import WhenFull
    from stoker.model.times import rfc3339
    from stoker.objects.wishes import OVERRIDE, WHEN_FULL, text_of_override, text_of_when_full

    if when_full not in {"", *WhenFull}:
        raise usage(f"no --when-full {when_full!r}", f"one of {', '.join(WhenFull)}")
    if clear == (replicas is not None or bool(when_full)):
        raise usage(
            "either --replicas N or --when-full Unpinned, or --clear",
            "for instance --replicas 3 --for 2h",
        )
    lasting_ms = 0
    if not clear:
        if not duration:
            raise usage("--for is required: an override lapses", "for instance --for 2h")
        lasting_ms = mirror_asks.milliseconds("--for", duration)
        mirror_asks.check_reason(reason)
    now_ms = SystemClock().now_ms()
    until_ms = now_ms + lasting_ms
    login = mirror_asks.Login(kubeconfig, context, as_user, request_timeout)
    cluster = mirror_asks.logged_in(login)
    try:
        asked = mirror_asks.find_mirror(cluster, name, namespace, fleets=False)
        mirror_asks.narrate_place(login, cluster, asked)
        if clear:
            was = "cleared" if _clear(cluster, asked) else "there was no override of"
            sys.stdout.write(f"{was} {asked.ref}\n")
            return Exit.OK
        values: dict[str, str | None] = {}
        wants = []
        if replicas is not None:
            mirror_asks.check_override(asked, replicas, below_floor=below_floor)
            values[OVERRIDE] = text_of_override(replicas, reason, now_ms, until_ms)
            wants.append(str(replicas))
        if when_full:
            mirror_asks.check_when_full(asked)
            values[WHEN_FULL] = text_of_when_full(WhenFull(when_full), reason, now_ms, until_ms)
            wants.append(f"whenFull {when_full}")
        mirror_asks.annotate_all(cluster, asked, values)
    finally:
        cluster.close()
    told = " and ".join(wants)
    sys.stdout.write(f"{asked.ref} wants {told} until {rfc3339(until_ms)}, then what Git says\n")
    return Exit.OK


def _clear(cluster: Cluster, asked: Asked) -> bool:
    """Take off what is asked; False where nothing was."""
    from stoker.cli.mirror_asks import annotate_all
    from stoker.objects.wishes import OVERRIDE, WHEN_FULL

    ended = {key: None for key in (OVERRIDE, WHEN_FULL) if key in asked.annotations}
    if ended:
        annotate_all(cluster, asked, ended)
    return bool(ended)
