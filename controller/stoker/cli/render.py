"""`stoker render`: the manifests as they would be sent, without a cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit, print_findings
from stoker.cli.options import FleetPath
from stoker.errors import BadInput, Finding, SourceLocation

__all__ = ["render"]


def render(
    unit: Annotated[str, typer.Argument(help="Name of one unit; all of them without it.")] = "",
    *,
    path: Annotated[Path, typer.Option("--path", "-f", help="Folder of the repository.")] = Path(),
    fleet: FleetPath = "",
    revision: Annotated[
        str, typer.Option("--revision", help="A committed revision instead of the files here.")
    ] = "",
    node: Annotated[
        str, typer.Option("--node", help="Node that the replicas are shown on.")
    ] = "any-node",
    output: Annotated[str, typer.Option("--output", "-o", help="yaml or json.")] = "yaml",
) -> int:
    """Print the manifests of a unit (or of the whole fleet) with owner marks and decisions."""
    from stoker.cli.offline import offline
    from stoker.cli.session import local_repo, only_fleet

    repo = local_repo(path, revision)
    try:
        at = repo.resolve(revision) if revision else repo.fetch()
        done = offline(repo, at, only_fleet(repo, at, fleet), node=node)
    finally:
        repo.close()
    wanted = [s for s in done.sets if not unit or s.unit.is_called(unit)]
    if unit and not wanted:
        names = ", ".join(s.unit.name for s in done.sets)
        raise BadInput(
            (Finding(SourceLocation(), "no-such-unit", f"no unit {unit!r}", hint=f"have: {names}"),)
        )
    bodies = [m.body for s in wanted for m in s.manifests]
    sys.stdout.write(_text(bodies, output))
    names_wanted = {str(s.unit) for s in wanted}
    findings = tuple(f for f in done.findings if not f.unit or f.unit in names_wanted or not unit)
    print_findings(findings)
    return Exit.USAGE if any(f.severity == "error" for f in findings) else Exit.OK


def _text(bodies: list[dict[str, object]], output: str) -> str:
    if output == "json":
        listing = {"apiVersion": "v1", "kind": "List", "items": bodies}
        return json.dumps(listing, indent=2, sort_keys=True) + "\n"
    import yaml

    return "".join(
        "---\n" + yaml.dump(body, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
        for body in bodies
    )
