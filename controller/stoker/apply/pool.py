"""At most four writes in flight, in order: each chain's next stage waits for the one before.

Chains of stages of jobs come in; every result goes to one callback on the caller's thread.
The checkpoint is asked before each job starts; when it raises, what is in flight is still
waited for and reported. Used by apply for everything it sends.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

__all__ = ["IN_FLIGHT", "Chain", "run_chains"]

IN_FLIGHT = 4
"""More threads make the client slower, not the server faster (rig.md section 3)."""

T = TypeVar("T")
Job = Callable[[], T]
Chain = Sequence[Sequence[Job[T]]]


def run_chains(
    chains: Sequence[Chain[T]],
    done: Callable[[T], None],
    checkpoint: Callable[[], None],
    *,
    in_flight: int = IN_FLIGHT,
) -> None:
    """Run every job; chains that come first are preferred, stages of a chain never overlap.

    `done` and `checkpoint` are called on this thread only. With `in_flight` 1 no thread is
    started. Raises what a job, `done` or `checkpoint` raises, after all started jobs ended.
    """
    queue = _Queue(chains)
    if in_flight <= 1:
        while (entry := queue.take()) is not None:
            checkpoint()
            done(entry[1]())
            queue.ended(entry[0])
        return
    with ThreadPoolExecutor(in_flight, thread_name_prefix="stoker-send") as threads:
        _run(queue, threads, done, checkpoint, in_flight)


def _run(
    queue: _Queue[T],
    threads: ThreadPoolExecutor,
    done: Callable[[T], None],
    checkpoint: Callable[[], None],
    in_flight: int,
) -> None:
    started: dict[Future[T], int] = {}
    try:
        while True:
            while len(started) < in_flight and (entry := queue.take()) is not None:
                checkpoint()
                started[threads.submit(entry[1])] = entry[0]
            if not started:
                return
            ended, _ = wait(started, return_when=FIRST_COMPLETED)
            for future in sorted(ended, key=started.__getitem__):
                chain = started.pop(future)
                done(future.result())
                queue.ended(chain)
    finally:
        for future in list(started):
            if future.exception() is None:
                done(future.result())


class _Queue(Generic[T]):
    """Jobs that may start now, those of the first chain first."""

    def __init__(self, chains: Sequence[Chain[T]]) -> None:
        self._chains = [[list(stage) for stage in chain if stage] for chain in chains]
        self._stage = [-1] * len(chains)
        self._open = [0] * len(chains)
        self._ready: list[tuple[int, int]] = []
        for number in range(len(chains)):
            self._next_stage(number)

    def take(self) -> tuple[int, Job[T]] | None:
        """The next job and its chain; None while all wait for others, or at the end."""
        if not self._ready:
            return None
        number, index = heapq.heappop(self._ready)
        return number, self._chains[number][self._stage[number]][index]

    def ended(self, number: int) -> None:
        """Count a job of that chain as done."""
        self._open[number] -= 1
        if not self._open[number]:
            self._next_stage(number)

    def _next_stage(self, number: int) -> None:
        self._stage[number] += 1
        if self._stage[number] < len(self._chains[number]):
            jobs = self._chains[number][self._stage[number]]
            self._open[number] = len(jobs)
            for index in range(len(jobs)):
                heapq.heappush(self._ready, (number, index))
