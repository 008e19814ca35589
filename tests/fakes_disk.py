"""A git program whose writes fail while a file stands, as on a full disk; needs no rights."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from stoker.sim.git_http import FULL_DISK

__all__ = ["FullDisk"]

PROGRAM = """#!/bin/sh
if [ -e {flag} ]; then sleep 0.1; exec sh -c '{full}' sh {git} "$@"; fi
exec {git} "$@"
"""
"""The pause lets the limits pass by that a controller sets for its children."""


@dataclass(frozen=True, slots=True)
class FullDisk:
    """`programs` goes first into a PATH; git found there writes nothing between fill and free."""

    programs: Path

    @classmethod
    def in_folder(cls, folder: Path) -> FullDisk:
        """Make the program in an own folder of `folder`."""
        programs = folder / "bin"
        programs.mkdir(parents=True)
        disk = cls(programs)
        program = programs / "git"
        text = PROGRAM.format(flag=disk.flag, full=FULL_DISK, git=shutil.which("git"))
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        return disk

    @property
    def flag(self) -> Path:
        """The file that says full."""
        return self.programs / "full"

    def fill(self) -> None:
        """From now on no byte can be written."""
        self.flag.touch()

    def free(self) -> None:
        """There is room again."""
        self.flag.unlink(missing_ok=True)
