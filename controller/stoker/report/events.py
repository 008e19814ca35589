"""Events of a pass: one for each condition that changed, none in an idle pass (row 99).

In: conditions before and now. Called by report; loop logs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stoker.model.outcome import Condition
from stoker.report.inputs import Event, EventType
from stoker.report.previous import PreviousStatus
from stoker.report.unit_report import UnitReport

__all__ = ["events_of"]

_TOLD = ("Ready", "Stalled", "Healthy")
_BAD = {"Ready": "False", "Stalled": "True", "Healthy": "False"}
_FIRST = {"Ready": "Unknown", "Stalled": "False", "Healthy": "Unknown"}
"""What counts as the status before the first report."""


def events_of(
    before: PreviousStatus, conditions: Sequence[Condition], units: Iterable[UnitReport]
) -> tuple[Event, ...]:
    """Events of the fleet (empty unit), then of the units in order."""
    found = _changes("", before.conditions, conditions)
    for unit in units:
        old = before.units.get(unit.ref)
        if old is unit:
            continue
        found += _changes(str(unit.ref), old.conditions if old else (), unit.conditions)
    return tuple(found)


def _changes(unit: str, before: Sequence[Condition], now: Sequence[Condition]) -> list[Event]:
    old = {c.type: c.status for c in before}
    found = []
    for condition in now:
        was = old.get(condition.type, _FIRST.get(condition.type, ""))
        if condition.type in _TOLD and condition.status != was:
            bad = condition.status == _BAD[condition.type]
            kind = EventType.WARNING if bad else EventType.NORMAL
            found.append(Event(unit, kind, condition.reason, condition.message))
    return found
