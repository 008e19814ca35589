"""What follows from a unit's report alone, kept while that report is the same object.

Used by standings and substance, through PreviousStatus; a cache only: what it gives is always
what the function would give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from stoker.model.refs import UnitRef
from stoker.report.unit_report import UnitReport

__all__ = ["UnitMemo"]

T = TypeVar("T")


class UnitMemo(Generic[T]):
    """One value a unit. Bounded: what no unit has any more goes when half of it is such."""

    def __init__(self, make: Callable[[UnitReport], T]) -> None:
        self._make = make
        self._known: dict[UnitRef, tuple[UnitReport, T]] = {}

    def of(self, units: list[UnitReport]) -> list[T]:
        """The values of all units, in their order."""
        found = []
        for unit in units:
            known = self._known.get(unit.ref)
            if known is None or known[0] is not unit:
                known = self._known[unit.ref] = (unit, self._make(unit))
            found.append(known[1])
        if len(self._known) > 2 * len(units):
            self._known = {unit.ref: self._known[unit.ref] for unit in units}
        return found
