"""`stoker validate`: every file of every fleet, rendered and checked, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit, print_findings
from stoker.cli.options import FleetPath
from stoker.cli.style import narrate

__all__ = ["validate"]


def validate(
    path: Annotated[Path, typer.Argument(help="Folder of the fleet repository.")] = Path(),
    *,
    fleet: FleetPath = "",
) -> int:
    """Check all files at once: YAML, schema, templates, manifests. Exit 2 if any is wrong."""
    from stoker.cli.offline import offline
    from stoker.cli.session import find_fleets, local_repo
    from stoker.errors import BadInput, Finding, Severity

    findings: set[Finding] = set()
    units = 0
    repo = local_repo(path)
    try:
        revision = repo.fetch()
        paths = find_fleets(repo, revision, fleet)
        for fleet_path in paths:
            try:
                checked = offline(repo, revision, fleet_path)
            except BadInput as error:
                findings |= set(error.findings)
                continue
            findings |= set(checked.findings)
            units += len(checked.desired.units)
    finally:
        repo.close()
    print_findings(tuple(findings))
    errors = sum(1 for finding in findings if finding.severity is Severity.ERROR)
    fleets = _count(len(paths), "fleet")
    if errors:
        narrate(
            f"{_count(errors, 'error')} in {fleets}; nothing of a unit with an error is applied"
        )
        return Exit.USAGE
    narrate(f"ok: {fleets}, {_count(units, 'unit')}")
    return Exit.OK


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
