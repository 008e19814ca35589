"""A recorded snapshot, from a folder or from the data ref, for planning without a cluster.

The files are those that report writes to refs/stoker/<fleet> (report/snapshot_files.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stoker.errors import BadInput, Finding, SourceLocation, StokerError
from stoker.git import open_local
from stoker.model.codec import from_data
from stoker.model.snapshot import Snapshot
from stoker.model.times import to_milliseconds

__all__ = ["read_recorded"]

INDEX = "snapshot.json"


def read_recorded(where: str, repository: Path) -> Snapshot:
    """Read a folder that holds snapshot.json, or a ref of the repository (refs/stoker/NAME).

    Raises BadInput when it is no snapshot or one that left nodes out for its size.
    """
    folder = Path(where)
    try:
        if folder.is_dir():
            return _snapshot(lambda name: (folder / name).read_bytes())
        return _of_ref(where, repository)
    except (OSError, ValueError, TypeError, KeyError, StokerError) as error:
        raise _bad(where, str(error)) from error


def _of_ref(ref: str, repository: Path) -> Snapshot:
    repo = open_local(repository, ref)
    try:
        tree = {blob.path: blob for blob in repo.tree(repo.resolve(ref).commit)}
        return _snapshot(lambda name: repo.read((tree[name],))[0])
    finally:
        repo.close()


def _snapshot(read: Callable[[str], bytes]) -> Snapshot:
    index: dict[str, Any] = json.loads(read(INDEX))
    if index.get("truncated"):
        message = f"{index['truncated']} nodes were left out of it for its size"
        raise ValueError(message)
    nodes = [node for shard in index["shards"] for node in json.loads(read(shard))]
    data = {
        "taken_at_ms": to_milliseconds(index["takenAt"]),
        "cluster_uid": index["clusterUID"],
        "nodes": sorted(nodes, key=lambda node: str(node["name"])),
        "services": index["services"],
        "unknown": index["unknown"],
        "suspensions": index.get("suspensions", []),
        "overrides": index.get("overrides", []),
        "unread_overrides": index.get("unreadOverrides", []),
        "prefetches": index.get("prefetches", []),
    }
    return from_data(Snapshot, data)


def _bad(where: str, why: str) -> BadInput:
    finding = Finding(
        SourceLocation(where),
        "invalid-snapshot",
        f"not a snapshot that this version can read: {why}",
        hint="a folder with snapshot.json, or a fetched ref: git fetch origin "
        "refs/stoker/NAME:refs/stoker/NAME",
    )
    return BadInput((finding,))
