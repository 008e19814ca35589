"""What is to be done at which time of a rehearsal. Filled by actions.py, run by play.py."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

__all__ = ["Agenda"]


class Agenda:
    """What is to be done at which time; things of one time in the order they were noted."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def at(self, at_ms: int, act: Callable[[], None]) -> None:
        """Do it then."""
        heapq.heappush(self._queue, (at_ms, next(self._numbers), act))

    def run(self, now_ms: int) -> None:
        """Do what is due; what that adds for now is done, too."""
        while self._queue and self._queue[0][0] <= now_ms:
            heapq.heappop(self._queue)[2]()
