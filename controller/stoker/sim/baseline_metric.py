"""The rules that follow one metric, restated: a fixed count, HPA v2, KEDA, LLMScaler.

From semantics.md 1.2 and 1.8. In: a `Seen`. Out: a count and what to remember. Each has its own
knob; what the rule doesn't know stays as it is. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stoker.sim.baseline_past import NO_PAST, Past, Signal, stabilised, total
from stoker.sim.policy import Seen, waiting_outside

__all__ = ["Fixed", "HpaAverageValue", "HpaValue", "Keda", "LlmScaler"]

SYNC_MS = 15_000
HPA_TOLERANCE = 0.1
HPA_WINDOW_MS = 300_000
HPA_STEP_PODS = 4
KEDA_POLL_MS = 30_000
KEDA_COOLDOWN_MS = 300_000


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same count; the knob is the count."""

    count: int
    interval_ms: int = SYNC_MS
    cache_aware: bool = False

    @property
    def name(self) -> str:
        """`fixed 8`."""
        return f"fixed {self.count}"

    def begin(self) -> Past:
        """Nothing."""
        return NO_PAST

    def decide(self, seen: Seen, past: Past) -> tuple[int, Past]:  # noqa: ARG002 - the port
        """The count."""
        return self.count, past


@dataclass(frozen=True, slots=True)
class HpaValue:
    """HPA v2, External metric with a `Value` target: the mean over engines; the knob is the target.

    ceil(ratio x ready), held within the tolerance; so with nothing Ready it stays (k8s 130130).
    """

    target: float
    signal: Signal = Signal.WAITING
    interval_ms: int = SYNC_MS
    cache_aware: bool = False

    @property
    def name(self) -> str:
        """`hpa-value waiting 5`."""
        return f"hpa-value {self.signal} {self.target:g}"

    def begin(self) -> Past:
        """An empty window."""
        return NO_PAST

    def decide(self, seen: Seen, past: Past) -> tuple[int, Past]:
        """One sync."""
        value = total(self.signal, seen.readings)
        if value is None or not seen.wanted or not seen.ready:
            return seen.wanted, past
        ratio = value / len(seen.engines) / self.target
        close = abs(ratio - 1) <= HPA_TOLERANCE
        return _by_hpa(seen, past, seen.wanted if close else math.ceil(ratio * seen.ready))


@dataclass(frozen=True, slots=True)
class HpaAverageValue:
    """HPA v2, External metric with an `AverageValue` target: the sum over engines, and what waits
    at the gateway where `outside`; the knob is the target.

    ceil(total / target), whatever is Ready; the tolerance is against the present count.
    """

    target: float
    signal: Signal = Signal.WAITING
    outside: bool = True
    interval_ms: int = SYNC_MS
    cache_aware: bool = False

    @property
    def name(self) -> str:
        """`hpa-average waiting 5`."""
        return f"hpa-average {self.signal} {self.target:g}"

    def begin(self) -> Past:
        """An empty window."""
        return NO_PAST

    def decide(self, seen: Seen, past: Past) -> tuple[int, Past]:
        """One sync."""
        value = _sum_with_gateway(self.signal, seen, outside=self.outside)
        if value is None or not seen.wanted:
            return seen.wanted, past
        close = abs(value / (self.target * seen.wanted) - 1) <= HPA_TOLERANCE
        return _by_hpa(seen, past, seen.wanted if close else math.ceil(value / self.target))


@dataclass(frozen=True, slots=True)
class Keda:
    """KEDA: HPA's AverageValue between 1 and the maximum, and its own 0 <-> 1 by polling.

    The cooldown applies only to the last replica and comes on top of HPA's window; the knob is
    the target.
    """

    target: float
    signal: Signal = Signal.WAITING
    interval_ms: int = SYNC_MS
    cache_aware: bool = False

    @property
    def name(self) -> str:
        """`keda waiting 5`."""
        return f"keda {self.signal} {self.target:g}"

    def begin(self) -> Past:
        """Nothing seen yet."""
        return NO_PAST

    def decide(self, seen: Seen, past: Past) -> tuple[int, Past]:
        """One sync of the HPA; every second one is a poll of KEDA's."""
        polls = not seen.now_ms % KEDA_POLL_MS
        value = _sum_with_gateway(self.signal, seen, outside=True)
        if value is not None and value > 0:
            past = replace(past, active_ms=seen.now_ms)
        if not seen.wanted:
            return (1 if polls and value else 0), past
        idle_since_ms = past.active_ms if past.active_ms is not None else seen.now_ms
        past = replace(past, active_ms=idle_since_ms)
        hpa = HpaAverageValue(self.target, self.signal)
        count, past = hpa.decide(replace(seen, min_replicas=max(1, seen.min_replicas)), past)
        idle = seen.now_ms - idle_since_ms >= KEDA_COOLDOWN_MS
        if count <= 1 and not seen.min_replicas and polls and idle and value is not None:
            return 0, past
        return count, past


@dataclass(frozen=True, slots=True)
class LlmScaler:
    """LLMScaler (seed 001): ceil(ready x mean / target), up at once, down through a window and
    steps; the knob is the target.
    """

    target: float
    signal: Signal = Signal.WAITING
    window_ms: int = 300_000
    max_step: int = 1
    """Replicas that may leave at once; 0 is no bound."""
    interval_ms: int = SYNC_MS
    cache_aware: bool = True

    @property
    def name(self) -> str:
        """`llmscaler waiting 5`."""
        return f"llmscaler {self.signal} {self.target:g}"

    def begin(self) -> Past:
        """An empty window."""
        return NO_PAST

    def decide(self, seen: Seen, past: Past) -> tuple[int, Past]:
        """One sync; nothing measurable holds."""
        value = total(self.signal, seen.readings)
        if value is None:
            return seen.wanted, past
        mean = value / len(seen.engines)
        asked = seen.clamped(math.ceil(max(1, seen.ready) * mean / self.target))
        highest, past = stabilised(past, seen.now_ms, self.window_ms, asked)
        if asked >= seen.wanted:
            return asked, past
        count = min(seen.wanted, highest)
        return (max(count, seen.wanted - self.max_step) if self.max_step else count), past


def _sum_with_gateway(signal: Signal, seen: Seen, *, outside: bool) -> float | None:
    """None where engines are there and none of them could be read."""
    value = total(signal, seen.readings)
    if value is None and seen.ready:
        return None
    held = waiting_outside(seen.readings) if outside and signal is not Signal.KV else 0.0
    return (value or 0.0) + held


def _by_hpa(seen: Seen, past: Past, asked: int) -> tuple[int, Past]:
    """Bounds, the window on the way down, and at most double (or 4 more) on the way up."""
    highest, past = stabilised(past, seen.now_ms, HPA_WINDOW_MS, seen.clamped(asked))
    count = asked if asked >= seen.wanted else min(seen.wanted, highest)
    most = max(2 * seen.wanted, seen.wanted + HPA_STEP_PODS)
    return seen.clamped(min(count, most)), past
