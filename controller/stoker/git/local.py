"""A person's own clone as a Repo: its objects are read where they lie, without network.

For `diff --base/--head` and `render`: nothing is fetched, written or checked out, and no
hook, filter or helper that the clone's configuration names is run.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from stoker.errors import Refused, Stalled
from stoker.git.command import Git
from stoker.git.objects import ObjectStore
from stoker.git.refs import short_name
from stoker.model.fleet import Blob
from stoker.model.left_out import LeftOut
from stoker.model.ports import PushResult
from stoker.model.refs import SourceRevision

__all__ = ["ANYWHERE", "LocalRepo", "find_git_dir", "open_local", "toplevel"]

MAX_POINTER_BYTES = 4096
ANYWHERE = Path("/")
"""Home of children that never write: no configuration is read from there either."""


def open_local(path: Path, revision: str = "HEAD") -> LocalRepo:
    """The clone that holds `path`, at a revision (branch, tag, commit, `HEAD~2`, `origin/main`).

    Raises Stalled `repository-not-found` where there is no clone; `fetch` raises
    `ref-not-found` when the clone has no such revision.
    """
    git_dir = find_git_dir(path)
    if git_dir is None:
        raise Stalled(f"{path} is in no Git clone", code="repository-not-found")
    return LocalRepo(git_dir, revision)


def find_git_dir(path: Path) -> Path | None:
    """The git folder of the clone (or bare repository) that holds `path`, None without one."""
    start = path.absolute()
    for folder in (start, *start.parents):
        found = _git_dir_of(folder)
        if found is not None:
            return found
    return None


def toplevel(path: Path) -> Path | None:
    """The root of the work tree that holds `path`; None outside one."""
    start = path.absolute()
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    return None


class LocalRepo:
    """A clone of this machine at one revision; reads only."""

    def __init__(self, git_dir: Path, revision: str) -> None:
        self._revision = revision
        self._objects = ObjectStore(Git(ANYWHERE), git_dir)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child that reads objects."""
        self._objects.close()

    def fetch(self) -> SourceRevision:
        """The revision it was opened at; no network is used."""
        return self.resolve(self._revision)

    def resolve(self, revision: str) -> SourceRevision:
        """Anything that git's own revision syntax allows, as a commit."""
        if not revision or not revision.isprintable() or revision.startswith("-"):
            raise Stalled(f"{revision!r} is not a revision", code="ref-invalid")
        commit = self._objects.commit_of(revision)
        if not commit:
            raise Stalled(
                f"the clone has no commit {revision!r}",
                code="ref-not-found",
                hint="fetch it first: git fetch",
            )
        return SourceRevision(short_name(revision), commit)

    def tree(self, commit: str) -> tuple[Blob, ...]:
        """Every regular file of the commit, sorted by path; see `left_out` for what else it holds."""
        return self._objects.tree(commit)

    def left_out(self, commit: str) -> tuple[LeftOut, ...]:
        """Its links, submodules and paths that are too long, sorted by path."""
        return self._objects.left_out(commit)

    def read(self, blobs: tuple[Blob, ...]) -> tuple[bytes, ...]:
        """Contents in the same order; raises Stalled `file-too-large` over 5 MiB."""
        return self._objects.read(blobs)

    def message(self, commit: str) -> str:
        """The commit message."""
        return self._objects.message(commit)

    def commit_files(
        self, branch: str, files: dict[str, bytes | None], message: str, *, attempts: int = 5
    ) -> PushResult:
        """Always raises Refused: a person's clone is never written to."""
        del files, message, attempts
        raise Refused(f"a local clone is only read; {branch} stays as it is", code="read-only")

    def read_branch(self, branch: str, prefix: str = "") -> dict[str, bytes]:
        """Files of a ref of the clone below a prefix; empty when there is no such ref."""
        tip = self._objects.commit_of(branch)
        if not tip:
            return {}
        blobs = tuple(b for b in self.tree(tip) if b.path.startswith(prefix))
        return dict(zip((b.path for b in blobs), self.read(blobs), strict=True))


def _git_dir_of(folder: Path) -> Path | None:
    dot_git = folder / ".git"
    if dot_git.is_dir():
        return dot_git
    if dot_git.is_file() and dot_git.stat().st_size <= MAX_POINTER_BYTES:
        word, _, target = dot_git.read_text("utf-8", "replace").strip().partition(": ")
        if word == "gitdir":
            return (folder / target).resolve()
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir():
        return folder
    return None
