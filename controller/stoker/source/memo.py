"""What source remembers between passes, so that a commit costs what it changes.

Keyed by path and blob id: a file that did not change is not parsed again, a unit whose file
and Fleet file did not change is not checked again. Belongs to one thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from stoker.model.fleet import Desired, Unit
from stoker.model.last_answer import LastAnswer
from stoker.model.refs import UnitRef
from stoker.source.compile import Compiled
from stoker.source.fleet_file import FleetRead
from stoker.source.health_files import HealthFile
from stoker.source.unit_file import UnitFile

__all__ = ["SourceMemo"]

FileKey: TypeAlias = tuple[str, str]
"""Path and blob id."""


@dataclass(slots=True)
class SourceMemo:
    """Entries of the last two commits' files; older ones are dropped after each pass."""

    files: dict[FileKey, UnitFile] = field(default_factory=dict)
    fleet: tuple[tuple[str, str, str], FleetRead] | None = None
    """Key (path, blob id, tracked ref) and result of the Fleet file."""
    health: dict[FileKey, HealthFile] = field(default_factory=dict)
    units: dict[tuple[FileKey, FileKey], tuple[Compiled, ...]] = field(default_factory=dict)
    """By the keys of the Fleet file and of the unit file."""
    bundles: dict[UnitRef, tuple[Compiled, Unit]] = field(default_factory=dict)
    """Bundles whose files are all named one by one, with what they were compiled from."""
    last: LastAnswer[Desired] = field(default_factory=LastAnswer)
    """The result of the last whole pass, by ref, commit and Fleet path."""
    parsed: int = 0
    """Unit files parsed so far; tests and metrics read it."""

    def keep_only(self, files: set[FileKey], fleet: FileKey) -> None:
        """Forget every entry that the commit just read did not use."""
        self.files = {key: value for key, value in self.files.items() if key in files}
        self.units = {
            key: value for key, value in self.units.items() if key[0] == fleet and key[1] in files
        }
