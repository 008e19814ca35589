"""`stoker explain`: why a unit is as it is, or what a reason code means."""

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

__all__ = ["explain"]


def explain(
    name: Annotated[str, typer.Argument(help="A unit (NAME or NAMESPACE/NAME), or a reason code.")],
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    namespace: Namespace = "",
    head: Annotated[str, typer.Option("--head", help="Committed revision.")] = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: FleetId = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Say where the count comes from, what each node offers, what would change the answer, and
    which objects are not well by which health file.
    """
    from stoker.cli.compare import Query, compare
    from stoker.cli.explain_health import health_lines
    from stoker.cli.reasons import reason_of
    from stoker.cli.session import Target, usage
    from stoker.decide import explain as lines_of
    from stoker.reconcile import Reach, health_rules
    from stoker.report import decision_digest

    if (text := reason_of(name)) is not None:
        sys.stdout.write(f"{name}: {text}\n")
        return Exit.OK
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    for found in compare(Query(path, target, head=head, reach=Reach.DIFF)):
        narrate(found.header)
        units = [u.ref for u in found.desired.units if namespace in {"", u.ref.namespace}]
        wanted = [ref for ref in units if ref.is_called(name)]
        if not wanted:
            raise usage(
                f"no unit and no reason code {name!r}",
                f"units: {', '.join(ref.short for ref in units) or 'none'}",
            )
        record = decision_digest(found.plan)[:7]
        for ref in wanted:
            told = lines_of(found.desired, found.plan, ref, record=record)
            for line in (*told, *health_lines(found, ref, health_rules(found.desired))):
                sys.stdout.write(f"{line}\n")
    return Exit.OK
