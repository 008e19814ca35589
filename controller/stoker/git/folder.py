"""FolderRepo: uncommitted files of a folder as a Repo, for `validate`, `render` and tests.

In a work tree the files are those git would add (tracked or not ignored); elsewhere all
files outside dot-folders. Its "commit" is a hash over paths and contents.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import Self

from stoker.errors import Refused, Retryable, Stalled
from stoker.git.command import Git
from stoker.git.commit import blob_oid
from stoker.git.local import ANYWHERE, find_git_dir, toplevel
from stoker.git.objects import MAX_BLOB_BYTES, Listing
from stoker.model.fleet import Blob
from stoker.model.left_out import LeftOut, WhyLeftOut, shortened
from stoker.model.ports import PushResult
from stoker.model.refs import SourceRevision

__all__ = ["FolderRepo"]

REF = "files"


class FolderRepo:
    """The files below `path`, which counts as the repository root. Reads only."""

    def __init__(self, path: Path) -> None:
        self.root = path.absolute()
        self._contents: dict[str, tuple[int, int, str]] = {}
        self._last: tuple[str, Listing] = ("", ((), ()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held open."""

    def fetch(self) -> SourceRevision:
        """The files as they are now; the same files give the same id.

        Raises Stalled `repository-not-found` when there is no such folder, and
        `folder-unreadable` when it or one below cannot be listed.
        """
        if not self.root.is_dir():
            raise Stalled(f"{self.root} is not a folder", code="repository-not-found")
        found = self._list()
        lines = [f"{blob.oid} {blob.path}\n" for blob in found[0]]
        lines += [f"{each.why.value} {each.path}\n" for each in found[1]]
        commit = blob_oid("".join(lines).encode("utf-8", "backslashreplace"))
        self._last = (commit, found)
        return SourceRevision(REF, commit)

    def resolve(self, revision: str) -> SourceRevision:
        """The files as they are now, whatever the revision says: there is only one."""
        del revision
        return self.fetch()

    def tree(self, commit: str) -> tuple[Blob, ...]:
        """Every regular file, sorted by path: as last fetched, or else as it is now."""
        return self._listed(commit)[0]

    def left_out(self, commit: str) -> tuple[LeftOut, ...]:
        """Links, submodules and what cannot be read, sorted by path; as of the same time."""
        return self._listed(commit)[1]

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

    def _listed(self, commit: str) -> Listing:
        known, found = self._last
        return found if commit == known and known else self._list()

    def _list(self) -> Listing:
        names = _listed_by_git(self.root)
        kept: dict[str, tuple[int, int, str]] = {}
        left_out: list[LeftOut] = []
        for name in sorted(_walked(self.root) if names is None else names):
            try:
                found = self._looked_at(name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                long = error.errno == errno.ENAMETOOLONG
                found = WhyLeftOut.LONG_PATH if long else WhyLeftOut.UNREADABLE
            if isinstance(found, WhyLeftOut):
                left_out.append(LeftOut(name.rstrip("/"), found))
            else:
                kept[name] = found
        self._contents = kept
        blobs = tuple(sorted(Blob(name, oid) for name, (_, _, oid) in kept.items()))
        return blobs, tuple(left_out)

    def _looked_at(self, name: str) -> tuple[int, int, str] | WhyLeftOut:
        """Time of change in ns, size and id of a file; its content is only read when these move."""
        path = self.root / name
        state = path.lstat()
        if stat.S_ISLNK(state.st_mode) or stat.S_ISDIR(state.st_mode):
            # The only folders that git names are other repositories: submodules, or nested.
            return WhyLeftOut.LINK
        if not stat.S_ISREG(state.st_mode):
            return WhyLeftOut.UNREADABLE
        known = self._contents.get(name)
        if known is not None and known[:2] == (state.st_mtime_ns, state.st_size):
            return known
        return (state.st_mtime_ns, state.st_size, _oid_of(path, state.st_size))


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
    try:
        return _names_below(root)
    except OSError as error:
        name = shortened(str(error.filename))
        raise Stalled(
            f"{name} cannot be listed: {error.strerror}", code="folder-unreadable"
        ) from error


def _names_below(root: Path) -> list[str]:
    names: list[str] = []
    for folder, folders, files in os.walk(root, followlinks=False, onerror=_raised):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        base = Path(folder).relative_to(root)
        linked = [name for name in folders if (Path(folder) / name).is_symlink()]
        names += [(base / name).as_posix() for name in (*files, *linked)]
    return names


def _raised(error: OSError) -> None:
    raise error
