"""`stoker resume`: end a live suspension."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import As, Context, Kubeconfig, Namespace, RequestTimeout
from stoker.cli.style import narrate

__all__ = ["resume"]


def resume(
    name: Annotated[
        str, typer.Argument(help="A ModelService (NAME or NAMESPACE/NAME), or fleet/NAME.")
    ],
    *,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Take back what `stoker suspend` asked for. A suspension in Git ends with a commit."""
    from stoker.cli import mirror_asks
    from stoker.objects.wishes import SUSPEND

    login = mirror_asks.Login(kubeconfig, context, as_user, request_timeout)
    cluster = mirror_asks.logged_in(login)
    try:
        asked = mirror_asks.find_mirror(cluster, name, namespace, fleets=True)
        mirror_asks.narrate_place(login, cluster, asked)
        was = SUSPEND in asked.annotations
        if was:
            mirror_asks.annotate(cluster, asked, SUSPEND, None)
    finally:
        cluster.close()
    sys.stdout.write(f"{'resumed' if was else 'was not suspended by hand:'} {asked.ref}\n")
    if not was and mirror_asks.is_suspended(asked):
        narrate("it is suspended in Git, or with its fleet; `stoker status` says by whom")
    return Exit.OK
