"""A count by somebody who knows the trace: what a policy that guesses nothing wrong would hold.

In: the trace, and the engine's step model. Out: a policy for `sim.fleet_run`. It asks for what
the load needs between a start from now and the look after that, and lets go as soon as less
would do. No proof that less is impossible: a bound to measure distances from. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from stoker.sim.clock import DEFAULT_START_MS
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.policy import Seen
from stoker.sim.traffic import Request, busy_seconds

__all__ = ["Clairvoyant", "clairvoyant"]

BIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Clairvoyant:
    """`work` is the replicas kept busy in each bin of BIN_SECONDS; the knob is how busy they may
    be, above 0 and at most 1.
    """

    work: tuple[float, ...]
    cold_start_s: float
    busy_share: float = 0.8
    interval_ms: int = 15_000
    cache_aware: bool = True

    @property
    def name(self) -> str:
        """`clairvoyant 0.8`."""
        return f"clairvoyant {self.busy_share:g}"

    def begin(self) -> None:
        """It knows all it needs."""

    def decide(self, seen: Seen, past: None) -> tuple[int, None]:
        """What is needed until a purchase of the next look could be Ready."""
        now_s = (seen.now_ms - DEFAULT_START_MS) / 1000
        until_s = now_s + self.cold_start_s + 2 * self.interval_ms / 1000
        first, last = int(now_s // BIN_SECONDS), int(until_s // BIN_SECONDS)
        busiest = max(self.work[first : last + 1], default=0.0)
        return max(1, math.ceil(busiest / self.busy_share)), past


def clairvoyant(
    requests: Iterable[Request],
    profile: BatchProfile,
    cold_start_s: float,
    busy_share: float = 0.8,
    smooth_seconds: float = 30.0,
) -> Clairvoyant:
    """The policy of a trace. Work is spread over the seconds that follow its arrival, since an
    answer takes time; a burst within them needs no replica of its own.
    """
    bins: list[float] = []
    for request in requests:
        place = int(request.at_s // BIN_SECONDS)
        bins.extend([0.0] * (place + 1 - len(bins)))
        bins[place] += busy_seconds(request, profile) / BIN_SECONDS
    width = max(1, round(smooth_seconds / BIN_SECONDS))
    sums = [0.0]
    for work in bins:
        sums.append(sums[-1] + work)
    smooth = tuple(
        (sums[place + 1] - sums[max(0, place + 1 - width)]) / width for place in range(len(bins))
    )
    return Clairvoyant(smooth, cold_start_s, busy_share)
