"""`stoker inventory`: what the fleet holds in the cluster, and why each object stays or goes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
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
    Namespace,
    RequestTimeout,
    Root,
    StateNamespace,
)
from stoker.cli.style import narrate

__all__ = ["inventory"]


def inventory(
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: FleetId = "",
    request_timeout: RequestTimeout = 30.0,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="text, names or json (stoker schema Inventory)."),
    ] = "text",
) -> int:
    """List what is owned, adopted, orphaned, kept or left alone. Writes nothing."""
    from stoker.cli.holdings import holdings, holdings_json, holdings_names, holdings_text
    from stoker.cli.session import Session, Target, fleet_header, local_repo, only_fleet, usage
    from stoker.reconcile import Reach, State, reconcile

    if output not in {"text", "names", "json"}:
        raise usage(f"no output {output!r}", "text, names or json")
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    with Session(local_repo(path), target) as session:
        at = session.repo.fetch()
        fleet_path = only_fleet(session.repo, at, fleet)
        session.target = replace(target, fleet_path=fleet_path)
        desired = session.desired(at)
        parts = session.parts(desired)
        done = reconcile(parts, State(), revision=at, reach=Reach.DIFF)
        if done.failure is not None or done.changes is None:
            print_findings((done.failure,) if done.failure else ())
            wrong = done.failure is not None and is_wrong_use(done.failure.code)
            return Exit.USAGE if wrong else Exit.UNDECIDED
        narrate(fleet_header(desired, session.target))
        found = tuple(
            item
            for item in holdings(parts.store.current, done.changes)
            if namespace in {"", item.unit.namespace}
        )
        match output:
            case "text":
                sys.stdout.write(holdings_text(found))
            case "names":
                sys.stdout.write(holdings_names(found))
            case _:
                data = holdings_json(found, desired, parts.identity.fleet_id)
                sys.stdout.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
    return Exit.OK
