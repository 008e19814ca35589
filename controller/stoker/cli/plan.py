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
    AllNamespaces,
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
    all_namespaces: AllNamespaces = False,
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
        str, typer.Option("--output", "-o", help="text, markdown or json (stoker schema Plan).")
    ] = "text",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Keep the plan of --head (else HEAD) in this file, for `stoker apply FILE`.",
        ),
    ] = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 1 when anything would change.")
    ] = False,
    no_color: NoColor = False,
) -> int:
    """Show where replicas would go, why, how long it takes and what it costs."""
    from stoker.cli.compare import Query, compare
    from stoker.cli.narrow import within
    from stoker.cli.plan_file import plan_file_of, write_plan_file
    from stoker.cli.print_bundles import bundle_text
    from stoker.cli.print_diff import diff_text
    from stoker.cli.print_markdown import plan_markdown
    from stoker.cli.print_plan import cost_of, moving, only_namespace, plan_json, plan_text
    from stoker.cli.session import Target, usage
    from stoker.diff import summarise
    from stoker.model.history import History
    from stoker.report import decision_digest
    from stoker.sim.foresee import foresee

    if output not in {"text", "markdown", "json"}:
        raise usage(f"no output {output!r}", "text, markdown or json")
    if out is not None and (base or snapshot or all_fleets):
        raise usage("--out keeps a plan for one fleet on its cluster", "without --base, --snapshot")
    head = "HEAD" if out is not None and not head else head
    namespace = "" if all_namespaces else namespace
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
        history = History.from_records(found.plan.history, found.plan.starts).of_updates()
        arguments = (found.desired, found.shapes, found.snapshot, history, found.plan.now_ms)
        likely, slow = foresee(*arguments), foresee(*arguments, slow=True)
        assert found.changes is not None
        changes = within(found.changes, namespace)
        last = summarise(changes, found.plan, found.live, found.fleet_id)
        differs |= last.differs
        wrong |= last.error > 0
        wrong |= any(finding.severity == "error" for finding in found.findings)
        if out is not None:
            kept = plan_file_of(
                found.changes,
                found.plan,
                fleet=found.desired.fleet.name,
                fleet_path=found.fleet_path,
                fleet_id=found.fleet_id,
                revision=found.desired.revision.commit,
            )
            write_plan_file(out, kept)
            narrate(f"wrote {out}; `stoker apply {out}` applies it while it holds")
        if output == "markdown":
            forecasts = (likely, slow)
            header = f"{found.header} · plan {digest[:7]}"
            text = diff_text(changes, found.desired, Style(no_color=True), found.heads)
            parts = (found.desired, found.snapshot, shown, forecasts, changes, last, text, header)
            sys.stdout.write(plan_markdown(*parts))
            continue
        if output == "json":
            documents.append(plan_json(found.desired, shown, likely, slow, digest, changes))
            continue
        sys.stdout.write(plan_text(found.desired, found.snapshot, shown, likely, slow, style))
        sys.stdout.write(bundle_text(changes))
        if any(moving(decision, likely) for decision in shown.decisions):
            sys.stdout.write(f"{cost_of(found.snapshot, shown, likely)}\n")
        sys.stdout.write(f"{last}\n")
    if output == "json":
        data = documents[0] if len(documents) == 1 else documents
        sys.stdout.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
    if wrong:
        return Exit.USAGE
    return Exit.DIFFERENCES if differs and exit_code else Exit.OK
