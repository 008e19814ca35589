"""The system clock: the only file that reads the time."""

from __future__ import annotations

import threading
import time

__all__ = ["SystemClock"]

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux alone has a clock that counts sleep; elsewhere the usual one has to do."""


class SystemClock:
    """The Clock port on this machine's clocks."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, by the wall clock."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never go back and go on while the machine sleeps (note 14)."""
        return time.clock_gettime(_STEADY)

    def wait(self, seconds: float) -> None:
        """Sleep."""
        threading.Event().wait(seconds)
