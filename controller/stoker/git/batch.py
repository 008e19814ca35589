"""Long-lived `git cat-file` children: names in, contents or object ids out.

Each is shared by the threads that read one repository; a lock serialises them, since requests
and answers share two pipes. It starts at the first read, and again after it died once.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

from stoker.errors import Retryable, Stalled
from stoker.git.command import Git, kill_group

__all__ = ["BatchNames", "BatchReader", "GitObject"]

GitObject = tuple[str, bytes]
"""Type (`blob`, `commit`, `tree`, `tag`) and content."""

CHUNK = 256
"""Requests sent at once: 16 KiB of ids at most, far below a pipe's 64 KiB, so no deadlock."""
READ_BYTES = 1 << 18


class _Batch:
    """A child of one git folder. It ends with close, or with the reader."""

    _OPTION = "--batch"

    def __init__(self, git: Git, git_dir: Path) -> None:
        self._git = git
        self._git_dir = git_dir
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._rest = bytearray()
        weakref.finalize(self, _end, self._running)

    def close(self) -> None:
        """End the child; a later read starts a new one."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._rest.clear()
        _end(self._running)

    def _ask(self, names: Sequence[str]) -> None:
        if not self._running:
            self._running.append(
                self._git.start(
                    "cat-file", self._OPTION, git_dir=self._git_dir, errors=subprocess.DEVNULL
                )
            )
        requests = self._running[0].stdin
        assert requests is not None
        try:
            requests.write("".join(f"{name}\n" for name in names).encode())
            requests.flush()
        except BrokenPipeError:
            raise EOFError from None

    def _line(self) -> bytes:
        while (end := self._rest.find(b"\n")) < 0:
            self._fill()
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

    def _fill(self) -> None:
        answers = self._running[0].stdout
        assert answers is not None
        descriptor = answers.fileno()
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        if not poller.poll(self._git.limits.local_seconds * 1000):
            raise Retryable("git cat-file stopped answering", code="mirror-corrupt")
        data = os.read(descriptor, READ_BYTES)
        if not data:
            raise EOFError
        self._rest += data


class BatchNames(_Batch):
    """Looks up what names of one git folder stand for."""

    _OPTION = "--batch-check"

    def oid(self, name: str) -> str:
        """The object that a revision leads to; empty where there is none, or no such folder."""
        if any(not character.isprintable() for character in name):
            return ""
        if not (self._git_dir / "HEAD").exists():
            return ""
        with self._lock:
            for _ in range(2):
                try:
                    self._ask((name,))
                    words = self._line().decode("ascii", "replace").split()
                except EOFError:
                    self._close()
                except BaseException:
                    self._close()
                    raise
                else:
                    # `<oid> <type> <size>`, or the name and what is wrong with it.
                    return words[0] if len(words) == 3 and words[2].isdigit() else ""
        return ""


class BatchReader(_Batch):
    """Reads objects of one git folder."""

    def read(self, oids: Sequence[str], *, limit_bytes: int) -> list[GitObject]:
        """Objects in the same order, each once read whole.

        Raises Stalled `file-too-large` (naming the object id) and Retryable
        `mirror-corrupt` when an object is missing or cannot be read.
        """
        with self._lock:
            try:
                return self._read(oids, limit_bytes)
            except EOFError:
                self._close()
            try:
                return self._read(oids, limit_bytes)
            except EOFError:
                self._close()
                raise Retryable(
                    "git could not read an object of the mirror", code="mirror-corrupt"
                ) from None

    def _read(self, oids: Sequence[str], limit_bytes: int) -> list[GitObject]:
        found: list[GitObject] = []
        try:
            for start in range(0, len(oids), CHUNK):
                part = oids[start : start + CHUNK]
                self._ask(part)
                found.extend(self._answer(oid, limit_bytes) for oid in part)
        except EOFError:
            raise
        except BaseException:
            self._close()
            raise
        return found

    def _answer(self, oid: str, limit_bytes: int) -> GitObject:
        words = self._line().split()
        if len(words) != 3:
            raise Retryable(f"object {oid[:12]} is not in the mirror", code="mirror-corrupt")
        size = int(words[2])
        if size > limit_bytes:
            raise Stalled(
                f"{oid} has {size} bytes, over the limit of {limit_bytes}", code="file-too-large"
            )
        while len(self._rest) < size + 1:
            self._fill()
        content = bytes(self._rest[:size])
        del self._rest[: size + 1]
        return words[1].decode(), content


def _end(running: list[subprocess.Popen[bytes]]) -> None:
    """Kill the child, if there is one; also called when a reader is dropped or we exit."""
    while running:
        kill_group(running.pop())
