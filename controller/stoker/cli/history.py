"""`stoker history`: which revisions there were, and what came of each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import FleetPath, Namespace, Root
from stoker.cli.style import columns, narrate

__all__ = ["history"]


def history(
    name: Annotated[
        str, typer.Argument(help="A service (NAME or NAMESPACE/NAME); without it the fleet.")
    ] = "",
    *,
    path: Root = Path(),
    fleet: FleetPath = "",
    namespace: Namespace = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=2000, help="Most commits of the branch to read.")
    ] = 200,
    output: Annotated[str, typer.Option("--output", "-o", help="text or json.")] = "text",
) -> int:
    """Tell from the status branch, as this clone knows it, what came of each revision: of the
    fleet, or of one service with its model revision, counts and holds.
    """
    from stoker.cli.history_rows import FLEET_HEADS, UNIT_HEADS, fleet_rows, unit_rows
    from stoker.cli.session import Session, Target, local_repo, only_fleet, usage
    from stoker.errors import Stalled
    from stoker.git.versions import file_versions
    from stoker.model.refs import UnitRef

    if output not in {"text", "json"}:
        raise usage(f"no output {output!r}", "text or json")
    with Session(local_repo(path), Target(fleet_path=fleet)) as session:
        at = session.repo.fetch()
        session.target = Target(fleet_path=only_fleet(session.repo, at, fleet))
        desired = session.desired(at)
    branch = desired.fleet.status_branch
    refs = (f"refs/remotes/origin/{branch}", f"refs/heads/{branch}")
    heads: tuple[str, ...]
    file, heads = "status.yaml", FLEET_HEADS
    if name:
        refs_of = [u.ref for u in desired.units if namespace in {"", u.ref.namespace}]
        found = [ref for ref in refs_of if ref.is_called(name)]
        if len(found) > 1:
            raise usage(f"{name!r} names {', '.join(map(str, found))}", "say KIND/NAMESPACE/NAME")
        ref = found[0] if found else UnitRef(*_named(name, namespace))
        file, heads = f"units/{ref.file_name}", UNIT_HEADS
    versions = list(file_versions(path, refs, file, most=limit))
    if not versions:
        raise Stalled(
            f"nothing is known of {name or 'the fleet'}: no {file} on branch {branch} here",
            code="no-status",
            hint="git fetch origin",
        )
    narrate(f"git {branch}@{versions[0].commit[:7]}, {len(versions)} commits of {file}")
    rows = unit_rows(versions) if name else fleet_rows(versions)
    if output == "json":
        sys.stdout.write(json.dumps([dict(zip(heads, row, strict=True)) for row in rows]) + "\n")
        return Exit.OK
    for line in columns([tuple(head.upper() for head in heads), *rows]):
        sys.stdout.write(line + "\n")
    return Exit.OK


def _named(name: str, namespace: str) -> tuple[str, str, str]:
    """Kind, namespace and name of a service that left Git; it may still have a history."""
    parts = name.split("/")
    kind = parts[-3] if len(parts) >= 3 else "ModelService"
    return kind, parts[-2] if len(parts) >= 2 else namespace, parts[-1]
