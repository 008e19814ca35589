"""Which weights lie on this node: the Hugging Face hub's cache, read without following links.

In: the folder that is the cache volume, HF_HOME or the hub itself. Out: an `Inventory`. A copy
counts as complete only on proof: the hub writes no mark of its own. Used by node.reporter.

Layout (huggingface_hub, "Understand caching"): `models--ORG--NAME/snapshots/COMMIT/FILE` are
links to `../../blobs/ETAG`; a download in progress is `blobs/ETAG.incomplete`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["CachedWeights", "Inventory", "hub_of", "inventory"]

MAX_COPIES = 500
"""Revisions told of one node; the object in the cluster has to stay small."""
MAX_FILES = 5000
"""Files of one snapshot; a model of 1 TB has some 200."""
MAX_DEPTH = 6
MAX_INDEX_BYTES = 16 * 1024 * 1024
_PREFIX = "models--"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<end>\.[a-z]+)")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_HUBS = ("huggingface/hub", "hub", "")
"""Where the hub is below the folder that was named, in the order in which they are tried."""


@dataclass(frozen=True, slots=True, order=True)
class CachedWeights:
    """One revision of a model. `size_bytes` is what of it lies here; `revision` is a commit."""

    uri: str
    revision: str
    size_bytes: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Inventory:
    """What lies there, sorted by uri and revision; None: unknown, and `why` says why."""

    copies: tuple[CachedWeights, ...] | None = None
    why: str = ""


def inventory(folder: Path) -> Inventory:
    """Look once. A folder that does not exist holds nothing; one that cannot be read, or holds
    more than is looked at, is unknown. Never raises.
    """
    try:
        hub = hub_of(folder)
        if hub is None:
            return Inventory(copies=())
        copies: list[CachedWeights] = []
        for place, commit in _snapshots(hub):
            if len(copies) == MAX_COPIES:
                return Inventory(why=f"{folder} holds more than {MAX_COPIES} revisions")
            copies.append(_copy(place, commit))
    except _TooMuch as error:
        return Inventory(why=f"{folder}: {error}")
    except OSError as error:
        return Inventory(why=f"{error.filename or folder}: {error.strerror or error}"[:200])
    return Inventory(copies=tuple(sorted(copies)))


class _TooMuch(Exception):
    """More than is looked at."""


@dataclass(frozen=True, slots=True)
class _File:
    """One file of a snapshot: its path in it, and the blob that it links to (None: dangling)."""

    name: str
    blob: Path | None
    size_bytes: int


def hub_of(folder: Path) -> Path | None:
    """The hub's folder; None when there is none. Raises OSError when that cannot be known."""
    for below in _HUBS:
        place = folder / below if below else folder
        if _is_folder(place):
            return place
    return None


def _is_folder(place: Path) -> bool:
    try:
        return stat.S_ISDIR(place.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _snapshots(hub: Path) -> Iterator[tuple[Path, str]]:
    """Every folder of a model with a commit that it has, sorted."""
    for place in _folders(hub):
        if place.name.startswith(_PREFIX) and _model_of(place.name) and _is_folder(place / "blobs"):
            for snapshot in _folders(place / "snapshots"):
                if _COMMIT.fullmatch(snapshot.name):
                    yield place, snapshot.name


def _folders(place: Path) -> list[Path]:
    """Folders in a folder, sorted; links are none. Nothing when it does not exist."""
    if not _is_folder(place):
        return []
    with os.scandir(place) as entries:
        return sorted(place / e.name for e in entries if e.is_dir(follow_symlinks=False))


def _model_of(name: str) -> str:
    """`models--org--name` as `org/name`; empty for what is no such name."""
    model = name.removeprefix(_PREFIX).replace("--", "/")
    parts = model.split("/")
    plain = all(re.fullmatch(r"[A-Za-z0-9._-]{1,96}", part) for part in parts)
    return model if plain and len(parts) <= 2 else ""


def _copy(place: Path, commit: str) -> CachedWeights:
    files = list(_files(place, commit))
    complete = all(f.blob is not None for f in files) and _has_all(
        {f.name: f for f in files}, downloads=_downloads(place)
    )
    size = sum({f.blob: f.size_bytes for f in files if f.blob is not None}.values())
    return CachedWeights(f"hf://{_model_of(place.name)}", commit, size, complete)


def _files(place: Path, commit: str) -> Iterator[_File]:
    """The files of a snapshot, by what their links say; a link to elsewhere is dangling."""
    root = place / "snapshots" / commit
    waiting = [PurePosixPath()]
    seen = 0
    while waiting:
        folder = waiting.pop()
        with os.scandir(root / folder) as entries:
            for entry in entries:
                seen += 1
                if seen > MAX_FILES or len(folder.parts) >= MAX_DEPTH:
                    raise _TooMuch(f"{place.name} has more than {MAX_FILES} files")
                inner = folder / entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(inner)
                elif entry.is_symlink():
                    yield _linked(place, inner, str((root / inner).readlink()))
                elif entry.is_file(follow_symlinks=False):
                    # Where links cannot be made the hub moves the blob here itself.
                    size = entry.stat(follow_symlinks=False).st_size
                    yield _File(str(inner), root / inner if size else None, size)


def _linked(place: Path, name: PurePosixPath, target: str) -> _File:
    """A file whose link leads to a blob of the same model, and nowhere else."""
    up = "../" * (len(name.parts) + 1)
    blob_name = target.removeprefix(f"{up}blobs/")
    if blob_name == target or "/" in blob_name or blob_name in {"", ".", ".."}:
        return _File(str(name), None, 0)
    blob = place / "blobs" / blob_name
    try:
        found = blob.lstat()
    except FileNotFoundError:
        return _File(str(name), None, 0)
    whole = stat.S_ISREG(found.st_mode) and found.st_size > 0
    return _File(str(name), blob if whole else None, found.st_size if whole else 0)


def _downloads(place: Path) -> bool:
    """Whether some file of the model, of whatever revision, is on its way or was given up."""
    with os.scandir(place / "blobs") as entries:
        return any(entry.name.endswith(".incomplete") for entry in entries)


def _has_all(files: dict[str, _File], *, downloads: bool) -> bool:
    """Whether configuration and every file of the weights are there.

    An index, or names that count (`-00001-of-00004`), prove it. A lone file proves it only
    while nothing of the model is being downloaded.
    """
    weights = [name for name in files if name.endswith(_WEIGHTS)]
    if not weights or ("config.json" not in files and not _is_gguf(weights)):
        return False
    named = [names for index in _INDEXES if (names := _indexed(files.get(index))) is not None]
    if any(index in files for index in _INDEXES) and not named:
        return False
    if named:
        return any(names and names <= files.keys() for names in named)
    sharded = [match for name in weights if (match := _SHARD.fullmatch(name))]
    if sharded:
        return all(
            f"{m['stem']}-{number:05}-of-{m['count']}{m['end']}" in files
            for m in sharded
            for number in range(1, int(m["count"]) + 1)
        )
    return not downloads


def _is_gguf(weights: list[str]) -> bool:
    """GGUF files carry their configuration."""
    return any(name.endswith(".gguf") for name in weights)


def _indexed(index: _File | None) -> frozenset[str] | None:
    """The files that an index names; None where there is no index that can be read."""
    if index is None or index.blob is None or index.size_bytes > MAX_INDEX_BYTES:
        return None
    descriptor = os.open(index.blob, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(MAX_INDEX_BYTES + 1)
    try:
        names = json.loads(text)["weight_map"].values()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return frozenset(str(name) for name in names)
