"""`stoker explain`: why a service is where it is, or what a reason code means."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import Context, FleetPath, Kubeconfig, RequestTimeout, StateNamespace
from stoker.cli.style import narrate

__all__ = ["explain"]


def explain(
    name: Annotated[str, typer.Argument(help="A ModelService (name or namespace/name) or code.")],
    *,
    path: Annotated[Path, typer.Option("--path", "-f", help="Folder of the repository.")] = Path(),
    fleet: FleetPath = "",
    head: Annotated[str, typer.Option("--head", help="Committed revision.")] = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: Annotated[str, typer.Option("--fleet-id", help="Id of an installed fleet.")] = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Say where the count comes from, what each node offers, and what would change the answer."""
    from stoker.cli.compare import Query, compare
    from stoker.cli.reasons import reason_of
    from stoker.cli.session import Target, usage
    from stoker.decide import explain as lines_of
    from stoker.reconcile import Reach
    from stoker.report import decision_digest

    if (text := reason_of(name)) is not None:
        sys.stdout.write(f"{name}: {text}\n")
        return Exit.OK
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout)
    for found in compare(Query(path, target, head=head, reach=Reach.PLAN)):
        narrate(found.header)
        wanted = [u.ref for u in found.desired.units if name in {u.ref.name, u.ref.short}]
        if not wanted:
            names = ", ".join(u.ref.name for u in found.desired.units)
            raise usage(f"no unit and no reason code {name!r}", f"units: {names}")
        record = decision_digest(found.plan)[:7]
        for ref in wanted:
            for line in lines_of(found.desired, found.plan, ref, record=record):
                sys.stdout.write(f"{line}\n")
    return Exit.OK
