"""Spot interruptions as this fleet has seen them, and from which discount on spot pays. Pure.

decide remembers what `spot_after` gives, explain prints `spot_lines`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from stoker.decide.case import Case
from stoker.decide.place import Index
from stoker.decide.spot import (
    Interruption,
    break_even_discount,
    finish_cost,
    hard_kill_cost,
    migrate_cost,
)
from stoker.model.fleet import CapacityType, Fleet, ModelService
from stoker.model.history import History
from stoker.model.plan import ServiceDecision
from stoker.model.snapshot import Node, ReplicaPhase
from stoker.model.spot_history import NO_SPOT, SpotHistory

__all__ = ["spot_after", "spot_lines"]

MOST_NOTICED = 32
LONGEST_DRAIN_MS = 120_000
"""The longest notice of a cloud: a drain has no more time than that (semantics 1.12)."""
MIGRATE_S, WARM_START_S = 5.0, 21.0
"""What moving a KV cache and a start with everything at hand take, in semantics 6."""


def spot_after(
    known: SpotHistory, case: Case, index: Index, going: Mapping[str, Node], now_ms: int
) -> SpotHistory:
    """The next history; the same while nothing has changed."""
    pools = {p.name for p in case.ask.pools if p.capacity_type is CapacityType.SPOT}
    if not pools:
        return NO_SPOT
    nodes = [
        pod.node
        for placement in case.state.placements
        for pod in placement.pods
        if pod.phase is not ReplicaPhase.TERMINATING and pod.node
        if index.pool(case, pod.node) in pools
    ]
    there = {going[name].uid for name in nodes if name in going}
    new = there - set(known.noticed)
    lost = sum(1 for name in nodes if name in going and going[name].uid in new)
    noticed = tuple(sorted(there)[:MOST_NOTICED])
    if len(nodes) == known.replicas and noticed == known.noticed:
        return known
    elapsed_ms = max(0, now_ms - known.at_ms) if known.at_ms else 0
    return replace(
        known,
        lost=known.lost + lost,
        replica_ms=known.replica_ms + known.replicas * elapsed_ms,
        replicas=len(nodes),
        at_ms=now_ms,
        noticed=noticed,
    )


def spot_lines(
    fleet: Fleet, spec: ModelService, decision: ServiceDecision, history: History, now_ms: int
) -> Iterator[str]:
    """What interruptions cost by policy; nothing without an interruption, a price or an estimate."""
    seen = history.of(decision.ref).spot
    hours = seen.replica_hours(now_ms)
    spot, on_demand = (
        _price(fleet, spec, kind) for kind in (CapacityType.SPOT, CapacityType.ON_DEMAND)
    )
    price = on_demand or spot
    starts = [a.readiness.p50_ms for a in decision.attempts if a.readiness is not None]
    if not seen.lost or hours <= 0 or not price or not starts:
        return
    drain_ms = min(spec.drain.endpoint_sync_ms + spec.drain.max_ms, LONGEST_DRAIN_MS)
    given = Interruption(
        price_per_hour=price,
        cold_start_s=max(starts) / 1_000,
        drain_s=drain_ms / 1_000,
        migrate_s=MIGRATE_S,
        warm_start_s=WARM_START_S,
    )
    rate = seen.lost / hours
    costs = (
        ("HardKill", hard_kill_cost(given)),
        ("FinishInFlight", finish_cost(given)),
        ("migrating, not built", migrate_cost(given)),
    )
    told = ", ".join(
        f"{100 * break_even_discount(rate, cost, price):.2f} % ({name})" for name, cost in costs
    )
    yield f"SPOT   {seen.lost} interruptions in {hours:.0f} replica-hours ({rate:.3f} an hour)"
    yield f"  pays from a discount of {told}; requests that break are not priced"
    if spot and on_demand:
        yield f"  the pools differ by {100 * (1 - spot / on_demand):.0f} %"


def _price(fleet: Fleet, spec: ModelService, kind: CapacityType) -> float:
    """Price of one replica for an hour in the service's first pool of that kind; 0 for unknown."""
    pools = {pool.name: pool for pool in fleet.pools}
    names = spec.pools or tuple(pools)
    for name in names:
        pool = pools.get(name)
        if pool is None or pool.capacity_type is not kind or pool.price_per_gpu_hour is None:
            continue
        try:
            price = Decimal(pool.price_per_gpu_hour)
        except InvalidOperation:
            continue
        gpus = spec.gpu_count * spec.nodes
        return float(price) * gpus if price.is_finite() and price > 0 else 0.0
    return 0.0
