"""How fast decide is, and that it grows with services plus nodes, not with their product.

`run` gives the rows of `make bench`; the fleet is empty in the first three, so every replica
is placed, then standing, then so full that half of the services find no place.
"""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from measure import row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from builders import (
    MODEL,
    NOW_MS,
    a_desired,
    a_node,
    a_placement,
    a_pool,
    a_replica,
    a_snapshot,
    a_spot_pool,
    a_state,
    a_unit,
    some_shapes,
)
from stoker.decide import decide
from stoker.model.fleet import Desired
from stoker.model.history import History
from stoker.model.plan import Plan
from stoker.model.snapshot import Node, ServiceState, Snapshot, WeightCopy

SERVICES, NODES, REPLICAS, GPUS = 1_000, 2_000, 2, 8
ROUNDS = 3


def run() -> list[dict[str, Any]]:
    """Seconds of one core, the best of three rounds, and the ratios of doubling."""
    base = seconds(SERVICES, NODES)
    more_nodes = seconds(SERVICES, 2 * NODES) / base
    more_services = seconds(2 * SERVICES, NODES) / base
    what = f"decide {SERVICES} services x {REPLICAS} on {NODES} nodes of {GPUS} GPUs"
    return [
        row(what, base, "CPU s", 2),
        row("decide, twice the nodes", more_nodes, "ratio", 2.2),
        row("decide, twice the services", more_services, "ratio", 2.2),
        row("decide, all standing", seconds(SERVICES, NODES, standing=True), "CPU s", 2),
        row("decide, half without a place", seconds(SERVICES, NODES, gpus=1), "CPU s", 2),
    ]


def seconds(services: int, nodes: int, *, standing: bool = False, gpus: int = GPUS) -> float:
    """CPU seconds of one decide; the plan is checked for what it must hold."""
    best = float("inf")
    desired = _desired(services)
    snapshot = a_snapshot(*_nodes(nodes, services, gpus), count_pods=False)
    if standing:
        snapshot = _filled(desired, snapshot)
    for _ in range(ROUNDS):
        gc.collect()
        began = time.process_time()
        plan = decide(desired, some_shapes(desired), snapshot, History(), NOW_MS)
        best = min(best, time.process_time() - began)
        _check(plan, services, whole=gpus == GPUS)
    return best


def _desired(services: int) -> Desired:
    return a_desired(
        *(
            a_unit(
                f"model-{number:05}",
                replicas=REPLICAS,
                model_revision=f"{number:040x}",
                gpu_count=(1, 2, 4, 1)[number % 4],
                pools=("l4", "spot") if number % 3 else ("spot", "l4"),
            )
            for number in range(services)
        ),
        pools=(a_pool("l4"), a_spot_pool("spot")),
    )


def _nodes(nodes: int, services: int, gpus: int) -> tuple[Node, ...]:
    """Two pools, half the nodes each, some of their GPUs in use; each model on a few nodes."""
    return tuple(
        replace(
            a_node(
                f"node-{number:05}",
                pool="l4" if number % 2 else "spot",
                gpus=gpus,
                used=number % 7 % 4 if gpus == GPUS else 0,
                labels={"kubernetes.io/hostname": f"node-{number:05}", "zone": f"z{number % 3}"},
                images=tuple(f"registry.example/other:{number + step}" for step in range(20)),
            ),
            weights=tuple(
                WeightCopy(MODEL, f"{(number * 7 + step) % services:040x}") for step in range(3)
            ),
        )
        for number in range(nodes)
    )


def _filled(desired: Desired, snapshot: Snapshot) -> Snapshot:
    """The fleet as a first plan leaves it, every pod Ready."""
    plan = decide(desired, some_shapes(desired), snapshot, History(), NOW_MS)
    services = [
        a_state(
            *(
                a_placement(
                    placement.node,
                    *(
                        a_replica(f"{placement.name}-{number}", placement.node)
                        for number in range(placement.count)
                    ),
                    service=decision.ref.name,
                )
                for placement in decision.placements
            ),
            name=decision.ref.name,
        )
        for decision in plan.decisions
    ]
    return replace(snapshot, services=_sorted(services))


def _sorted(services: list[ServiceState]) -> tuple[ServiceState, ...]:
    return tuple(sorted(services, key=lambda state: state.ref))


def _check(plan: Plan, services: int, *, whole: bool) -> None:
    placed = sum(p.count for decision in plan.decisions for p in decision.placements)
    held = sum(1 for decision in plan.decisions if decision.holds)
    if whole and (placed != services * REPLICAS or held):
        raise AssertionError(f"{placed} replicas placed, {held} services held")
    if not whole and not 0 < placed < services * REPLICAS:
        raise AssertionError(f"{placed} replicas placed on a fleet that is too small")
