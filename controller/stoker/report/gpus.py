"""GPUs by pool: how many there are, how many are asked for, how many nodes are lost.

In: the snapshot and the fleet's pools. A pool whose nodes cannot be read is unknown, never
zero. Called by documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.decide.eligible import pool_of
from stoker.model.fleet import Desired, ModelService, Pool
from stoker.model.snapshot import Node, Snapshot

__all__ = ["gpus_by_pool"]

DEFAULT_RESOURCE = "nvidia.com/gpu"


def gpus_by_pool(desired: Desired, snapshot: Snapshot | None) -> list[dict[str, Any]]:
    """One entry a pool, in the fleet's order: `{pool, capacity, used, lostNodes?, unknownNodes?}`.

    A node counts as lost while it is not ready. Every GPU resource that a service asks
    for is counted.
    """
    if snapshot is None or any(what == "nodes" for what, _ in snapshot.unknown):
        return [{"pool": pool.name, "capacity": None, "used": None} for pool in desired.fleet.pools]
    resources = sorted(
        {unit.spec.gpu_resource for unit in desired.units if isinstance(unit.spec, ModelService)}
        or {DEFAULT_RESOURCE}
    )
    labelled = [(node, dict(node.labels)) for node in snapshot.nodes]
    return [
        _entry(pool, [node for node, labels in labelled if pool_of(labels, (pool,))], resources)
        for pool in desired.fleet.pools
    ]


def _entry(pool: Pool, nodes: Iterable[Node], resources: Iterable[str]) -> dict[str, Any]:
    capacity = used = lost = unknown = 0
    for node in nodes:
        if node.gpu_unknown:
            unknown += 1
            continue
        if not node.ready:
            lost += 1
            continue
        capacity += sum(node.allocatable.device(resource) for resource in resources)
        used += sum(node.used.device(resource) for resource in resources)
    entry: dict[str, Any] = {"pool": pool.name, "capacity": capacity, "used": used}
    if lost:
        entry["lostNodes"] = lost
    if unknown:
        entry["unknownNodes"] = unknown
    return entry
