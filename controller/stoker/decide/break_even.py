"""How long an idle replica is worth keeping (seed 002; semantics 6). Pure arithmetic.

Called by zero. Money is in the currency of the pools' prices, times are milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LEAST_GAPS", "MOST_GAPS", "BreakEven", "break_even", "break_even_gap_ms"]

LEAST_GAPS = 5
"""Observed idle times below which nothing is made of their distribution. Ours."""
MOST_GAPS = 24
"""Idle times that are remembered, the newest."""
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class BreakEven:
    """`gap_ms` is the idle time from which one cold start, with the client that it makes wait, is
    cheaper than a warm replica; `dollars_ms` the same for GPU time alone. `wait_ms` is after how
    long an idle replica is given up.
    """

    gap_ms: int
    dollars_ms: int
    wait_ms: int
    gaps: int = 0
    """Observed idle times that `wait_ms` is made of; 0 where they were too few."""

    @property
    def told(self) -> str:
        """Both views, for people."""
        made = f"from {self.gaps} idle times" if self.gaps else "as nothing is known of idle times"
        return (
            f"break-even gap {_minutes(self.gap_ms)} with the SLO, {self.dollars_ms // 1_000}s "
            f"in GPU money alone; gives up after {_minutes(self.wait_ms)} {made}"
        )


def break_even_gap_ms(cold_start_ms: int, breach_cost: float, price_per_hour: float) -> int:
    """g* = t_cold + C_breach / (p / 3600): below it a warm replica is cheaper. `price_per_hour`
    is above zero.
    """
    return cold_start_ms + round(breach_cost / price_per_hour * HOUR_MS)


def break_even(
    gaps_ms: Sequence[int], cold_start_ms: int, breach_cost: float, price_per_hour: float
) -> BreakEven:
    """The answer for these idle times. Too few of them, or none longer than what is cheapest to
    wait for: then an idle replica is kept for g*, which costs at most twice what knowing the end
    of the gap would have (the ski rental bound).
    """
    gap_ms = break_even_gap_ms(cold_start_ms, breach_cost, price_per_hour)
    if len(gaps_ms) < LEAST_GAPS:
        return BreakEven(gap_ms, cold_start_ms, gap_ms)
    best_ms = min(sorted({0, *gaps_ms}), key=lambda wait_ms: _cost(wait_ms, gaps_ms, gap_ms))
    longest = max(gaps_ms)
    wait_ms = max(longest, gap_ms) if best_ms == longest else best_ms
    return BreakEven(gap_ms, cold_start_ms, wait_ms, len(gaps_ms))


def _cost(wait_ms: int, gaps_ms: Sequence[int], gap_ms: int) -> float:
    """E[min(gap, wait)] + P(gap > wait) * g*, in milliseconds of a replica."""
    kept = math.fsum(min(each, wait_ms) for each in gaps_ms)
    stopped = sum(1 for each in gaps_ms if each > wait_ms)
    return (kept + stopped * gap_ms) / len(gaps_ms)


def _minutes(milliseconds: int) -> str:
    return f"{milliseconds / 60_000:.0f} min"
