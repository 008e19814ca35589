"""`stoker plan`: what a change leads to, step by step, with its cost. Writes nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit, print_findings
from stoker.cli.options import (
    AllFleets,
    As,
    Context,
    FleetId,
    FleetPath,
    Kubeconfig,
    Namespace,
    NoColor,
    RequestTimeout,
    Root,
    StateNamespace,
)
from stoker.cli.style import Style, narrate

__all__ = ["plan"]


def plan(
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    all_fleets: AllFleets = False,
    namespace: Namespace = "",
    base: Annotated[str, typer.Option("--base", help="Plan the change from this revision.")] = "",
    head: Annotated[
        str, typer.Option("--head", help="Committed revision to plan; else the files here.")
    ] = "",
    snapshot: Annotated[
        str,
        typer.Option(
            "--snapshot", help="Folder or ref of a recorded snapshot: no cluster is asked."
        ),
    ] = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    state_namespace: StateNamespace = "stoker-system",
    fleet_id: FleetId = "",
    request_timeout: RequestTimeout = 30.0,
    output: Annotated[
        str, typer.Option("--output", "-o", help="text or json (stoker schema Plan).")
    ] = "text",
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 1 when anything would change.")
    ] = False,
    no_color: NoColor = False,
) -> int:
    """Show where replicas would go, why, how long it takes and what it costs."""
    from stoker.cli.compare import Query, compare
    from stoker.cli.print_diff import within
    from stoker.cli.print_plan import only_namespace, plan_json, plan_text
    from stoker.cli.session import Target, usage
    from stoker.diff import summarise
    from stoker.model.history import History
    from stoker.report import decision_digest
    from stoker.sim.foresee import foresee

    if output not in {"text", "json"}:
        raise usage(f"no output {output!r}", "text or json")
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    style = Style(no_color=no_color)
    differs, wrong = False, False
    documents = []
    for found in compare(Query(path, target, base, head, snapshot, all_fleets)):
        digest = decision_digest(found.plan)
        shown = only_namespace(found.plan, namespace)
        narrate(f"{found.header}  plan {digest[:7]}")
        for note in found.notes:
            narrate(note)
        print_findings(found.findings)
        arguments = (found.desired, found.shapes, found.snapshot, History(), found.plan.now_ms)
        likely, slow = foresee(*arguments), foresee(*arguments, slow=True)
        assert found.changes is not None
        changes = within(found.changes, namespace)
        last = summarise(changes, found.plan, found.live, found.fleet_id)
        differs |= last.differs
        wrong |= any(finding.severity == "error" for finding in found.findings)
        if output == "json":
            documents.append(plan_json(found.desired, shown, likely, slow, digest))
            continue
        sys.stdout.write(plan_text(found.desired, found.snapshot, shown, likely, slow, style))
        sys.stdout.write(f"{last}\n")
    if output == "json":
        data = documents[0] if len(documents) == 1 else documents
        sys.stdout.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
    if wrong:
        return Exit.USAGE
    return Exit.DIFFERENCES if differs and exit_code else Exit.OK
