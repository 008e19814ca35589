"""AIBrix's KPA, restated from semantics.md 1.7: stable and panic windows over one metric.

In: a `Seen`. Out: a count and what to remember. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stoker.sim.baseline_past import NO_PAST, Past, Signal, stabilised, total
from stoker.sim.policy import Seen

__all__ = ["AibrixKpa"]

STABLE_MS = 180_000
PANIC_MS = 60_000
PANIC_RATIO = 2.0
TOLERANCE = 0.1
DOWN_MS = 300_000


@dataclass(frozen=True, slots=True)
class AibrixKpa:
    """The mean total of a window by the target, at most double and at least half of the Ready.

    Panic (the short window is twice the long one) takes the short one and never shrinks. With
    `pending_guard`, as since 2026-09, nothing is bought while earlier replicas are on their way.
    The knob is the target.
    """

    target: float
    signal: Signal = Signal.IN_FLIGHT
    pending_guard: bool = True
    interval_ms: int = 15_000
    cache_aware: bool = False

    @property
    def name(self) -> str:
        """`kpa in-flight 20`."""
        return f"kpa {self.signal} {self.target:g}"

    def begin(self) -> Past:
        """Calm."""
        return NO_PAST

    def decide(self, seen: Seen, past: Past) -> tuple[int, Past]:
        """One sync."""
        stable, panic = self._mean(seen, STABLE_MS), self._mean(seen, PANIC_MS)
        if stable is None or panic is None:
            return seen.wanted, past
        if stable <= 0 or panic / stable > PANIC_RATIO:
            past = replace(past, panic_ms=seen.now_ms)
        panics = past.panic_ms is not None and seen.now_ms - past.panic_ms < PANIC_MS
        observed = panic if panics else stable
        ratio = observed / (self.target * max(1, seen.ready))
        asked = seen.wanted
        if abs(ratio - 1) > TOLERANCE:
            asked = math.ceil(observed / self.target)
            asked = max(seen.ready // 2, min(asked, max(1, 2 * seen.ready)))
        if panics:
            asked = max(asked, seen.wanted)
        if self.pending_guard and seen.warming and asked > seen.wanted:
            asked = seen.wanted
        highest, past = stabilised(past, seen.now_ms, DOWN_MS, seen.clamped(asked))
        return seen.clamped(asked if asked >= seen.wanted else min(seen.wanted, highest)), past

    def _mean(self, seen: Seen, window_ms: int) -> float | None:
        values = [total(self.signal, readings) for readings in seen.since(window_ms)]
        known = [value for value in values if value is not None]
        return math.fsum(known) / len(known) if known else None
