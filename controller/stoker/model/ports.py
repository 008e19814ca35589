"""The ports: everything the stages need from outside.

Implemented by kube, git and clock; in tests by the in-memory cluster, a local
repository and a virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from stoker.model.fleet import Blob
from stoker.model.left_out import LeftOut
from stoker.model.refs import ObjectRef, SourceRevision

__all__ = [
    "ApiResource",
    "Clock",
    "Cluster",
    "ListPage",
    "PatchType",
    "PushResult",
    "Repo",
    "ServerInfo",
    "WatchEvent",
]

PatchType = Literal["merge", "strategic", "json"]


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Who the API server is. `cluster_uid` is the UID of namespace kube-system."""

    version: str
    cluster_uid: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A served kind."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    subresources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListPage:
    """One whole list (pages already joined), at one resourceVersion."""

    resource_version: str
    items: tuple[dict[str, Any], ...] = field(hash=False)


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK, with the object (for BOOKMARK only its rv)."""

    type: str
    object: dict[str, Any] = field(hash=False)


class Cluster(Protocol):
    """The API server. Raises kube.errors.ApiError subclasses of the error tree:

    NotFound, KindNotFound, Conflict (field, stale or uid), Invalid, Forbidden, Gone,
    TooManyRequests, ServerFailure, and errors.Unreachable when no answer came.
    Manifests are plain dicts; a dry run changes nothing.
    """

    def server(self) -> ServerInfo:
        """Version and cluster UID, read once."""
        ...

    def resource(self, group: str, kind: str, version: str = "") -> ApiResource:
        """The served resource of a kind; raises KindNotFound. Discovery is cached."""
        ...

    def forget_discovery(self) -> None:
        """Read discovery again at the next `resource` (a CRD came or went)."""
        ...

    def hide_in_errors(self, hide: Callable[[str], str]) -> None:
        """Send every text of a refusal through `hide` from now on: it quotes what it refuses."""
        ...

    def get(self, ref: ObjectRef, *, subresource: str = "") -> dict[str, Any]:
        """Read one object."""
        ...

    def list(
        self,
        group: str,
        kind: str,
        namespace: str = "",
        *,
        version: str = "",
        label_selector: str = "",
        metadata_only: bool = False,
        each: Callable[[dict[str, Any]], None] | None = None,
    ) -> ListPage:
        """Read all objects of a kind, in one namespace or (empty) in all.

        With `each` every object is given to it as it comes, and the answer has none.
        """
        ...

    def watch(
        self,
        group: str,
        kind: str,
        namespace: str = "",
        *,
        version: str = "",
        resource_version: str,
        timeout_seconds: int = 300,
        label_selector: str = "",
    ) -> Iterator[WatchEvent]:
        """Events after that version until the server ends the stream; Gone on a 410."""
        ...

    def apply(
        self,
        manifest: dict[str, Any],
        *,
        manager: str,
        force: bool = False,
        dry_run: bool = False,
        subresource: str = "",
    ) -> dict[str, Any]:
        """Server-side apply; gives the object as stored (or as it would be)."""
        ...

    def patch(
        self,
        ref: ObjectRef,
        kind: PatchType,
        body: Any,
        *,
        manager: str,
        subresource: str = "",
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Merge, strategic-merge or JSON patch."""
        ...

    def create(
        self, manifest: dict[str, Any], *, manager: str, dry_run: bool = False
    ) -> dict[str, Any]:
        """POST; AlreadyExists when the name is taken."""
        ...

    def update(
        self, manifest: dict[str, Any], *, manager: str, subresource: str = ""
    ) -> dict[str, Any]:
        """PUT; with metadata.resourceVersion it fails with Conflict on a stale one."""
        ...

    def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> None:
        """Delete with preconditions; NotFound when absent, Conflict on a mismatch."""
        ...


@dataclass(frozen=True, slots=True)
class PushResult:
    """What came of a push. `rejected` holds the server's reason when it said no."""

    commit: str
    pushed: bool
    rejected: str = ""


class Repo(Protocol):
    """One Git repository, through a bare mirror; never a work tree.

    Raises errors.Unreachable or errors.Stalled with codes repository-unreachable,
    repository-empty, repository-not-found, repository-denied, ref-not-found.
    """

    def fetch(self) -> SourceRevision:
        """Ask the remote for the tracked ref and fetch it when it moved.

        One ls-remote when nothing moved. A failed fetch leaves the mirror as it was.
        """
        ...

    def resolve(self, revision: str) -> SourceRevision:
        """A branch, tag (peeled) or commit of the mirror as a revision."""
        ...

    def tree(self, commit: str) -> tuple[Blob, ...]:
        """Every regular file of the commit, sorted by path."""
        ...

    def left_out(self, commit: str) -> tuple[LeftOut, ...]:
        """What else it holds, sorted by path: links and submodules, and what cannot be read."""
        ...

    def read(self, blobs: tuple[Blob, ...]) -> tuple[bytes, ...]:
        """Contents in the same order; raises Stalled over the size limit."""
        ...

    def message(self, commit: str) -> str:
        """The commit message."""
        ...

    def commit_files(
        self, branch: str, files: dict[str, bytes | None], message: str, *, attempts: int = 5
    ) -> PushResult:
        """Commit files (None deletes) on a branch of the remote, in one commit, and push.

        `branch` is a full ref. Never forced; on a race the remote tip is fetched and
        the same files committed on top of it. Foreign files stay untouched. Nothing is
        committed when nothing differs.
        """
        ...

    def read_branch(self, branch: str, prefix: str = "") -> dict[str, bytes]:
        """Files of a full ref of the remote below a prefix; empty when there is no such ref."""
        ...


class Clock(Protocol):
    """Time. `now_ms` is for people and deadlines in the cluster, `monotonic` for waiting."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back."""
        ...

    def wait(self, seconds: float) -> None:
        """Return after that time."""
        ...
