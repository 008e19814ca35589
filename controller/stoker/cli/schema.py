"""`stoker schema`: JSON schemas of the fleet files and of machine outputs, for editors and CI."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stoker.cli.exits import Exit

__all__ = ["all_schemas", "schema"]


def schema(
    kind: Annotated[
        str,
        typer.Argument(
            help="Fleet, ModelService, Bundle, ScalePolicy, HealthPolicy, Scenario, or the outputs ColdStart, "
            "Diff, Inventory, Plan, Rehearsal and Simulation."
        ),
    ] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every kind.")] = False,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write one file a kind into this folder.")
    ] = None,
) -> int:
    """Print the JSON schema of a kind, or write them all for an editor to use."""
    from stoker.cli.session import usage

    table = all_schemas()
    if not kind and not everything and to is None:
        raise usage("name a kind, or --all", f"kinds: {', '.join(table)}")
    names = list(table) if everything or not kind else [kind]
    unknown = [name for name in names if name not in table]
    if unknown:
        raise usage(f"no kind {unknown[0]!r}", f"kinds: {', '.join(table)}")
    for name in names:
        text = schema_text(table[name])
        if to is None:
            sys.stdout.write(text)
        else:
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{name.lower()}.json").write_text(text, encoding="utf-8")
    return Exit.OK


def all_schemas() -> dict[str, dict[str, Any]]:
    """Kind to schema, sorted: what people write, and what `-o json` prints."""
    from stoker.cli.output_schemas import output_schemas
    from stoker.cli.rehearsal_schema import rehearsal_schema
    from stoker.cli.simulation_schema import simulation_schema
    from stoker.rehearse.schema import ScenarioFile
    from stoker.source import schema_of, schemas

    more = {
        "Rehearsal": rehearsal_schema(),
        "Scenario": schema_of(ScenarioFile),
        "Simulation": simulation_schema(),
    }
    return dict(sorted({**schemas(), **output_schemas(), **more}.items()))


def schema_text(schema: dict[str, Any]) -> str:
    """The file of one schema."""
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
