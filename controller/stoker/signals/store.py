"""What was read last of each service, and what of it may still be used.

Written by the poller's thread, read by the reconciler's: an immutable mapping is replaced whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from stoker.model.readings import Reading, Sample, ServiceReadings, SignalAsk, Unmeasurable
from stoker.model.refs import UnitRef

__all__ = ["ReadingStore", "fresh"]


@dataclass(frozen=True, slots=True)
class _Entry:
    readings: ServiceReadings
    at_ms: int
    valid_ms: int


class ReadingStore:
    """One writer, any reader."""

    def __init__(self) -> None:
        self._entries: Mapping[UnitRef, _Entry] = {}

    def put(self, found: Iterable[tuple[ServiceReadings, int]], at_ms: int) -> None:
        """Take readings with how long they may be used, in milliseconds."""
        new = {each.ref: _Entry(each, at_ms, valid_ms) for each, valid_ms in found}
        self._entries = {**self._entries, **new}

    def keep(self, refs: frozenset[UnitRef]) -> None:
        """Forget all other services."""
        self._entries = {ref: entry for ref, entry in self._entries.items() if ref in refs}

    def latest(self, ask: SignalAsk, now_ms: int) -> ServiceReadings | None:
        """What may still be used now, of the pods that stand now; None: nothing was read yet."""
        entry = self._entries.get(ask.ref)
        if entry is None:
            return None
        return fresh(entry.readings, entry.at_ms, entry.valid_ms, ask, now_ms)


def fresh(
    readings: ServiceReadings, at_ms: int, valid_ms: int, ask: SignalAsk, now_ms: int
) -> ServiceReadings:
    """The same without what is too old (it is Unmeasurable then) and without pods that are gone:
    one under a known name with another UID is another pod.
    """
    uids = {pod.uid for pod in ask.pods}
    is_old = not 0 <= now_ms - at_ms <= valid_ms
    load = readings.load
    return replace(
        readings,
        metrics=_fresh(readings.metrics, now_ms),
        engines=tuple(
            engine
            for engine in readings.engines
            if engine.pod_uid in uids and 0 <= now_ms - engine.at_ms <= valid_ms
        ),
        load=None if load is None else replace(load, arrivals=_of(load.arrivals, now_ms)),
        wake=_fresh(readings.wake, now_ms),
        deletion_costs=() if is_old else readings.deletion_costs,
    )


def _fresh(named: tuple[tuple[str, Reading], ...], now_ms: int) -> tuple[tuple[str, Reading], ...]:
    return tuple((name, _of(reading, now_ms)) for name, reading in named)


def _of(reading: Reading, now_ms: int) -> Reading:
    if not isinstance(reading, Sample) or not reading.is_stale(now_ms):
        return reading
    age = (now_ms - reading.at_ms) / 1000
    why = f"it was measured {age:.0f} s ago" if age > 0 else "the clock went back since"
    return Unmeasurable("stale", why, now_ms)
