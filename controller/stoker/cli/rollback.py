"""`stoker rollback`: a service's file as it was, as a commit on a new branch of this clone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.exits import Exit
from stoker.cli.options import FleetPath, Namespace, Root
from stoker.cli.style import narrate

__all__ = ["rollback"]


def rollback(
    name: Annotated[str, typer.Argument(help="A service: NAME or NAMESPACE/NAME.")],
    *,
    to: Annotated[str, typer.Option("--to", help="Revision whose file it gets back.")],
    path: Root = Path(),
    fleet: FleetPath = "",
    namespace: Namespace = "",
    base: Annotated[
        str, typer.Option("--base", help="Revision that the new branch starts from.")
    ] = "HEAD",
    branch: Annotated[
        str, typer.Option("--branch", help="Name of the new branch (else rollback/NAME-REV).")
    ] = "",
) -> int:
    """Commit the file of a service as it was at a revision, on a new branch. Nothing that is
    deployed moves: push the branch and merge it as any change. Exit 2 where nothing differs.
    """
    from stoker.cli.rollback_commit import Asked, roll_back

    made = roll_back(Asked(name, to, base, branch, path, fleet, namespace), os.environ)
    narrate(
        f"{made.file} of {made.unit.short} as it was at {made.to[:7]}, on top of {made.base[:7]}"
    )
    for note in made.notes:
        narrate(note)
    sys.stdout.write(f"{made.branch} {made.commit}\n")
    narrate(f"see:   stoker plan --base {made.base[:7]} --head {made.branch}")
    narrate(f"then:  git push origin {made.branch}    and merge it")
    return Exit.OK
