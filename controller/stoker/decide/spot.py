"""When a spot node pays: the discount at which interruptions cost as much as it saves. Pure.

Cost an hour on spot = price * (1 - d) + rate * cost of one interruption; equal to the price on
demand at d* = rate * cost / price (semantics 6). Above 1 no discount pays. explain tells it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Interruption", "break_even_discount", "finish_cost", "hard_kill_cost", "migrate_cost"]

_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Interruption:
    """What one costs: price of a replica in an hour, what a request is worth that is broken,

    how many are in flight, and seconds: of work lost with each, of a cold start, of a drain,
    and of a move of the KV cache. `broken` is the share of one request that is broken all
    the same when those in flight are finished.
    """

    price_per_hour: float
    breach: float = 0.0
    in_flight: float = 0.0
    lost_work_s: float = 0.0
    cold_start_s: float = 0.0
    drain_s: float = 0.0
    migrate_s: float = 0.0
    warm_start_s: float = 0.0
    broken: float = 0.0


def break_even_discount(per_hour: float, cost: float, price_per_hour: float) -> float:
    """The share of the price that spot must be cheaper by; price above 0, others at least 0."""
    return per_hour * cost / price_per_hour


def hard_kill_cost(given: Interruption) -> float:
    """Every request in flight breaks and its work is done again, and a replica starts cold."""
    seconds = given.in_flight * given.lost_work_s + given.cold_start_s
    return given.in_flight * given.breach + seconds * given.price_per_hour / _HOUR_S


def finish_cost(given: Interruption) -> float:
    """Two replicas are paid for while one drains and the other starts; few requests break."""
    seconds = given.drain_s + given.cold_start_s
    return given.broken * given.breach + seconds * given.price_per_hour / _HOUR_S


def migrate_cost(given: Interruption) -> float:
    """Requests take their KV cache along to a replica that starts fast; none breaks."""
    return (given.migrate_s + given.warm_start_s) * given.price_per_hour / _HOUR_S
