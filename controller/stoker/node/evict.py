"""Keep a folder of weights within its bound: what was not used for longest goes first.

In: the hub's folder and the marks that starts leave beside it (render/fetch_program.py): what
each start asked for, and the bound of its `cache.maxSize`. Out: what was deleted. Only marked
revisions are touched, never one whose mark is held (its engine lives), that is being fetched,
or that a start asked for lately. Used by node.reporter.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stoker.node.cache import hub_of

__all__ = ["MARKS", "Evicted", "keep_within"]

MARKS = "stoker-marks"
"""Folder of the marks, beside the hub's own."""
YOUNG_SECONDS = 3600.0
"""A start that asked for weights so lately may not have begun to hold them."""
MOST_AT_ONCE = 3
"""Revisions deleted in one look; the next one follows in a minute."""
MAX_MARKS = 1000
MAX_MARK_BYTES = 4096
MAX_ENTRIES = 20_000
"""Entries of the folder that are looked at; a folder with more is left alone."""
_KEY = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Evicted:
    """What one look came to. `gone` are uri@revision, oldest use first; `why` says why the
    bound is not kept: nothing more may go, or the folder could not be looked at.
    """

    gone: tuple[str, ...] = ()
    freed_bytes: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, order=True)
class _Mark:
    """One revision that starts asked for, the longest unused first."""

    used_at: float
    name: str
    revision: str
    key: str
    most_bytes: int

    @property
    def uri(self) -> str:
        return f"hf://{self.name}@{self.revision}"


def keep_within(folder: Path, now_seconds: float) -> Evicted:
    """Look once and delete what is over the bound. Never raises.

    The bound is the largest that any mark names: services that share a folder have one disk.
    Without one nothing is deleted.
    """
    try:
        hub = hub_of(folder)
        if hub is None:
            return Evicted()
        marks = sorted(_marks(hub.parent / MARKS))
        bound = max((mark.most_bytes for mark in marks), default=0)
        if not bound:
            return Evicted()
        over = _taken(hub) - bound
        return _evicted(hub, marks, over, now_seconds) if over > 0 else Evicted()
    except OSError as error:
        return Evicted(why=f"{error.filename or folder}: {error.strerror or error}"[:200])


def _evicted(hub: Path, marks: list[_Mark], over: int, now_seconds: float) -> Evicted:
    gone: list[str] = []
    freed = 0
    for mark in marks:
        if freed >= over or len(gone) == MOST_AT_ONCE:
            break
        if now_seconds - mark.used_at < YOUNG_SECONDS:
            continue
        with _unused(hub.parent / MARKS, mark) as free:
            if free:
                freed += _delete(hub, mark)
                (hub.parent / MARKS / f"{mark.key}.json").unlink(missing_ok=True)
                gone.append(mark.uri)
    why = "" if freed >= over else f"{over - freed} bytes over cache.maxSize, and all is in use"
    return Evicted(tuple(gone), freed, "" if len(gone) == MOST_AT_ONCE else why)


def _marks(place: Path) -> Iterator[_Mark]:
    """Every mark that can be read; others mark nothing."""
    if not _is_folder(place):
        return
    with os.scandir(place) as entries:
        names = sorted(each.name for each in entries)[:MAX_MARKS]
    for name in names:
        key, _, end = name.partition(".")
        if end == "json" and _KEY.fullmatch(key):
            found = _mark(place / name, key)
            if found is not None:
                yield found


def _mark(file: Path, key: str) -> _Mark | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(opened.fileno())
        text = opened.read(MAX_MARK_BYTES) if stat.S_ISREG(status.st_mode) else b""
    try:
        data = json.loads(text)
        name, revision, most = str(data["name"]), str(data["revision"]), str(data["mostBytes"])
    except (ValueError, KeyError, TypeError):
        return None
    if not _NAME.fullmatch(name) or not _COMMIT.fullmatch(revision) or ".." in name:
        return None
    bound = int(most) if most.isascii() and most.isdigit() and len(most) < 19 else 0
    return _Mark(status.st_mtime, name, revision, key, bound)


@contextmanager
def _unused(place: Path, mark: _Mark) -> Iterator[bool]:
    """Whether nobody holds the mark or fetches its weights; nobody can begin meanwhile."""
    with ExitStack() as held:
        for end in ("json", "lock"):
            try:
                flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
                descriptor = os.open(place / f"{mark.key}.{end}", flags)
            except FileNotFoundError:
                continue
            file = held.enter_context(os.fdopen(descriptor, "rb+", buffering=0))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            if os.fstat(file.fileno()).st_mtime != mark.used_at and end == "json":
                yield False  # asked for since it was read
                return
        yield True


def _delete(hub: Path, mark: _Mark) -> int:
    """Delete a snapshot and the blobs that no other snapshot of the model links to; bytes freed.

    Nothing is followed: folders are opened as folders, links are unlinked.
    """
    place = hub / f"models--{mark.name.replace('/', '--')}"
    snapshots, blobs = place / "snapshots", place / "blobs"
    if not all(map(_is_folder, (place, snapshots, blobs))):
        return 0
    mine = _linked(snapshots / mark.revision)
    with os.scandir(snapshots) as entries:
        others = sorted(each.name for each in entries if each.name != mark.revision)
    kept = frozenset(blob for other in others for blob in _linked(snapshots / other))
    if _is_folder(snapshots / mark.revision):
        shutil.rmtree(snapshots / mark.revision)
    going = mine - kept
    if not others:
        with os.scandir(blobs) as entries:
            going |= {each.name for each in entries}  # given-up downloads too
    freed = 0
    root = os.open(blobs, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in sorted(going):
            freed += _unlinked(root, name)
    finally:
        os.close(root)
    return freed


def _unlinked(root: int, name: str) -> int:
    try:
        found = os.stat(name, dir_fd=root, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return 0
        os.unlink(name, dir_fd=root)
    except FileNotFoundError:
        return 0
    return found.st_blocks * 512


def _linked(snapshot: Path) -> frozenset[str]:
    """Names of the blobs that the files of a snapshot link to."""
    found = set()
    for folder, _, files in os.walk(snapshot):
        for name in files:
            file = Path(folder) / name
            if file.is_symlink():
                found.add(file.readlink().name)
    return frozenset(found)


def _taken(hub: Path) -> int:
    """Bytes on disk of all files in the hub's folder, each once; links are as good as nothing."""
    seen: set[tuple[int, int]] = set()
    taken = entries = 0
    for folder, _, files in os.walk(hub):
        for name in files:
            entries += 1
            if entries > MAX_ENTRIES:
                raise OSError(0, f"more than {MAX_ENTRIES} files", str(hub))
            try:
                found = (Path(folder) / name).lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                taken += found.st_blocks * 512
    return taken


def _is_folder(place: Path) -> bool:
    try:
        return stat.S_ISDIR(place.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
