"""Readings that may be used now, of one service: what is stale, odd or absent is unmeasurable.

Signals refuses such values where they come in; a simulator or an old record may still bring one,
and none may ever lower a count. Called by ratio, capacity and zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from stoker.decide.count_facts import CountFacts
from stoker.model.readings import EngineReading, Reading, Sample, ServiceReadings, Unmeasurable

__all__ = ["Engines", "engines_of", "named", "usable"]

ENGINE_VALID_INTERVALS = 3
"""Scaling intervals for which what an engine said may be used: two scrapes may fail. Ours."""

_NUMBERS = tuple(
    each.name
    for each in fields(EngineReading)
    if each.name not in {"pod", "pod_uid", "at_ms", "window_ms", "queued"}
)


@dataclass(frozen=True, slots=True)
class Engines:
    """What the Ready replicas say, sorted by pod. `missing` says who says nothing; empty when
    all of them do.
    """

    of: tuple[EngineReading, ...] = ()
    missing: str = ""

    @property
    def waiting(self) -> float:
        """Requests that wait in all of them: at least so many, where some don't say."""
        return math.fsum(each.waiting for each in self.of if each.waiting is not None)

    @property
    def queued(self) -> bool:
        """Whether requests waited in one of them for the whole window."""
        return any(each.queued for each in self.of)

    @property
    def idle(self) -> bool:
        """Whether all of them say that they have nothing to do."""
        busy = any(each.waiting != 0 or each.running != 0 for each in self.of)
        return bool(self.of) and not self.missing and not busy


def usable(reading: Reading | None, now_ms: int) -> Sample | Unmeasurable:
    """The reading, if it is a sane sample that is not stale."""
    if reading is None:
        return Unmeasurable("missing", "not measured yet", now_ms)
    if isinstance(reading, Unmeasurable):
        return reading
    if not math.isfinite(reading.value):
        return Unmeasurable("not-a-number", "not a number", reading.at_ms)
    if reading.value < 0:
        return Unmeasurable("negative", f"negative ({reading.value:g})", reading.at_ms)
    if reading.is_stale(now_ms):
        age = f"measured {abs(now_ms - reading.at_ms) // 1_000}s "
        when = "ago" if reading.at_ms <= now_ms else "in the future"
        return Unmeasurable("stale", f"stale ({age}{when})", reading.at_ms)
    return reading


def named(
    readings: Iterable[tuple[str, Reading]], names: Iterable[str], now_ms: int
) -> tuple[tuple[str, Sample | Unmeasurable], ...]:
    """The readings of these names, in their order."""
    known = dict(readings)
    return tuple((name, usable(known.get(name), now_ms)) for name in names)


def engines_of(
    facts: CountFacts, readings: ServiceReadings | None, interval_ms: int, now_ms: int
) -> Engines:
    """What Ready replicas say that is not too old; of others nothing counts."""
    given = readings.engines if readings is not None else ()
    latest = ENGINE_VALID_INTERVALS * interval_ms
    fresh = [each for each in given if 0 <= now_ms - each.at_ms <= latest]
    ready = {pod.uid for pod in facts.pods}
    ours = [_sane(each) for each in fresh if not ready or each.pod_uid in ready]
    ours.sort(key=lambda each: each.pod)
    whole = [each for each in ours if each.waiting is not None and each.running is not None]
    return Engines(tuple(ours), _missing(facts, whole))


def _missing(facts: CountFacts, whole: list[EngineReading]) -> str:
    short = facts.ready - len(whole)
    if short <= 0:
        return ""
    seen = {each.pod_uid for each in whole}
    silent = next((pod.name for pod in facts.pods if pod.uid not in seen), "")
    return f"{short} of {facts.ready} Ready replicas say nothing{silent and f' ({silent})'}"


def _sane(engine: EngineReading) -> EngineReading:
    odd: dict[str, Any] = {
        name: None
        for name in _NUMBERS
        if (value := getattr(engine, name)) is not None and not (value >= 0 and value < math.inf)
    }
    return replace(engine, **odd) if odd else engine
