"""A bare mirror in a private folder: fetched into, repaired by itself, never checked out.

A killed git needs no person (cases.md row 1): whoever writes holds an flock that its git
children inherit, so once the lock is ours no git of ours is alive and every `*.lock` or
half-written pack in the mirror is litter. A mirror that git calls corrupt is built anew
beside the old one and swapped in only when the fetch into it has succeeded.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from stoker.errors import Retryable, StokerError
from stoker.git.command import Answer, Git
from stoker.git.objects import ObjectStore
from stoker.git.remote import Remote
from stoker.git.trouble import Trouble, classify, error_of, folder_error
from stoker.model.ports import Clock

__all__ = ["Mirror"]

LOCK_POLL_SECONDS = 0.05
MAINTENANCE_SECONDS = 24 * 3600.0
LOOSE_OBJECTS_KEPT = 2000
PACKS_KEPT = 50
"""Git's own `gc --auto` packs at 6,700 loose objects or 50 packs."""
LITTER = ("*.lock", "objects/pack/*.keep", "fast_import_crash_*", "gc.pid")
"""What lies at one depth; locks and `tmp_*` at any depth are found in one walk."""
FETCH_OPTIONS = (
    "--no-tags",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-show-forced-updates",
    "--no-progress",
    "--quiet",
    "--refmap=",
)


class Mirror:
    """One bare repository under `folder`, which belongs to us alone (0700)."""

    def __init__(self, folder: Path, git: Git, clock: Clock) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.path = folder / "mirror.git"
        self._folder = folder
        self._git = git
        self._clock = clock
        self.objects = ObjectStore(git, self.path)
        self._maintained_at: float | None = None
        self._patience = 0.0
        self.corrupt = False
        """Set by whoever met an unreadable object: the next fetch rebuilds."""

    def fetch(self, remote: Remote, source: str, local: str) -> None:
        """Bring one ref (or commit) of the remote into a ref of the mirror.

        Leaves the mirror as it was when it fails. Raises what git's answer means.
        """
        with self.writing() as lock:
            if not self.corrupt and self._usable():
                answer = self._fetch_patiently(remote, source, local, lock)
                if answer.ok:
                    return
                if classify(answer.errors) is not Trouble.CORRUPT:
                    raise _fetch_error(remote, answer)
            self._rebuild(remote, source, local, lock)

    @contextmanager
    def writing(self) -> Iterator[int]:
        """Hold the mirror for local writes; gives the descriptor that git children inherit.

        Raises Retryable `mirror-busy` when another process holds it too long, `disk-full` or
        `state-folder-unusable` when the folder takes no writes. Waits in real time, whatever
        the clock: the holder is a process. (A child that another thread has just forked holds
        a copy of our descriptor until it executes git.)
        """
        try:
            with self._locking() as descriptor:
                yield descriptor
        except OSError as error:
            raise folder_error(error, self._folder) from error

    @contextmanager
    def _locking(self) -> Iterator[int]:
        pause = threading.Event()
        descriptor = os.open(
            self._folder / "mirror.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            tries = int(self._git.limits.lock_seconds / LOCK_POLL_SECONDS)
            while not _locked(descriptor):
                if tries <= 0:
                    raise Retryable(
                        f"another process writes to the mirror in {self._folder}",
                        code="mirror-busy",
                    )
                tries -= 1
                pause.wait(LOCK_POLL_SECONDS)
            self._sweep()
            yield descriptor
        finally:
            os.close(descriptor)

    def ensure(self) -> None:
        """Make an empty mirror where there is none, to commit into before any fetch."""
        if self._usable():
            return
        shutil.rmtree(self.path, ignore_errors=True)
        self._create(self.path)

    def maintain(self) -> None:
        """Pack what has gathered, at most once a day; drops nothing younger than two weeks."""
        now = self._clock.monotonic()
        if self._maintained_at is not None and now - self._maintained_at < MAINTENANCE_SECONDS:
            return
        self._maintained_at = now
        if self._grown():
            with self.writing() as lock, suppress(StokerError):
                self._git.run(
                    *("gc", "--quiet", "--prune=2.weeks.ago"),
                    git_dir=self.path,
                    inherit=(lock,),
                    seconds=self._git.limits.first_fetch_seconds,
                )

    def _fetch_patiently(self, remote: Remote, source: str, local: str, lock: int) -> Answer:
        """Fetch with a limit that doubles after each timeout, so that a large change arrives."""
        limits = remote.git.limits
        if not self.objects.oid_of(local):
            self._patience = limits.first_fetch_seconds
        seconds = min(max(self._patience, limits.network_seconds), limits.first_fetch_seconds)
        self._patience = 2 * seconds
        answer = _fetch_into(self.path, remote, source, local, lock, seconds)
        self._patience = 0.0
        return answer

    def _grown(self) -> bool:
        answer = self._git.run("count-objects", "-v", git_dir=self.path)
        lines = (line.split(": ") for line in answer.out.decode().splitlines())
        counts = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}
        return counts.get("count", 0) > LOOSE_OBJECTS_KEPT or counts.get("packs", 0) > PACKS_KEPT

    def _usable(self) -> bool:
        """Whether git would take the folder for a repository; what else is wrong, it says."""
        folders = all((self.path / name).is_dir() for name in ("objects", "refs"))
        return folders and (self.path / "HEAD").is_file()

    def _create(self, path: Path) -> None:
        answer = self._git.run("init", "--quiet", "--bare", "--template=", "--", str(path))
        if not answer.ok:
            raise error_of("creating", answer.errors, shown=str(path))

    def _rebuild(self, remote: Remote, source: str, local: str, lock: int) -> None:
        beside = self._folder / "mirror.new"
        shutil.rmtree(beside, ignore_errors=True)
        self._create(beside)
        seconds = remote.git.limits.first_fetch_seconds
        answer = _fetch_into(beside, remote, source, local, lock, seconds)
        if not answer.ok:
            shutil.rmtree(beside, ignore_errors=True)
            raise _fetch_error(remote, answer)
        old = self._folder / "mirror.old"
        shutil.rmtree(old, ignore_errors=True)
        if self.path.exists():
            self.path.rename(old)
        beside.rename(self.path)
        self.objects.forget()
        shutil.rmtree(old, ignore_errors=True)
        self.corrupt = False

    def _deep(self) -> Iterator[Path]:
        """Locks below refs, locks and half-written objects below objects."""
        for part, prefix in (("refs", ""), ("objects", "tmp_")):
            for folder, _, names in os.walk(self.path / part):
                for name in names:
                    if name.endswith(".lock") or (prefix and name.startswith(prefix)):
                        yield Path(folder, name)

    def _sweep(self) -> None:
        """Delete what a killed git left behind; safe because nobody else can be writing."""
        for path in [*(p for pattern in LITTER for p in self.path.glob(pattern)), *self._deep()]:
            with suppress(OSError):
                path.unlink()
        for path in self.path.glob("objects/incoming-*"):
            shutil.rmtree(path, ignore_errors=True)


def _fetch_into(
    path: Path, remote: Remote, source: str, local: str, lock: int, seconds: float
) -> Answer:
    return remote.git.run(
        *("fetch", *FETCH_OPTIONS, "--", remote.address.operand, f"+{source}:{local}"),
        git_dir=path,
        inherit=(lock,),
        seconds=seconds,
    )


def _fetch_error(remote: Remote, answer: Answer) -> StokerError:
    return error_of("fetching", answer.errors, shown=remote.address.shown, secrets=remote.secrets)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
