"""llm-d's workload variant autoscaler, restated: V1 (saturation) and V2 (tokens).

From semantics.md 1.5. In: a `Seen`. Out: a count and what to remember. One variant, so the
cheapest and the dearest are the same. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import median

from stoker.model.readings import EngineReading
from stoker.sim.baseline_past import NO_PAST, Past
from stoker.sim.policy import Seen, waiting_outside

__all__ = ["WvaSaturation", "WvaTokens"]

LOOP_MS = 60_000
KV_SATURATED = 0.80
QUEUE_SATURATED = 5.0
SPARE_QUEUE = 3.0
KV_USABLE = 0.8
ROLLING = 10
"""Observations of saturated replicas that are kept."""


@dataclass(frozen=True, slots=True)
class WvaSaturation:
    """V1: one replica more when the spare KV or queue of those not saturated is small, one fewer
    when it would not get small; nothing while any is on its way. The knob is the spare KV.
    """

    spare_kv: float = 0.10
    interval_ms: int = LOOP_MS
    cache_aware: bool = False

    @property
    def name(self) -> str:
        """`wva-v1 0.1`."""
        return f"wva-v1 {self.spare_kv:g}"

    def begin(self) -> Past:
        """Nothing: it has no memory."""
        return NO_PAST

    def decide(self, seen: Seen, past: Past) -> tuple[int, Past]:
        """One loop, by the highest values of the last minute."""
        peaks = _peaks(seen)
        if not seen.ready and not seen.warming and waiting_outside(seen.readings):
            return max(1, seen.wanted), past
        if seen.wanted != seen.ready or len(peaks) != seen.ready or not peaks:
            return seen.wanted, past
        calm = [(kv, queue) for kv, queue in peaks if kv < KV_SATURATED and queue < QUEUE_SATURATED]
        if not calm:
            return seen.wanted + 1, past
        kv = math.fsum(kv for kv, _ in calm) / len(calm)
        queue = math.fsum(queue for _, queue in calm) / len(calm)
        if KV_SATURATED - kv < self.spare_kv or QUEUE_SATURATED - queue < SPARE_QUEUE:
            return seen.wanted + 1, past
        if len(calm) < 2:
            return seen.wanted, past
        more = len(calm) / (len(calm) - 1)
        safe = (
            KV_SATURATED - kv * more >= self.spare_kv
            and QUEUE_SATURATED - queue * more >= SPARE_QUEUE
        )
        return (max(1, seen.wanted - 1) if safe else seen.wanted), past


@dataclass(frozen=True, slots=True)
class WvaTokens:
    """V2: tokens that are demanded against tokens that replicas, Ready and pending, can hold.

    The knob is the share of the capacity that may be asked for before more is bought; fewer are
    wanted where it is 0.15 lower.
    """

    up_share: float = 0.85
    interval_ms: int = LOOP_MS
    cache_aware: bool = False

    @property
    def name(self) -> str:
        """`wva-v2 0.85`."""
        return f"wva-v2 {self.up_share:g}"

    def begin(self) -> Past:
        """No saturated replica seen yet."""
        return NO_PAST

    def decide(self, seen: Seen, past: Past) -> tuple[int, Past]:
        """One loop."""
        load = seen.readings.load
        prompt = load.prefill_tokens if load is not None else None
        output = load.output_tokens if load is not None else None
        held = waiting_outside(seen.readings)
        if not seen.ready:
            return (max(1, seen.wanted) if held else seen.wanted), past
        demands = [_demand(engine, seen, prompt or 0.0) for engine in seen.engines]
        known = [each for each in demands if each is not None]
        if not known or len(known) != seen.ready:
            return seen.wanted, past
        for engine, demand in zip(seen.engines, known, strict=True):
            if (engine.waiting or 0.0) >= QUEUE_SATURATED:
                used = demand - (engine.waiting or 0.0) * (prompt or 0.0)
                past = replace(past, saturated=(*past.saturated, used)[-ROLLING:])
        capacity = self._capacity(seen, past, prompt, output)
        outside = held * ((prompt or 0.0) + (output or 0.0))
        demand = math.fsum(known) + outside
        required = demand / self.up_share - (seen.ready + seen.warming) * capacity
        spare = seen.ready * capacity - demand / (self.up_share - 0.15)
        if required > 0:
            return seen.wanted + math.ceil(required / capacity), past
        if spare > 0:
            return max(1, seen.wanted - math.floor(spare / capacity)), past
        return seen.wanted, past

    def _capacity(
        self, seen: Seen, past: Past, prompt: float | None, output: float | None
    ) -> float:
        """Tokens of one replica: the room for them, or what is in work when it is full."""
        k1 = seen.size.kv_tokens * KV_USABLE
        if past.saturated:
            return max(1.0, min(k1, median(past.saturated)))
        if prompt is None or output is None or not prompt + output:
            return k1
        batch = min(
            seen.size.max_batched_tokens * output / (prompt + output), seen.size.max_sequences
        )
        return max(1.0, min(k1, batch * (prompt + output / 2)))


def _demand(engine: EngineReading, seen: Seen, prompt: float) -> float | None:
    if engine.kv_usage is None or engine.waiting is None:
        return None
    return engine.kv_usage * seen.size.kv_tokens + engine.waiting * prompt


def _peaks(seen: Seen) -> list[tuple[float, float]]:
    """The highest KV use and queue of each replica that can be read now, of the last minute."""
    now = {engine.pod for engine in seen.engines}
    found: dict[str, list[EngineReading]] = {pod: [] for pod in sorted(now)}
    for round_ in seen.since(LOOP_MS):
        for engine in round_.engines:
            if engine.pod in now:
                found[engine.pod].append(engine)
    return [
        (_highest(e.kv_usage for e in of), _highest(e.waiting for e in of)) for of in found.values()
    ]


def _highest(values: Iterable[float | None]) -> float:
    return max((value for value in values if value is not None), default=0.0)
