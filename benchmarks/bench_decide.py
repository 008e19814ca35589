"""How fast decide is, and that it grows with services plus nodes, not with their product.

`run()` gives rows for the benchmark report; `python benchmarks/bench_decide.py` prints them.
"""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from measure import row

from builders import (
    MODEL,
    NOW_MS,
    a_desired,
    a_node,
    a_pool,
    a_snapshot,
    a_spot_pool,
    a_unit,
    some_shapes,
)
from stoker.decide import decide
from stoker.model.history import History
from stoker.model.plan import Plan
from stoker.model.snapshot import WeightCopy

SERVICES, NODES, REPLICAS, GPUS = 1_000, 2_000, 2, 8
BAR_SECONDS = 2.0
BAR_RATIO = 2.2
ROUNDS = 3


def run() -> list[dict[str, Any]]:
    """Rows {section, measure, value, unit, bar, holds}; seconds of one core, best of rounds."""
    base = seconds(SERVICES, NODES)
    nodes = seconds(SERVICES, 2 * NODES) / base
    services = seconds(2 * SERVICES, NODES) / base
    what = f"decide {SERVICES} services x {REPLICAS} replicas on {NODES} nodes of {GPUS} GPUs"
    return [
        row(what, base, "s", BAR_SECONDS),
        row("decide, twice the nodes", nodes, "ratio", BAR_RATIO),
        row("decide, twice the services", services, "ratio", BAR_RATIO),
    ]


def seconds(services: int, nodes: int) -> float:
    """CPU seconds of one decide that places every replica of an empty fleet."""
    best = float("inf")
    for _ in range(ROUNDS):
        arguments = _world(services, nodes)
        gc.collect()
        began = time.process_time()
        plan = decide(*arguments)
        best = min(best, time.process_time() - began)
        _check(plan, services)
    return best


def _world(services: int, nodes: int):
    """Two pools, half the nodes each; every model is held by a few nodes, 40 % are in use."""
    desired = a_desired(
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
    snapshot = a_snapshot(
        *(
            a_node(
                f"node-{number:05}",
                pool="l4" if number % 2 else "spot",
                gpus=GPUS,
                used=number % 7 % 4,
                labels={"kubernetes.io/hostname": f"node-{number:05}", "zone": f"z{number % 3}"},
                images=(f"registry.example/other:{number % 50}",),
            )
            for number in range(nodes)
        )
    )
    snapshot = _with_weights(snapshot, services)
    return desired, some_shapes(desired), snapshot, History(), NOW_MS


def _with_weights(snapshot, services: int):
    def copies(number: int):
        held = {(number * 7 + step) % services for step in range(3)}
        return tuple(WeightCopy(MODEL, f"{model:040x}") for model in sorted(held))

    nodes = tuple(
        replace(node, weights=copies(number)) for number, node in enumerate(snapshot.nodes)
    )
    return replace(snapshot, nodes=nodes)


def _check(plan: Plan, services: int) -> None:
    placed = sum(p.count for decision in plan.decisions for p in decision.placements)
    if placed != services * REPLICAS:
        message = f"{placed} replicas placed instead of {services * REPLICAS}"
        raise AssertionError(message)


if __name__ == "__main__":
    for found in run():
        print(found)
