"""FolderRepo: uncommitted files of a folder as a Repo, for `validate`, `render` and tests.

In a work tree the files are those git would add (tracked or not ignored); elsewhere all
files outside dot-folders. Its "commit" is a hash over paths and contents.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Self

from stoker.errors import Refused, Retryable, Stalled
from stoker.git.command import Git
from stoker.git.commit import blob_oid
from stoker.git.local import ANYWHERE, find_git_dir, toplevel
from stoker.git.objects import MAX_BLOB_BYTES
from stoker.model.fleet import Blob
from stoker.model.ports import PushResult
from stoker.model.refs import SourceRevision

__all__ = ["FolderRepo"]

REF = "files"


class FolderRepo:
    """The files below `path`, which counts as the repository root. Reads only."""

    def __init__(self, path: Path) -> None:
        self.root = path.absolute()
        self._contents: dict[str, tuple[int, int, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held open."""

    def fetch(self) -> SourceRevision:
        """The files as they are now; the same files give the same id.

        Raises Stalled `repository-not-found` when there is no such folder.
        """
        if not self.root.is_dir():
            raise Stalled(f"{self.root} is not a folder", code="repository-not-found")
        blobs = self._blobs()
        listing = "".join(f"{blob.oid} {blob.path}\n" for blob in blobs)
        return SourceRevision(REF, blob_oid(listing.encode("utf-8", "backslashreplace")))

    def resolve(self, revision: str) -> SourceRevision:
        """The files as they are now, whatever the revision says: there is only one."""
        del revision
        return self.fetch()

    def tree(self, commit: str) -> tuple[Blob, ...]:
        """Every regular file as it is now, sorted by path; symbolic links are left out."""
        del commit
        return self._blobs()

    def links(self, commit: str) -> tuple[str, ...]:
        """Paths of symbolic links as they are now, sorted."""
        del commit
        return tuple(name for name in self._names() if (self.root / name).is_symlink())

    def read(self, blobs: tuple[Blob, ...]) -> tuple[bytes, ...]:
        """Contents in the same order.

        Raises Stalled `file-too-large` over 5 MiB and Retryable `file-changed` when a file
        changed after it was listed.
        """
        return tuple(self._read(blob) for blob in blobs)

    def message(self, commit: str) -> str:
        """Always empty: nothing is committed."""
        del commit
        return ""

    def commit_files(
        self, branch: str, files: dict[str, bytes | None], message: str, *, attempts: int = 5
    ) -> PushResult:
        """Always raises Refused: a folder has no branches."""
        del files, message, attempts
        raise Refused(f"a folder is only read; there is no {branch}", code="read-only")

    def read_branch(self, branch: str, prefix: str = "") -> dict[str, bytes]:
        """Always empty: a folder has no branches."""
        del branch, prefix
        return {}

    def _read(self, blob: Blob) -> bytes:
        path = self.root / blob.path
        try:
            size = path.stat().st_size
            if size > MAX_BLOB_BYTES:
                raise Stalled(
                    f"{blob.path} has {size} bytes, over the limit of {MAX_BLOB_BYTES}",
                    code="file-too-large",
                )
            content = path.read_bytes()
        except OSError as error:
            raise Retryable(
                f"{blob.path} cannot be read: {error.strerror}", code="file-changed"
            ) from error
        if blob_oid(content) != blob.oid:
            raise Retryable(f"{blob.path} changed while it was read", code="file-changed")
        return content

    def _names(self) -> list[str]:
        names = _listed_by_git(self.root)
        return sorted(_walked(self.root) if names is None else names)

    def _blobs(self) -> tuple[Blob, ...]:
        found: dict[str, tuple[int, int, str]] = {}
        for name in self._names():
            path = self.root / name
            try:
                state = path.lstat()
                if path.is_symlink() or not path.is_file():
                    continue
                known = self._contents.get(name)
                if known is None or known[:2] != (state.st_mtime_ns, state.st_size):
                    known = (state.st_mtime_ns, state.st_size, _oid_of(path, state.st_size))
            except OSError:
                continue
            found[name] = known
        self._contents = found
        return tuple(sorted(Blob(name, oid) for name, (_, _, oid) in found.items()))


def _oid_of(path: Path, size: int) -> str:
    """The blob id; of a file too large to read, an id that no content has."""
    if size > MAX_BLOB_BYTES:
        return hashlib.sha1(f"{path}\0{size}".encode(), usedforsecurity=False).hexdigest()
    return blob_oid(path.read_bytes())


def _listed_by_git(root: Path) -> list[str] | None:
    """What git would add below `root`; None outside a work tree or where git ignores it."""
    top = toplevel(root)
    git_dir = find_git_dir(top) if top is not None else None
    if top is None or git_dir is None:
        return None
    prefix = root.relative_to(top).as_posix()
    git = Git(ANYWHERE)
    if prefix != ".":
        ignored = git.run("check-ignore", "--quiet", "--", prefix, git_dir=git_dir, cwd=top)
        if ignored.ok:
            return None
    answer = git.run(
        *("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"),
        *("--", "." if prefix == "." else f":(literal){prefix}"),
        git_dir=git_dir,
        cwd=top,
    )
    if not answer.ok:
        return None
    start = "" if prefix == "." else f"{prefix}/"
    names = (name.decode("utf-8", "surrogateescape") for name in answer.out.split(b"\0") if name)
    return [name.removeprefix(start) for name in names if name.startswith(start)]


def _walked(root: Path) -> list[str]:
    names: list[str] = []
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        base = Path(folder).relative_to(root)
        linked = [name for name in folders if (Path(folder) / name).is_symlink()]
        names += [(base / name).as_posix() for name in (*files, *linked)]
    return names
