"""What earlier passes learned about each unit: an input of decide, returned in `Plan.history`.

Kept beside the inventory in the cluster. A lost or unreadable entry is simply absent:
every window then starts now and nothing shrinks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from stoker.model.blame import NO_FAILURES, Failures
from stoker.model.codec import canonical_json, from_data, to_data
from stoker.model.refs import UnitRef
from stoker.model.start_samples import NO_STARTS, Starts

__all__ = ["History", "UnitHistory"]


@dataclass(frozen=True, slots=True)
class UnitHistory:
    """One unit. None means that it was never seen.

    `wanted` is the count decided last: where nobody but the live objects knows the count,
    it tells replicas that are wanted from copies that stand only during a move.
    `held_since_ms` is when its template change, still held, was first held.
    """

    wanted: int | None = None
    held_since_ms: int | None = None
    failures: Failures = NO_FAILURES
    """Starts that failed: which nodes are left out, and whether the rev is to blame."""


@dataclass(frozen=True, slots=True)
class History:
    """All units, sorted by ref; a unit without an entry has no history."""

    entries: tuple[tuple[UnitRef, UnitHistory], ...] = ()
    starts: Starts = NO_STARTS
    """How long the fleet's own starts took."""

    def of(self, ref: UnitRef) -> UnitHistory:
        """What is known of that unit; an empty history when nothing is."""
        return next((known for unit, known in self.entries if unit == ref), UnitHistory())

    def records(self) -> tuple[tuple[UnitRef, str], ...]:
        """Each entry as canonical JSON, sorted by ref: the form of `Plan.history`."""
        return tuple(
            (ref, canonical_json(to_data(known))) for ref, known in sorted(self.entries, key=_ref)
        )

    @classmethod
    def from_records(
        cls, records: Iterable[tuple[UnitRef, str]], starts: Starts = NO_STARTS
    ) -> History:
        """Read what `records` or a plan gave; an unreadable entry is left out, as lost."""
        entries: list[tuple[UnitRef, UnitHistory]] = []
        for ref, text in records:
            known = _read(text)
            if known is not None:
                entries.append((ref, known))
        return cls(tuple(sorted(entries, key=_ref)), starts)


def _read(text: str) -> UnitHistory | None:
    """One entry; None for anything that `records` did not write."""
    try:
        data = json.loads(text)
        failures = data.pop("failures", {}) if isinstance(data, dict) else {}
        if not isinstance(data, dict) or not all(type(value) is int for value in data.values()):
            return None
        return replace(from_data(UnitHistory, data), failures=Failures.read(failures))
    except ValueError:
        return None


def _ref(entry: tuple[UnitRef, UnitHistory]) -> UnitRef:
    return entry[0]
