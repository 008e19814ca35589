"""The system clock: the only file that reads the time."""

from __future__ import annotations

import threading
import time

__all__ = ["SystemClock"]


class SystemClock:
    """The Clock port on this machine's clocks."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, by the wall clock."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()  # noqa: TID251 - this is the one place

    def wait(self, seconds: float) -> None:
        """Sleep."""
        threading.Event().wait(seconds)
