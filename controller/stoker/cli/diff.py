"""`stoker diff`: which fields would change. Exit 0 none, 1 some, 2 wrong use, 3 undecided.

With --fail-on the exit code is 1 only when a class named there occurs.
"""

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
    AllNamespaces,
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
    Selected,
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
    all_namespaces: AllNamespaces = False,
    selector: Selected = "",
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
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            help="Exit 1 only for these, by commas: restart, delete, recreate, scale, placement.",
        ),
    ] = "",
    no_color: NoColor = False,
) -> int:
    """Show what would be created, changed, replaced and deleted. Writes nothing."""
    from stoker.cli.compare import Query, compare
    from stoker.cli.diff_forms import diff_json, diff_names, diff_unified, secrets_of
    from stoker.cli.narrow import selected, within
    from stoker.cli.print_diff import diff_text
    from stoker.cli.print_markdown import diff_markdown
    from stoker.cli.session import Target, usage
    from stoker.diff import summarise
    from stoker.diff.classes import ChangeClass, classes_of
    from stoker.objects.selectors import parse_selector

    if output not in {"text", "unified", "names", "markdown", "json"}:
        raise usage(f"no output {output!r}", "text, unified, names, markdown or json")
    named = {word.strip() for word in fail_on.split(",") if word.strip()}
    if unknown := sorted(named - set(ChangeClass)):
        raise usage(f"no class {', '.join(unknown)}", ", ".join(ChangeClass))
    try:
        chosen = parse_selector(selector)
    except ValueError as error:
        raise usage(str(error)) from error
    target = Target(kubeconfig, context, fleet, fleet_id, state_namespace, request_timeout, as_user)
    style = Style(no_color=no_color)
    differs, wrong, failing = False, False, False
    documents = []
    for found in compare(Query(path, target, base, head, snapshot, all_fleets, verify=True)):
        narrate(found.header)
        for note in found.notes:
            narrate(note)
        print_findings(found.findings)
        assert found.changes is not None
        changes = within(found.changes, "" if all_namespaces else namespace)
        changes = selected(changes, chosen, found.live) if selector else changes
        failing |= bool(named & classes_of(changes, found.plan))
        last = summarise(changes, found.plan, found.live, found.fleet_id)
        differs |= last.differs
        wrong |= last.error > 0
        wrong |= any(finding.severity == "error" for finding in found.findings)
        match output:
            case "text":
                sys.stdout.write(diff_text(changes, found.desired, style, found.heads))
                sys.stdout.write(f"{last}\n")
            case "unified":
                sys.stdout.write(diff_unified(changes, secrets_of(found.changes)))
                narrate(str(last))
            case "names":
                sys.stdout.write(diff_names(changes))
                narrate(str(last))
            case "markdown":
                text = diff_text(changes, found.desired, Style(no_color=True), found.heads)
                parts = (found.desired, found.plan, last, text, found.header)
                sys.stdout.write(diff_markdown(changes, *parts))
            case _:
                documents.append(diff_json(changes, found.desired, asdict(last)))
    if output == "json":
        data = documents[0] if len(documents) == 1 else documents
        sys.stdout.write(json.dumps(data, indent=2, sort_keys=True, default=str) + "\n")
    if wrong:
        return Exit.USAGE
    reached = failing if named else differs
    return Exit.DIFFERENCES if reached and not exit_zero else Exit.OK
