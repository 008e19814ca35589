"""The consumer of seed 000's experiment: capacity is told, and what is counted is the arm.

In: a `Seen` with arrivals. Out: the present count plus what is lacking. Used by the benchmark
that repeats the published figures; no policy for anybody. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoker.model.readings import Sample
from stoker.sim.policy import Seen

__all__ = ["Instrument"]


@dataclass(frozen=True, slots=True)
class Instrument:
    """desired = present + max(0, need - available); `counts_warming`: available is Ready plus
    warming instead of Ready.
    """

    per_replica: float
    """Requests a second that one serves."""
    counts_warming: bool
    window_ms: int = 10_000
    fuse: int = 40
    interval_ms: int = 5_000
    cache_aware: bool = False

    @property
    def name(self) -> str:
        """Its arm."""
        return "ready plus warming" if self.counts_warming else "ready only"

    def begin(self) -> None:
        """It remembers nothing."""

    def decide(self, seen: Seen, past: None) -> tuple[int, None]:
        """One tick, by the mean rate of the window."""
        rates = [
            load.arrivals.value
            for readings in seen.rounds
            if (load := readings.load) is not None
            and isinstance(load.arrivals, Sample)
            and load.arrivals.at_ms > seen.now_ms - self.window_ms
        ]
        if not rates:
            return seen.wanted, past
        need = math.ceil(math.fsum(rates) / len(rates) / self.per_replica)
        available = seen.ready + (seen.warming if self.counts_warming else 0)
        return min(self.fuse, seen.wanted + max(0, need - available)), past
