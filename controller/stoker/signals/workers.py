"""A bounded number of threads that answer questions, and are left behind where they hang.

In: jobs. Out: what came of each within a time. Daemon threads, so that a server that trickles
its answer delays no end of the process. Used by signals.reader.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from stoker.log import get_log

__all__ = ["Round", "Workers"]

T = TypeVar("T")
_log = get_log("signals")


class Round(Generic[T]):
    """Jobs begun together; whoever began them takes what is there when the time is over."""

    def __init__(self, jobs: Sequence[Callable[[], T]]) -> None:
        self._jobs = tuple(jobs)
        self._results: list[T | None] = [None] * len(self._jobs)
        self._left = len(self._jobs)
        self._over = False
        self._changed = threading.Condition()

    def results(self, seconds: float) -> tuple[T | None, ...]:
        """What came of each job in the order given, waiting at most that long for all.

        None: not ended, crashed, or not begun, and then it never will be.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._left == 0, timeout=max(0.0, seconds))
            self._over = True
            return tuple(self._results)

    def act(self, index: int) -> None:
        """Do one job, unless nobody waits for it any more."""
        if self._over:
            return
        result: T | None = None
        try:
            result = self._jobs[index]()
        except Exception:  # noqa: BLE001 - the top of a thread: reported, and no answer
            _log.exception("signals.job-crashed")
        with self._changed:
            if not self._over:
                self._results[index] = result
            self._left -= 1
            self._changed.notify_all()


class Workers:
    """At most `most` threads, each started when it is first needed."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def begin(self, jobs: Sequence[Callable[[], T]]) -> Round[T]:
        """Have the jobs done; to be called on one thread alone."""
        found: Round[T] = Round(jobs)
        for index in range(len(jobs)):
            self._jobs.put(lambda index=index: found.act(index))  # type: ignore[misc]
        for _ in range(min(self._most, len(jobs)) - len(self._threads)):
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return found

    def close(self) -> None:
        """Let the threads end; one that hangs ends when its request does."""
        for _ in self._threads:
            self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
