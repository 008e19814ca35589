"""A recorded snapshot, from a folder or from the data ref, for planning without a cluster.

The files are those that report writes to refs/stoker/<fleet> (report/snapshot_files.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from stoker.decide.start_kinds import StartKind
from stoker.errors import BadInput, Finding, SourceLocation, StokerError
from stoker.git import open_local
from stoker.model.codec import from_data
from stoker.model.snapshot import Snapshot
from stoker.model.start_samples import NO_STARTS, Starts
from stoker.model.times import to_milliseconds

__all__ = ["RecordedStarts", "read_recorded", "read_recorded_starts"]

T = TypeVar("T")
Read: TypeAlias = Callable[[str], bytes]

INDEX = "snapshot.json"
STARTS = "starts.json"


@dataclass(frozen=True, slots=True)
class RecordedStarts:
    """What starts took, when it was written down, and the words for its kinds by key."""

    starts: Starts
    taken_at: str = ""
    kinds: tuple[tuple[str, StartKind], ...] = ()


def read_recorded(where: str, repository: Path) -> Snapshot:
    """Read a folder that holds snapshot.json, or a ref of the repository (refs/stoker/NAME).

    Raises BadInput when it is no snapshot or one that left nodes out for its size.
    """
    folder = Path(where)
    try:
        if folder.is_dir():
            return _snapshot(lambda name: (folder / name).read_bytes())
        return _of_ref(where, repository, lambda read, _names: _snapshot(read))
    except (OSError, ValueError, TypeError, KeyError, StokerError) as error:
        raise _bad(where, str(error)) from error


def read_recorded_starts(where: str, repository: Path) -> RecordedStarts:
    """What starts took by such a folder or ref; nothing where it holds none.

    Raises BadInput where there is neither folder nor ref, or the file is no such record.
    """
    folder = Path(where)
    try:
        if folder.is_dir():
            file = folder / STARTS
            return _starts(file.read_bytes() if file.is_file() else b"")
        return _of_ref(
            where, repository, lambda read, names: _starts(read(STARTS) if STARTS in names else b"")
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, StokerError) as error:
        raise _bad(where, str(error)) from error


def _starts(content: bytes) -> RecordedStarts:
    if not content:
        return RecordedStarts(NO_STARTS)
    data: dict[str, Any] = json.loads(content)
    kinds = {key: from_data(StartKind, kind) for key, kind in data["kinds"].items()}
    starts = Starts.from_text(json.dumps(data["starts"]))
    return RecordedStarts(starts, str(data["takenAt"]), tuple(sorted(kinds.items())))


def _of_ref(ref: str, repository: Path, use: Callable[[Read, frozenset[str]], T]) -> T:
    repo = open_local(repository, ref)
    try:
        tree = {blob.path: blob for blob in repo.tree(repo.resolve(ref).commit)}
        return use(lambda name: repo.read((tree[name],))[0], frozenset(tree))
    finally:
        repo.close()


def _snapshot(read: Read) -> Snapshot:
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
        "when_full_overrides": index.get("whenFullOverrides", []),
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
