"""`stoker schema`: the JSON schemas of the fleet files, for editors and CI."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.errors import Stalled

__all__ = ["schema"]


def schema(
    kind: Annotated[str, typer.Argument(help="Fleet, ModelService or Bundle.")] = "",
    *,
    everything: Annotated[bool, typer.Option("--all", help="All kinds.")] = False,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write one file a kind into this folder.")
    ] = None,
) -> int:
    """Print the JSON schema of a kind, or write them all for an editor to use."""
    from stoker.source import schemas

    table = schemas()
    names = sorted(table) if everything or not kind else [kind]
    unknown = [name for name in names if name not in table]
    if unknown:
        raise Stalled(
            f"no kind {unknown[0]!r}", code="usage", hint=f"one of {', '.join(sorted(table))}"
        )
    for name in names:
        text = json.dumps(table[name], indent=2, sort_keys=True) + "\n"
        if to is None:
            sys.stdout.write(text)
        else:
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{name.lower()}.json").write_text(text, encoding="utf-8")
    return Exit.OK
