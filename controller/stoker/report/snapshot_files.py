"""The cluster as a set of small files for the data ref, so that a pull request can be
planned without cluster access.

In: the decide input of one pass. Out: `snapshot.json` and the nodes in shards by the hash
of their name, so that one changed node rewrites one shard. Holds GPUs, warmth and replicas;
no name of a foreign pod, no secret. Called by records.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from stoker.decide.case import canonical_image
from stoker.model.codec import canonical_json, to_data
from stoker.model.fleet import Desired, ModelService, SnapshotDetail
from stoker.model.shape import UnitShape
from stoker.model.snapshot import Node, Replica, ServiceState, Snapshot
from stoker.model.times import rfc3339
from stoker.objects.names import pool_of_place

__all__ = ["INDEX", "MAX_BYTES", "is_truncated", "own_images_only", "shard_of", "snapshot_files"]

INDEX = "snapshot.json"
MAX_BYTES = 5 * 1024 * 1024
"""Bound of all files of one snapshot (design section 7)."""
NODES_A_SHARD = 200

KEPT_LABELS = frozenset(
    {
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "nvidia.com/gpu.product",
        "nvidia.com/gpu.memory",
    }
)
"""Labels that a hashed snapshot keeps beside those that pools select by."""


def own_images_only(snapshot: Snapshot, shapes: Iterable[UnitShape], desired: Desired) -> Snapshot:
    """The same snapshot without images that no unit asks for: they never decide anything."""
    asked = {shape.shape.image for shape in shapes}
    asked |= {
        each.spec.cache.image for each in desired.units if isinstance(each.spec, ModelService)
    }
    wanted = {canonical_image(image) for image in asked if image}
    listed = {image for node in snapshot.nodes for image in node.images}
    known = {image: canonical_image(image) in wanted for image in listed}
    nodes = tuple(
        dataclasses.replace(node, images=tuple(i for i in node.images if known[i]))
        for node in snapshot.nodes
    )
    return dataclasses.replace(snapshot, nodes=nodes)


def snapshot_files(
    snapshot: Snapshot, desired: Desired, detail: SnapshotDetail, salt: str
) -> dict[str, bytes]:
    """All files of a snapshot; empty for detail None.

    Hashed replaces names and UIDs of nodes and leaves out labels that could name them.
    Over 5 MiB, whole shards are left out from the end and `truncated` counts their nodes.
    """
    if detail is SnapshotDetail.NONE:
        return {}
    hashed = detail is SnapshotDetail.HASHED
    if hashed:
        snapshot = _hashed(snapshot, desired, salt)
    shards = max(1, -(-len(snapshot.nodes) // NODES_A_SHARD))
    groups: dict[int, list[Any]] = {number: [] for number in range(shards)}
    for node in snapshot.nodes:
        groups[shard_of(node.name, shards)].append(to_data(node))
    files = {f"snapshot/nodes-{number:03}.json": _lines(nodes) for number, nodes in groups.items()}
    index = {
        "takenAt": rfc3339(snapshot.taken_at_ms),
        "clusterUID": snapshot.cluster_uid,
        "sourceRevision": str(desired.revision),
        "detail": detail.value,
        "nodes": len(snapshot.nodes),
        "shards": sorted(files),
        "services": to_data(snapshot.services),
        "unknown": to_data(snapshot.unknown),
        "suspensions": to_data(snapshot.suspensions),
        "overrides": to_data(snapshot.overrides),
        "unreadOverrides": to_data(snapshot.unread_overrides),
        "whenFullOverrides": to_data(snapshot.when_full_overrides),
        "prefetches": to_data(snapshot.prefetches),
        "truncated": 0,
    }
    return _within_limit(index, files, groups)


def shard_of(name: str, shards: int) -> int:
    """Which of `shards` files a node of that name is in."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % shards


def is_truncated(files: Mapping[str, bytes]) -> bool:
    """Whether nodes were left out of a snapshot for its size."""
    return bool(json.loads(files[INDEX])["truncated"])


def _lines(entries: list[Any]) -> bytes:
    """A JSON list with one entry a line, so that Git stores small differences."""
    return ("[\n" + ",\n".join(canonical_json(entry) for entry in entries) + "\n]\n").encode()


def _within_limit(
    index: dict[str, Any], files: dict[str, bytes], groups: dict[int, list[Any]]
) -> dict[str, bytes]:
    room = MAX_BYTES - len(canonical_json(index)) - 64
    kept: dict[str, bytes] = {}
    for number, path in enumerate(sorted(files)):
        if len(files[path]) <= room:
            kept[path] = files[path]
            room -= len(files[path])
        else:
            index["truncated"] += len(groups[number])
    index["shards"] = sorted(kept)
    return {INDEX: (canonical_json(index) + "\n").encode(), **kept}


def _hashed(snapshot: Snapshot, desired: Desired, salt: str) -> Snapshot:
    selecting = {key for pool in desired.fleet.pools for key, _ in pool.match_labels}
    selecting |= {r.key for pool in desired.fleet.pools for r in pool.match_expressions}
    kept = KEPT_LABELS | (selecting - {"kubernetes.io/hostname"})
    specs = [unit.spec for unit in desired.units if isinstance(unit.spec, ModelService)]
    spread = {spec.limits.spread_key for spec in specs}
    spread |= {spec.group_key for spec in specs if spec.nodes > 1}
    spread -= kept
    keys = {
        unit.ref: unit.spec.group_key
        for unit in desired.units
        if isinstance(unit.spec, ModelService)
    }

    def name(value: str) -> str:
        if not value or pool_of_place(value):  # pools are in the fleet's file
            return value
        return hashlib.sha256(f"{salt}/{value}".encode()).hexdigest()[:12]

    def node(old: Node) -> Node:
        labels = tuple(
            (key, value if key in kept else name(value))
            for key, value in old.labels
            if key in kept or key in spread
        )
        return dataclasses.replace(old, name=name(old.name), uid=name(old.uid), labels=labels)

    def pod(old: Replica) -> Replica:
        workers = tuple(dataclasses.replace(w, node=name(w.node)) for w in old.workers)
        failed = name(old.failed_node)
        return dataclasses.replace(old, node=name(old.node), workers=workers, failed_node=failed)

    def service(old: ServiceState) -> ServiceState:
        told = keys.get(old.ref) in kept
        places = tuple(
            dataclasses.replace(
                place,
                node=name(place.node),
                node_uid=name(place.node_uid),
                pods=tuple(map(pod, place.pods)),
                nodes=tuple(map(name, place.nodes)),
                domain=place.domain if told else name(place.domain),
            )
            for place in old.placements
        )
        return dataclasses.replace(old, placements=places)

    return dataclasses.replace(
        snapshot,
        nodes=tuple(sorted((node(n) for n in snapshot.nodes), key=lambda n: n.name)),
        services=tuple(service(s) for s in snapshot.services),
        prefetches=tuple(
            dataclasses.replace(each, node=name(each.node), node_uid=name(each.node_uid))
            for each in snapshot.prefetches
        ),
    )
