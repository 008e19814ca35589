"""What a file of a branch was, commit after commit, as a person's clone knows it.

A clone and a path come in, contents with commit and instant go out, newest first. Called by
`stoker history`; reads only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stoker.errors import Stalled
from stoker.git.command import Git
from stoker.git.local import ANYWHERE, find_git_dir
from stoker.git.objects import MAX_BLOB_BYTES, ObjectStore
from stoker.git.refs import is_commit
from stoker.model.fleet import Blob

__all__ = ["FileVersion", "file_versions"]


@dataclass(frozen=True, slots=True)
class FileVersion:
    """The file as one commit left it; None where that commit removed it or it is too large."""

    commit: str
    committed_ms: int
    content: bytes | None


def file_versions(
    clone: Path, refs: Sequence[str], path: str, *, most: int
) -> Iterator[FileVersion]:
    """Versions of the file on the first of the refs that the clone has; none without one.

    Looks at `most` commits that changed the file. Raises Stalled `repository-not-found` where
    there is no clone.
    """
    git_dir = find_git_dir(clone)
    if git_dir is None:
        raise Stalled(f"{clone} is in no Git clone", code="repository-not-found")
    git = Git(ANYWHERE)
    store = ObjectStore(git, git_dir)
    try:
        tip = next((found for ref in refs if (found := store.commit_of(ref))), "")
        for commit, committed_ms in _log(git, git_dir, tip, path, most) if tip else ():
            oid = store.oid_of(f"{commit}:{path}")
            yield FileVersion(commit, committed_ms, _content(store, path, oid) if oid else None)
    finally:
        store.close()


def _log(git: Git, git_dir: Path, tip: str, path: str, most: int) -> Iterator[tuple[str, int]]:
    bound = f"--max-count={most}"
    answer = git.run("rev-list", "--timestamp", bound, tip, "--", path, git_dir=git_dir)
    for line in answer.out.decode("ascii", "replace").splitlines():
        seconds, _, commit = line.partition(" ")
        if is_commit(commit) and seconds.isdigit():
            yield commit, int(seconds) * 1_000


def _content(store: ObjectStore, path: str, oid: str) -> bytes | None:
    try:
        return store.read((Blob(path, oid),), MAX_BLOB_BYTES)[0]
    except Stalled:
        return None
