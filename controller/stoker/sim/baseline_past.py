"""What the restated rules of other systems have in common: windows, sums, signals.

Used by `sim.baseline_*`. Pure; times are integer milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from stoker.model.readings import EngineReading, ServiceReadings

__all__ = ["NO_PAST", "Past", "Signal", "per_engine", "stabilised", "total"]


@dataclass(frozen=True, slots=True)
class Past:
    """`recommended` are (instant, count), oldest first; None never happened."""

    recommended: tuple[tuple[int, int], ...] = ()
    active_ms: int | None = None
    """When there was something to do last."""
    panic_ms: int | None = None
    """When panic was seen last."""
    saturated: tuple[float, ...] = ()
    """Demand of replicas while they were saturated, oldest first."""


NO_PAST = Past()


class Signal(StrEnum):
    """What a rule looks at, of each engine."""

    WAITING = "waiting"
    IN_FLIGHT = "in-flight"
    KV = "kv"


def per_engine(signal: Signal, engine: EngineReading) -> float | None:
    """The value of one engine; None where it is not known."""
    match signal:
        case Signal.WAITING:
            return engine.waiting
        case Signal.KV:
            return engine.kv_usage
        case Signal.IN_FLIGHT:
            if engine.running is None or engine.waiting is None:
                return None
            return engine.running + engine.waiting


def total(signal: Signal, readings: ServiceReadings) -> float | None:
    """The sum over the engines that could be read; None where none could."""
    values = [per_engine(signal, engine) for engine in readings.engines]
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def stabilised(past: Past, now_ms: int, window_ms: int, count: int) -> tuple[int, Past]:
    """The highest recommendation of the window with this one, which is remembered."""
    kept: Iterable[tuple[int, int]] = (
        (at_ms, said) for at_ms, said in past.recommended if at_ms > now_ms - window_ms
    )
    recommended = (*kept, (now_ms, count))
    return max(said for _, said in recommended), replace(past, recommended=recommended)
