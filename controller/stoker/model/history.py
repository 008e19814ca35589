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
from stoker.model.scale_history import NO_SCALE, ScaleHistory, scale_history_from
from stoker.model.spot_history import NO_SPOT, SpotHistory, spot_history_from
from stoker.model.start_samples import NO_STARTS, Starts
from stoker.model.update_history import NO_UPDATE, UpdateHistory, update_history_from

__all__ = ["History", "PoolHint", "PoolWait", "UnitHistory"]


@dataclass(frozen=True, slots=True)
class PoolHint:
    """A pool of which a node was hinted to go, and until when other pools come first."""

    pool: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class PoolWait:
    """A pool that gave no node: how often in a row, when last and for which pod, and until when
    it is not asked again.
    """

    pool: str
    failures: int
    failed_ms: int
    until_ms: int
    pod: str = ""


@dataclass(frozen=True, slots=True)
class UnitHistory:
    """One unit. None means that it was never seen.

    `wanted` is the count decided last: where nobody but the live objects knows the count,
    it tells replicas that are wanted from copies that stand only during a move.
    `held_since_ms` is when its template change, still held, was first held.
    """

    wanted: int | None = None
    held_since_ms: int | None = None
    calm_until_ms: int | None = None
    """-1 while a notice forces replicas of it away; then until when nothing that was started for
    them is given up. None: no notice.
    """
    spot: SpotHistory = NO_SPOT
    update: UpdateHistory = NO_UPDATE
    """Revs that served, that failed, and how far the newest is."""
    pool_waits: tuple[PoolWait, ...] = ()
    """Pools that gave no node for a replica without one, sorted by name."""
    failures: Failures = NO_FAILURES
    """Starts that failed: which nodes are left out, and whether the rev is to blame."""
    cooling: tuple[PoolHint, ...] = ()
    """Pools in which new starts are placed last, sorted by name."""
    scale: ScaleHistory = NO_SCALE
    """What a count that follows load remembers."""


@dataclass(frozen=True, slots=True)
class History:
    """All units, sorted by ref; a unit without an entry has no history."""

    entries: tuple[tuple[UnitRef, UnitHistory], ...] = ()
    starts: Starts = NO_STARTS
    """How long the fleet's own starts took."""

    def of(self, ref: UnitRef) -> UnitHistory:
        """What is known of that unit; an empty history when nothing is."""
        return next((known for unit, known in self.entries if unit == ref), UnitHistory())

    def of_updates(self) -> History:
        """What starts took and which failed, how updates go, and which pools cool down: what
        previews need too. Of counts only those that follow load are among it, for their rules
        start from the count decided last.
        """
        known = (
            (
                ref,
                UnitHistory(
                    wanted=each.wanted if each.scale != NO_SCALE else None,
                    scale=each.scale,
                    update=each.update,
                    spot=each.spot,
                    failures=each.failures,
                    cooling=each.cooling,
                ),
            )
            for ref, each in self.entries
        )
        return History(tuple(e for e in known if e[1] != UnitHistory()), self.starts)

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
        if not isinstance(data, dict):
            return None
        update = update_history_from(data.pop("update", {}))
        spot = spot_history_from(data.pop("spot", {}))
        failures = Failures.read(data.pop("failures", {}))
        scale = scale_history_from(data.pop("scale", {}))
        plain = from_data(UnitHistory, data)
        known = replace(plain, update=update, spot=spot, failures=failures, scale=scale)
    except (TypeError, ValueError):
        return None
    numbers = (value for name, value in data.items() if name not in {"pool_waits", "cooling"})
    whole = all(type(value) is int for value in numbers)
    rows = all(map(_is_whole, known.pool_waits)) and all(map(_is_a_hint, known.cooling))
    return known if whole and rows else None


def _is_whole(wait: PoolWait) -> bool:
    numbers = (wait.failures, wait.failed_ms, wait.until_ms)
    texts = (wait.pool, wait.pod)
    return all(type(n) is int for n in numbers) and all(isinstance(t, str) for t in texts)


def _is_a_hint(hint: PoolHint) -> bool:
    kinds: tuple[tuple[object, type], ...] = ((hint.pool, str), (hint.until_ms, int))
    return all(type(value) is kind for value, kind in kinds)


def _ref(entry: tuple[UnitRef, UnitHistory]) -> UnitRef:
    return entry[0]
