"""`stoker coldstart`: where the time of a start went, phase by phase, and what would save it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import As, Context, Kubeconfig, RequestTimeout, Root
from stoker.cli.style import narrate
from stoker.objects.start_facts import Start
from stoker.objects.start_levers import LEVERS, Lever

__all__ = ["coldstart"]

OUTPUTS = ("text", "json", "svg")
STARTS = "starts.json"


def coldstart(
    target: Annotated[
        str,
        typer.Argument(
            metavar="SERVICE|POD|DIR|REF",
            help="A service (its newest pod) or a pod, as NAME or NAMESPACE/NAME, or a folder "
            "with pod.json, events.json and engine.log; a folder that exists is read. A data ref "
            "(refs/stoker/NAME), or a folder with its starts.json: what the fleet's starts took.",
        ),
    ],
    *,
    path: Root = Path(),
    pull: Annotated[
        list[str] | None,
        typer.Option("--with", help="Say what is left with this lever; repeat for more."),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the service or pod (else all).")
    ] = "",
    output: Annotated[
        str, typer.Option("--output", "-o", help="text, json (stoker schema ColdStart) or svg.")
    ] = "text",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    as_user: As = "",
    request_timeout: RequestTimeout = 30.0,
) -> int:
    """Show the phases of one start from its pod, its events and its engine's log, with the
    lever for each. What nobody saw is unknown; phases known only together share a row.
    Writes nothing.
    """
    from stoker.cli.coldstart_svg import coldstart_svg
    from stoker.cli.print_coldstart import coldstart_json, coldstart_text
    from stoker.cli.session import usage

    if output not in OUTPUTS:
        raise usage(f"no output {output!r}", "text, json or svg")
    chosen = _levers(pull or [])
    folder = Path(target)
    if target.startswith("refs/") or (folder / STARTS).is_file():
        return _learned(target, path, output)
    if folder.is_dir():
        start = _recorded(folder)
    else:
        start = _live(target, namespace, (kubeconfig, context, as_user, request_timeout))
    match output:
        case "json":
            data = coldstart_json(start, chosen)
            sys.stdout.write(json.dumps(data, indent=2, sort_keys=True) + "\n")
        case "svg":
            sys.stdout.write(coldstart_svg(start))
        case _:
            sys.stdout.write(coldstart_text(start, chosen))
    return Exit.OK


def _learned(where: str, repository: Path, output: str) -> int:
    """Print what the starts of a whole fleet took, by the copy on its data ref."""
    from stoker.cli.print_starts import starts_json, starts_text
    from stoker.cli.recorded import read_recorded_starts
    from stoker.cli.session import usage

    if output == "svg":
        raise usage("a record of many starts has no picture", "text or json")
    found = read_recorded_starts(where, repository)
    if output == "json":
        sys.stdout.write(json.dumps(starts_json(found), indent=2, sort_keys=True) + "\n")
    else:
        sys.stdout.write(starts_text(found))
    return Exit.OK


def _levers(names: list[str]) -> list[Lever]:
    """The levers of these names, in the order of LEVERS; raises BadInput for another name."""
    from stoker.cli.session import usage

    known = {lever.name: lever for lever in LEVERS}
    wrong = [name for name in names if name not in known]
    if wrong:
        raise usage(f"--with: no lever {wrong[0]!r}", f"levers: {', '.join(known)}")
    return [lever for lever in LEVERS if lever.name in names]


def _recorded(folder: Path) -> Start:
    from stoker.cli.coldstart_recorded import read_recorded_start
    from stoker.objects.start_facts import start_from
    from stoker.source import shipped_log_profiles

    found = read_recorded_start(folder)
    return start_from(found.pod, found.events, found.log, shipped_log_profiles())


def _live(name: str, namespace: str, access: tuple[Path | None, str, str, float]) -> Start:
    from stoker.cli.coldstart_live import live_start
    from stoker.cli.connect import connect, context_name
    from stoker.source import shipped_log_profiles

    kubeconfig, context, as_user, timeout = access
    client = connect(kubeconfig, context, timeout_seconds=timeout, as_user=as_user)
    try:
        for warning in client.warnings:
            narrate(f"warning: {warning}")
        narrate(f"context {context_name(kubeconfig, context)}, {client.server().cluster_uid}")
        start, notes = live_start(client, name, namespace, shipped_log_profiles())
    finally:
        client.close()
    for note in notes:
        narrate(note)
    return start
