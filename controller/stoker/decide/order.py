"""The five orders: which of the nodes that fit is best. Called by place.

A key compares smallest first and has two parts: `near` is what all nodes of a class share,
`place_in_class` what tells them apart. WarmthFirst and EfficiencyAware follow the seed:
the class outranks everything, an absent signal ranks below any present one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from stoker.decide.ready_in import Facts
from stoker.model.fleet import PlacementOrder
from stoker.model.snapshot import Node, NodeWarmth, ServiceState, Signals

__all__ = [
    "START_RULES",
    "Key",
    "Stand",
    "active_services",
    "fresh",
    "near",
    "place_in_class",
    "start_rule",
    "warmth_rank",
]

Key: TypeAlias = tuple[Any, ...]
"""Comparable with keys of the same order only."""

_COLD: Final = 2
_RANKS: Final = {NodeWarmth.WARM: 0, NodeWarmth.WARMING: 1, NodeWarmth.COLD: _COLD, None: _COLD}


@dataclass(frozen=True, slots=True)
class Stand:
    """How one node stands in its class: free GPUs, replicas of the same service, signals.

    `active` counts services there, with what this pass has placed; None: nobody knows.
    """

    free_gpus: int
    own_here: bool
    name: str
    signals: Signals = field(default_factory=Signals)
    active: int | None = None


START_RULES = ("soonest", "pool-order", "bin-pack", "spread", "warmth-first", "efficiency-aware")
"""By which a node is chosen, as `explain` names it."""


def start_rule(order: PlacementOrder, *, urgent: bool) -> str:
    """The rule that chooses the node of one start; one of START_RULES."""
    match order:
        case PlacementOrder.READY_POOL_PACK:
            return "soonest" if urgent else "pool-order"
        case PlacementOrder.BIN_PACK:
            return "bin-pack"
        case PlacementOrder.SPREAD:
            return "spread"
        case PlacementOrder.WARMTH_FIRST:
            return "warmth-first"
        case PlacementOrder.EFFICIENCY_AWARE:
            return "efficiency-aware"


def near(order: PlacementOrder, *, bucket: int, pool: int, warmth: int, urgent: bool) -> Key:
    """What outranks everything that tells nodes of a class apart.

    ReadyPoolPack: ready-in bucket, then pool (the place in the service's list), for a start
    that restores the floor or answers a notice; for any other start pool, then bucket.
    """
    if order.reads_signals:
        return (warmth,)
    if order is PlacementOrder.READY_POOL_PACK:
        return (bucket, pool) if urgent else (pool, bucket)
    return ()


def place_in_class(
    order: PlacementOrder, stand: Stand, *, bucket: int, pool: int, urgent: bool
) -> Key:
    """The rest of the key, down to the name.

    BinPack: the least free GPUs that still fit, so that whole nodes stay free. Spread: a node
    without a replica of the same service, then the most free GPUs. Where those are equal,
    both go on as ReadyPoolPack begins.
    """
    soonest = (bucket, pool) if urgent else (pool, bucket)
    signals = stand.signals
    match order:
        case PlacementOrder.READY_POOL_PACK:
            return (int(stand.own_here), stand.free_gpus, stand.name)
        case PlacementOrder.BIN_PACK:
            return (stand.free_gpus, *soonest, stand.name)
        case PlacementOrder.SPREAD:
            return (int(stand.own_here), -stand.free_gpus, *soonest, stand.name)
        case PlacementOrder.WARMTH_FIRST:
            return (*_least(stand.active), *_least(signals.gpu_utilization), stand.name)
        case PlacementOrder.EFFICIENCY_AWARE:
            return (
                *_most(signals.tokens_per_joule),
                *_most(signals.kv_hit_rate),
                *_least(signals.gpu_utilization),
                *_least(stand.active),
                stand.name,
            )


def warmth_rank(facts: Facts, reported: NodeWarmth | None) -> int:
    """0 Warm, 1 Warming, 2 Cold: the better of what we know of this model and what the node
    says of itself.
    """
    known = _COLD
    if facts.serving or facts.weights:
        known = 0
    elif facts.warming:
        known = 1
    return min(known, _RANKS[reported])


def fresh(signals: Signals, now_ms: int, max_age_ms: int | None) -> Signals:
    """The same without what is older than the limit.

    With a limit, hit rate and tokens per joule without an instant, or with one in the future,
    are absent too: their age is unknown (semantics 1.1). The others have the instant of the
    last report, where there is one: a reporter that died goes on saying nothing.
    """
    if max_age_ms is None:
        return signals

    def is_fresh(at_ms: int | None) -> bool:
        return at_ms is not None and 0 <= now_ms - at_ms <= max_age_ms

    hit_rate = signals.kv_hit_rate if is_fresh(signals.kv_hit_rate_at_ms) else None
    joules = signals.tokens_per_joule if is_fresh(signals.tokens_per_joule_at_ms) else None
    heard = signals.reported_at_ms is None or is_fresh(signals.reported_at_ms)
    return Signals(
        warmth=signals.warmth if heard else None,
        active_services=signals.active_services if heard else None,
        gpu_utilization=signals.gpu_utilization if heard else None,
        kv_hit_rate=hit_rate,
        tokens_per_joule=joules,
    )


def active_services(
    nodes: Iterable[Node], services: Iterable[ServiceState]
) -> dict[str, int | None]:
    """Services by node: what the node reports or what we know to stand there, if that is more.

    None where neither says anything.
    """
    active: dict[str, int | None] = {node.name: node.signals.active_services for node in nodes}
    standing: dict[str, int] = {}
    for state in services:
        for name in {each.node for each in state.placements if each.node and not each.terminating}:
            standing[name] = standing.get(name, 0) + 1
    for name, count in standing.items():
        active[name] = max(active.get(name) or 0, count)
    return active


def _least(value: float | None) -> tuple[bool, float]:
    """Less is better; absent is worst."""
    return (True, 0) if value is None else (False, value)


def _most(value: float | None) -> tuple[bool, float]:
    """More is better; absent is worst."""
    return (True, 0) if value is None else (False, -value)
