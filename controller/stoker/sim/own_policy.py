"""The controller's own rule as a policy: the same `decide.scale.scale`, on simulated readings.

In: a scaling block and what a controller would know of the service. Out: its count. Used by
`stoker simulate` and the benchmarks.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.decide.count_facts import CountFacts, ReadyPod
from stoker.decide.scale import scale
from stoker.model.scale_history import NO_SCALE, ScaleHistory
from stoker.model.scaling import ScaleDownBehavior, Scaling
from stoker.sim.policy import Seen

__all__ = ["StokerPolicy"]

REV = "simulated"


@dataclass(frozen=True, slots=True)
class StokerPolicy:
    """One scaling block. `expected_start_ms` stands for what earlier services were seen to take,
    until starts of this one are measured; `price_per_hour` of one replica, None when not known.
    """

    scaling: Scaling
    label: str = ""
    expected_start_ms: int = 0
    price_per_hour: float | None = None

    @property
    def name(self) -> str:
        """`stoker`, with what tells it from another."""
        return f"stoker {self.label}".rstrip()

    @property
    def interval_ms(self) -> int:
        """`scaling.interval`."""
        return self.scaling.interval_ms

    @property
    def cache_aware(self) -> bool:
        """`scaling.scaleDown.behavior`."""
        return self.scaling.scale_down.behavior is ScaleDownBehavior.CACHE_AWARE

    def begin(self) -> ScaleHistory:
        """A service that was never scaled."""
        return NO_SCALE

    def decide(self, seen: Seen, past: ScaleHistory) -> tuple[int, ScaleHistory]:
        """One decision, as the controller makes it."""
        start_ms = seen.cold_start_p90_ms
        facts = CountFacts(
            wanted=seen.wanted,
            standing=seen.wanted,
            ready=seen.ready,
            warming=seen.warming,
            stuck=seen.stuck,
            cold_start_p90_ms=self.expected_start_ms if start_ms is None else start_ms,
            price_per_hour=self.price_per_hour,
            rev=REV,
            pods=tuple(ReadyPod(name, name, REV, since) for name, since in seen.ready_pods),
        )
        answer = scale(self.scaling, facts, seen.readings, past, seen.now_ms)
        return answer.replicas, answer.history
