"""How fast decide is, and that it grows with services plus nodes, not with their product.

`run` gives the rows of `make bench`; the fleet is empty in the first three, so every replica
is placed, then standing, then so full that half of the services find no place.
"""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import dataclass, replace
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
from stoker.__main__ import COLLECT_EVERY
from stoker.decide import decide
from stoker.model.fleet import Desired
from stoker.model.history import History
from stoker.model.plan import Plan
from stoker.model.snapshot import Node, ServiceState, Snapshot, WeightCopy

SERVICES, NODES, REPLICAS, GPUS = 1_000, 2_000, 2, 8
ROUNDS = 5


def run() -> list[dict[str, Any]]:
    """CPU seconds, the best of the rounds, and the ratios of doubling.

    The sizes take turns, so that a busy minute of the machine falls on all of them, and
    garbage is collected as often as in the process of the command line.
    """
    before = gc.get_threshold()
    gc.set_threshold(*COLLECT_EVERY)
    try:
        cases = (
            Case.of(SERVICES, NODES),
            Case.of(SERVICES, 2 * NODES),
            Case.of(2 * SERVICES, NODES),
            Case.of(SERVICES, NODES, standing=True),
            Case.of(SERVICES, NODES, gpus=1),
        )
        rounds = [[case.seconds() for case in cases] for _ in range(ROUNDS)]
    finally:
        gc.set_threshold(*before)
    base, more_nodes, more_services, standing, full = (
        min(taken) for taken in zip(*rounds, strict=True)
    )
    what = f"decide {SERVICES} services x {REPLICAS} on {NODES} nodes of {GPUS} GPUs"
    return [
        row(what, base, "CPU s", 2),
        row("decide, twice the nodes", more_nodes / base, "ratio", 2.2),
        row("decide, twice the services", more_services / base, "ratio", 2.2),
        row("decide, all standing", standing, "CPU s", 2),
        row("decide, half without a place", full, "CPU s", 2),
    ]


@dataclass(frozen=True)
class Case:
    """One fleet on one cluster; its plan is checked for what it must hold."""

    desired: Desired
    snapshot: Snapshot
    services: int
    whole: bool

    @classmethod
    def of(cls, services: int, nodes: int, *, standing: bool = False, gpus: int = GPUS) -> Case:
        """So many services on so many nodes, nothing or everything standing."""
        desired = _desired(services)
        snapshot = a_snapshot(*_nodes(nodes, services, gpus), count_pods=False)
        if standing:
            snapshot = _filled(desired, snapshot)
        return cls(desired, snapshot, services, whole=gpus == GPUS)

    def seconds(self) -> float:
        """CPU seconds of one decide."""
        gc.collect()
        began = time.process_time()
        plan = decide(self.desired, some_shapes(self.desired), self.snapshot, History(), NOW_MS)
        taken = time.process_time() - began
        _check(plan, self.services, whole=self.whole)
        return taken


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
