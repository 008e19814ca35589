"""Virtual time: a Clock that moves only when somebody waits or advances it.

Used by unit stories, the simulator and the demo; the in-memory cluster, the loops in
`sim.workloads` and the virtual kubelet all take their time from one of these.
"""

from __future__ import annotations

import threading

__all__ = ["DEFAULT_START_MS", "VirtualClock"]

DEFAULT_START_MS = 1_795_910_400_000
"""2026-11-29T00:00:00Z: a fixed start, so that two runs print the same times."""


class VirtualClock:
    """The Clock port on invented time, in milliseconds; safe to share between threads."""

    def __init__(self, start_ms: int = DEFAULT_START_MS) -> None:
        self._lock = threading.Lock()
        self._start_ms = start_ms
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as invented."""
        with self._lock:
            return self._now_ms

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        with self._lock:
            return (self._now_ms - self._start_ms) / 1000

    def wait(self, seconds: float) -> None:
        """Advance by that time and return at once; a negative time is no time."""
        self.advance(round(seconds * 1000))

    def advance(self, milliseconds: int) -> int:
        """Move forward (never back); gives the new time."""
        with self._lock:
            self._now_ms += max(0, milliseconds)
            return self._now_ms

    def advance_to(self, now_ms: int) -> int:
        """Move forward to that time, or stay where it has already passed; gives the time."""
        with self._lock:
            self._now_ms = max(self._now_ms, now_ms)
            return self._now_ms
