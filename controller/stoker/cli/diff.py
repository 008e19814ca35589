"""`stoker diff`: which fields would change. Exit 0 none, 1 some, 2 wrong use, 3 undecided."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
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
    Output,
    RequestTimeout,
    Root,
    StateNamespace,
)
from stoker.cli.style import Style, narrate

__all__ = ["diff"]


def diff(
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    all_fleets: AllFleets = False,
    namespace: Namespace = "",
    base: Annotated[
        str, typer.Option("--base", help="Compare with this revision instead of the cluster.")
    ] = "",
    head: Annotated[
        str, typer.Option("--head", help="Committed revision to look at; else the files here.")
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
    output: Output = "text",
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit 0 on differences too; errors stay errors.")
    ] = False,
    no_color: NoColor = False,
) -> int:
    """Show what would be created, changed, replaced and deleted. Writes nothing."""
    from stoker.cli.compare import Query, compare
    from stoker.cli.print_diff import diff_json, diff_names, diff_text, diff_unified, within
    from stoker.cli.session import Target, usage
    from stoker.diff import summarise

    if output not in {"text", "unified", "names", "json"}:
        raise usage(f"no output {output!r}", "text, unified, names or json")
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    style = Style(no_color=no_color)
    differs, wrong = False, False
    documents = []
    for found in compare(Query(path, target, base, head, snapshot, all_fleets, verify=True)):
        narrate(found.header)
        for note in found.notes:
            narrate(note)
        print_findings(found.findings)
        assert found.changes is not None
        changes = within(found.changes, namespace)
        last = summarise(changes, found.plan, found.live, found.fleet_id)
        differs |= last.differs
        wrong |= last.error > 0
        wrong |= any(finding.severity == "error" for finding in found.findings)
        match output:
            case "text":
                sys.stdout.write(diff_text(changes, found.desired, style))
                sys.stdout.write(f"{last}\n")
            case "unified":
                sys.stdout.write(diff_unified(changes))
                narrate(str(last))
            case "names":
                sys.stdout.write(diff_names(changes))
                narrate(str(last))
            case _:
                documents.append(diff_json(changes, found.desired, asdict(last)))
    if output == "json":
        data = documents[0] if len(documents) == 1 else documents
        sys.stdout.write(json.dumps(data, indent=2, sort_keys=True, default=str) + "\n")
    if wrong:
        return Exit.USAGE
    return Exit.DIFFERENCES if differs and not exit_zero else Exit.OK
