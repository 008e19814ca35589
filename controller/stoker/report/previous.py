"""What the last report said: transition times, history, units. From memory, or after a
start from the status branch.

Anything on the branch that cannot be read counts as never said (reliability c.3 row 71):
then times start now, nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stoker.model.flow import Standing
from stoker.model.outcome import Condition, Document
from stoker.model.refs import UnitRef
from stoker.model.times import instant_of
from stoker.objects.health_fields import integer, items, mapping, text
from stoker.objects.health_memo import HealthMemo
from stoker.report.history import HistoryEntry, history_from_data
from stoker.report.mirror import Mirror
from stoker.report.standings import standing_of
from stoker.report.status_files import StatusReader
from stoker.report.substance import substance_digest, unit_substance
from stoker.report.unit_memo import UnitMemo
from stoker.report.unit_report import UnitReport
from stoker.report.units import conditions_from_data, unit_document, unit_from_document

__all__ = ["STATUS_PATH", "PreviousStatus", "errors_of", "previous_from_files"]

STATUS_PATH = "status.yaml"


@dataclass(frozen=True)
class PreviousStatus:
    """The last report as far as the next one needs it.

    `drift_hours` counts repaired drift by hour since the epoch. `observed_at_ms` is when the status was made, None before the first one.
    """

    conditions: tuple[Condition, ...] = ()
    written: tuple[Condition, ...] = ()
    """The condition StatusWritten, which no document shows."""
    last_attempted: str = ""
    last_applied: str = ""
    history: tuple[HistoryEntry, ...] = ()
    units: Mapping[UnitRef, UnitReport] = field(default_factory=dict, hash=False)
    """Sorted."""
    documents: Mapping[UnitRef, Document] = field(default_factory=dict, hash=False)
    mirrors: Mapping[UnitRef, Mirror] = field(default_factory=dict, hash=False)
    errors: tuple[tuple[str, str, int], ...] = ()
    """Code, path and line of every error that status.yaml lists, sorted, each once."""
    drift_hours: tuple[tuple[int, int], ...] = ()
    observed_at_ms: int | None = None
    memo: HealthMemo = field(default_factory=HealthMemo, hash=False, compare=False, repr=False)
    known_standings: UnitMemo[Standing] = field(
        default_factory=lambda: UnitMemo(standing_of), hash=False, compare=False, repr=False
    )
    known_substance: UnitMemo[str] = field(
        default_factory=lambda: UnitMemo(unit_substance), hash=False, compare=False, repr=False
    )

    @cached_property
    def standings(self) -> Mapping[UnitRef, Standing]:
        """How every unit stood that was ever reported on and not forgotten since."""
        found = self.known_standings.of(list(self.units.values()))
        return dict(zip(self.units, found, strict=True))

    @property
    def substance(self) -> str:
        """The digest of everything that makes a commit worthwhile."""
        units = sorted(self.units.values(), key=lambda unit: unit.ref)
        return substance_digest(
            self.conditions,
            self.last_attempted,
            self.last_applied,
            self.errors,
            self.known_substance.of(units),
        )


def previous_from_files(files: Mapping[str, bytes]) -> PreviousStatus:
    """Read the files of a status branch; whatever cannot be read is left out.

    The document of a file that somebody edited is made anew, as we would write it.
    """
    reader = StatusReader()
    found = reader.read(files.get(STATUS_PATH, b""))
    status = found.data if found is not None else {}
    units: dict[UnitRef, UnitReport] = {}
    documents: dict[UnitRef, Document] = {}
    for path in sorted(files):
        if not path.startswith("units/"):
            continue
        found = reader.read(files[path])
        unit = unit_from_document(found.data) if found is not None else None
        if found is not None and unit is not None and path == f"units/{unit.ref.file_name}":
            units[unit.ref] = unit
            ours = unit_document(unit) if found.edited else Document(path, found.data)
            documents[unit.ref] = ours
    return PreviousStatus(
        conditions=conditions_from_data(items(status, "conditions")),
        last_attempted=text(status, "lastAttemptedRevision"),
        last_applied=text(status, "lastAppliedRevision"),
        history=history_from_data(items(status, "history")),
        units={ref: units[ref] for ref in sorted(units)},
        documents=documents,
        errors=errors_of(status),
        drift_hours=_drift(status),
        observed_at_ms=instant_of(text(mapping(status, "controller"), "observedAt")),
    )


def errors_of(status: dict[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """What tells one listed error from another, of a status document."""
    found = items(status, "errors")
    return tuple(sorted({(text(e, "code"), text(e, "path"), integer(e, "line", 0)) for e in found}))


def _drift(status: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    """Repairs before a restart count as of the hour in which the status was made."""
    count = integer(mapping(status, "summary"), "driftRepaired24h", 0)
    made = instant_of(text(mapping(status, "controller"), "observedAt"))
    return ((made // 3_600_000, count),) if count and made is not None else ()
