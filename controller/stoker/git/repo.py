"""GitRepo: the Repo port on a remote repository, through a bare mirror.

The poller's thread fetches, the reconciler reads files, the publisher commits status. Only
fetch, read_branch and commit_files touch the network; each of their git children has a
time limit, so a hanging server costs its own thread that long and nobody else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from stoker.errors import Retryable, Stalled
from stoker.git.command import Git, RunLimits
from stoker.git.commit import PushVerdict, check_paths, differing, import_commit
from stoker.git.credentials import Credentials
from stoker.git.mirror import Mirror
from stoker.git.refs import candidates, check_ref, is_commit, short_name
from stoker.git.remote import Remote, connect
from stoker.git.trouble import Trouble
from stoker.git.url import parse_address
from stoker.model.fleet import Blob
from stoker.model.left_out import LeftOut
from stoker.model.ports import Clock, PushResult
from stoker.model.refs import SourceRevision

__all__ = ["GitRepo", "RefMove"]

_COMMIT_PREFIX = re.compile(r"[0-9a-f]{7,64}")
BACKOFF_SECONDS = 0.1
"""First wait after a lost race; grows with each attempt, spread by the commit's own id."""


class RefMove(StrEnum):
    """How the tracked ref moved at the last fetch that found it changed."""

    NONE = "None"
    FORWARD = "Forward"
    REWOUND = "Rewound"
    """To a commit that does not contain the former one: a force-push or a moved tag."""


class GitRepo:
    """One remote repository and the ref that is tracked in it.

    `url` follows git/url.py, `ref` is a branch, tag (peeled) or commit; `folder` is private
    to this repository. `credentials` may be a function, asked before each network use, so
    that rotated tokens are picked up. `allow_file` admits paths, for tests and the demo.
    `home` is the user's home, for known_hosts where the credentials name none. `before_push`
    is called right before each push; what it raises is raised, and nothing is pushed.
    """

    def __init__(
        self,
        url: str,
        ref: str,
        folder: Path,
        *,
        clock: Clock,
        credentials: Credentials | Callable[[], Credentials] | None = None,
        allow_file: bool = False,
        limits: RunLimits | None = None,
        proxy: str = "",
        home: Path | None = None,
        before_push: Callable[[], None] = lambda: None,
    ) -> None:
        self._address = parse_address(url, allow_file=allow_file)
        self._ref = check_ref(ref)
        self._clock = clock
        self._credentials = credentials
        self._limits = limits or RunLimits()
        self._proxy = proxy
        self._user_home = home
        self._before_push = before_push
        self._home = folder / "home"
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._git = Git(self._home, limits=self._limits)
        self._mirror = Mirror(folder, self._git, clock)
        self._tracked = f"refs/stoker/tracked/{self._key(ref)}"
        self._last: tuple[str, SourceRevision] | None = None
        self._pushed: dict[str, str] = {}
        """By branch what we pushed last: taken for its tip until a push says otherwise."""
        self.last_move = RefMove.NONE

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The address as it may be shown: without any user part."""
        return self._address.shown

    def close(self) -> None:
        """End the child process that reads objects."""
        self._mirror.objects.close()

    def fetch(self) -> SourceRevision:
        """Ask the remote for the tracked ref and fetch it when it moved.

        Raises Unreachable, Retryable or Stalled with the codes of the port; the mirror and
        every commit read before stay readable.
        """
        if is_commit(self._ref):
            return self.resolve(self._ref)
        remote = self._remote().find(self._ref)
        if self._last is not None and not self._mirror.corrupt and self._last[0] == remote.oid:
            return self._last[1]
        before = self._mirror.objects.commit_of(self._tracked)
        if self._mirror.corrupt or not before or self._tracked_oid() != remote.oid:
            self._mirror.fetch(self._remote(), remote.name, self._tracked)
        oid = self._tracked_oid()
        commit = self._mirror.objects.commit_of(self._tracked)
        if not commit:
            raise Stalled(
                f"{short_name(remote.name)} does not lead to a commit", code="ref-not-found"
            )
        self._note_move(before, commit)
        revision = SourceRevision(short_name(remote.name), commit)
        self._last = (oid, revision)
        self._mirror.maintain()
        return revision

    def resolve(self, revision: str) -> SourceRevision:
        """A commit id, or a branch or tag, as a revision.

        The tracked ref and commits of the mirror need no network, so the last known
        revision is at hand while the remote is down. Other names are asked for and fetched.
        """
        check_ref(revision)
        if candidates(revision) == candidates(self._ref) and not is_commit(revision):
            commit = self._mirror.objects.commit_of(self._tracked)
            if commit:
                return SourceRevision(short_name(self._ref), commit)
            return self.fetch()
        known = (
            self._mirror.objects.commit_of(revision) if _COMMIT_PREFIX.fullmatch(revision) else ""
        )
        if known:
            return SourceRevision(short_name(self._ref), known)
        local = f"refs/stoker/resolved/{self._key(revision)}"
        if is_commit(revision):
            self._mirror.fetch(self._remote(), revision, local)
            name = self._ref
        else:
            name = self._remote().find(revision).name
            self._mirror.fetch(self._remote(), name, local)
        commit = self._mirror.objects.commit_of(local)
        if not commit:
            raise Stalled(f"{revision} does not lead to a commit", code="ref-not-found")
        return SourceRevision(short_name(name), commit)

    def tree(self, commit: str) -> tuple[Blob, ...]:
        """Every regular file of the commit, sorted by path; see `left_out` for what else it holds."""
        with self._noticing_corruption():
            return self._mirror.objects.tree(commit)

    def left_out(self, commit: str) -> tuple[LeftOut, ...]:
        """Its links, submodules and paths that are too long, sorted by path."""
        with self._noticing_corruption():
            return self._mirror.objects.left_out(commit)

    def read(self, blobs: tuple[Blob, ...]) -> tuple[bytes, ...]:
        """Contents in the same order; raises Stalled `file-too-large` over 5 MiB."""
        with self._noticing_corruption():
            return self._mirror.objects.read(blobs)

    def message(self, commit: str) -> str:
        """The commit message."""
        with self._noticing_corruption():
            return self._mirror.objects.message(commit)

    def read_branch(self, branch: str, prefix: str = "") -> dict[str, bytes]:
        """Files of a full ref of the remote below a prefix; empty when there is no such ref."""
        check_ref(branch)
        tip = self._branch_tip(branch)
        if not tip:
            return {}
        blobs = tuple(b for b in self.tree(tip) if b.path.startswith(prefix))
        return dict(zip((b.path for b in blobs), self.read(blobs), strict=True))

    def commit_files(
        self, branch: str, files: dict[str, bytes | None], message: str, *, attempts: int = 5
    ) -> PushResult:
        """Commit files (None deletes) on a full ref of the remote, in one commit, and push.

        Never forced. A branch is taken to stand where our last push left it, which saves a
        question; after a lost race the new tip is fetched and the same files go on top of it;
        Retryable `push-race-lost` after `attempts`. Only the first commit of a branch
        that never existed is a root: a deleted branch is continued (cases.md row 11).
        Nothing is committed when nothing differs (row 13).
        """
        check_ref(branch)
        check_paths(files)
        for attempt in range(1, attempts + 1):
            tip, commit = self._made(branch, files, message)
            if not commit or commit == tip:
                return PushResult(commit=tip, pushed=False)
            remote = self._remote()
            self._before_push()
            verdict, reason = remote.push(self._mirror.path, commit, branch)
            if verdict is PushVerdict.PUSHED:
                self._note_branch(branch, commit)
                self._pushed[branch] = commit
                return PushResult(commit=commit, pushed=True)
            if verdict is PushVerdict.REFUSED:
                return PushResult(commit=tip, pushed=False, rejected=reason)
            spread = int(hashlib.sha256(commit.encode()).hexdigest()[:4], 16) / 0xFFFF
            self._clock.wait(BACKOFF_SECONDS * attempt * (0.5 + spread))
        raise Retryable(
            f"{short_name(branch)} moved {attempts} times while we tried to push",
            code="push-race-lost",
        )

    def _key(self, name: str) -> str:
        return hashlib.sha256(f"{self._address.operand}\0{name}".encode()).hexdigest()[:16]

    def _branch_ref(self, branch: str) -> str:
        return f"refs/stoker/branches/{self._key(branch)}"

    def _tracked_oid(self) -> str:
        return self._mirror.objects.oid_of(self._tracked)

    def _note_move(self, before: str, commit: str) -> None:
        if before in {"", commit}:
            return
        answer = self._git.run(
            "merge-base", "--is-ancestor", before, commit, git_dir=self._mirror.path
        )
        self.last_move = RefMove.FORWARD if answer.ok else RefMove.REWOUND

    def _remote(self) -> Remote:
        given = self._credentials() if callable(self._credentials) else self._credentials
        return connect(
            self._address,
            given or Credentials(),
            home=self._home,
            limits=self._limits,
            proxy=self._proxy,
            user_home=self._user_home,
        )

    @contextmanager
    def _noticing_corruption(self) -> Iterator[None]:
        """Have the next fetch rebuild the mirror when an object of it cannot be read."""
        try:
            yield
        except Retryable as error:
            if error.code == Trouble.CORRUPT.value:
                self._mirror.corrupt = True
            raise

    def _branch_tip(self, branch: str) -> str:
        """The tip of a branch of the remote, fetched; empty when it has no such branch."""
        self._pushed.pop(branch, None)
        oid = self._remote().list((branch,)).get(branch, "")
        local = self._branch_ref(branch)
        if oid and self._mirror.objects.oid_of(local) != oid:
            self._mirror.fetch(self._remote(), branch, local)
            oid = self._mirror.objects.oid_of(local)
        return oid

    def _made(self, branch: str, files: dict[str, bytes | None], message: str) -> tuple[str, str]:
        """The branch's tip and the commit to push on it, as `_commit_on` gives it."""
        known = self._pushed.pop(branch, "")
        if known:
            commit = self._commit_on(branch, known, files, message)
            if commit != known:
                return known, commit
        tip = self._branch_tip(branch)
        parent = tip or self._mirror.objects.oid_of(self._branch_ref(branch))
        return tip, self._commit_on(branch, parent, files, message)

    def _commit_on(
        self, branch: str, parent: str, files: dict[str, bytes | None], message: str
    ) -> str:
        """The commit to push, `parent` itself when nothing differs, empty for nothing at all."""
        tree = self.tree(parent) if parent else ()
        changed = differing(files, tree, parent)
        if not changed:
            return parent
        with self._noticing_corruption(), self._mirror.writing() as lock:
            self._mirror.ensure()
            return import_commit(
                self._git,
                self._mirror.path,
                f"refs/stoker/made/{self._key(branch)}",
                parent=parent,
                files=changed,
                message=message,
                seconds_since_epoch=self._clock.now_ms() // 1000,
                lock=lock,
            )

    def _note_branch(self, branch: str, commit: str) -> None:
        with self._mirror.writing() as lock:
            self._git.run(
                *("update-ref", self._branch_ref(branch), commit),
                git_dir=self._mirror.path,
                inherit=(lock,),
            )
