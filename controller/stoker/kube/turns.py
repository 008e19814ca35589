"""Turns at a few connections, in the order in which they were asked for.

A pool that merely blocks hands a free connection to whoever asks at that moment: threads that
ask again at once kept two others from theirs for 30 s (8 threads, 6 connections, 20,000
requests on two cores, our own measurement, 2026-11-30). Used by kube.https around each exchange.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Turns"]


class Turns:
    """At most `size` at once; who waits is served first come, first served."""

    def __init__(self, size: int, new_gate: Callable[[], Any] = threading.Lock) -> None:
        self._free = size
        self._new_gate = new_gate
        self._waiting: deque[Any] = deque()
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, seconds: float) -> Iterator[bool]:
        """Whether a turn came within that time; it ends with the block."""
        if not self._take(seconds):
            yield False
            return
        try:
            yield True
        finally:
            self._give()

    def _take(self, seconds: float) -> bool:
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            gate = self._new_gate()
            gate.acquire()
            self._waiting.append(gate)
        if gate.acquire(timeout=max(0.0, seconds)):
            return True
        with self._lock:
            if gate in self._waiting:
                self._waiting.remove(gate)
                return False
        return True  # it was handed over as the time ran out

    def _give(self) -> None:
        """Hand it to who waits longest: nobody who comes later can be faster."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1
