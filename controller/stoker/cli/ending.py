"""The end of the controller's process by SIGTERM or SIGINT, within ten seconds.

Made before the lease is taken, so that no signal ends a leader that keeps its lease; what
must be ended is told once it exists.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from stoker.log import get_log
from stoker.loop.loop import Loop
from stoker.model.ports import Clock
from stoker.report import Publisher

__all__ = ["PUBLISH_SECONDS", "Ending"]

_log = get_log("controller")

WRITES_SECONDS = 5.0
"""How long a stop waits for writes in flight (design section 2)."""
PUBLISH_SECONDS = 4.0
"""How long it then waits for the last status commit."""
CUT_OFF_SECONDS = 9.5
"""When a stop ends whatever hangs: ten seconds are promised."""


class Ending:
    """Takes the signals from `listen` on; one that came before `attach` ends the loop there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asked = False
        self._loop: Loop | None = None
        self._publisher: Publisher | None = None
        self._ended = threading.Event()

    def listen(self) -> None:
        """Handle SIGTERM and SIGINT from now on; to be called on the main thread."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def attach(self, loop: Loop, publisher: Publisher) -> None:
        """Say what a signal ends; at once where one has come already."""
        self._loop, self._publisher = loop, publisher
        if self._asked:
            loop.stop()

    def loop_ended(self) -> None:
        """Say that no pass runs any more: the caller publishes by itself then."""
        self._ended.set()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of handlers
        _log.info("controller.stopping", signal=signal.Signals(number).name)
        self._asked = True
        if self._loop is not None:
            self._loop.stop()
        threading.Thread(target=self._cut_off, daemon=True).start()

    def _cut_off(self) -> None:
        """End the process where a clean end takes too long: that equals a crash, which is safe.

        A daemon thread; a clean end comes before it.
        """
        ends_at = self._clock.monotonic() + CUT_OFF_SECONDS
        if not self._ended.wait(WRITES_SECONDS) and self._publisher is not None:
            self._publisher.flush(PUBLISH_SECONDS)
        self._clock.wait(max(0.0, ends_at - self._clock.monotonic()))
        _log.warning("controller.cut_off", why="a server hangs; the lease runs out by itself")
        os._exit(1)
