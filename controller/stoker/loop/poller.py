"""The Git poller: asks the repository for news on its own thread, so that a hanging Git
never delays a pass. Gives REVISION events to the loop's queue.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from stoker.errors import StokerError
from stoker.log import get_log
from stoker.loop.step import Event, EventKind
from stoker.model.ports import Clock, Repo
from stoker.reconcile import finding_of

__all__ = ["Poller"]

_log = get_log("poller")

JITTER = 0.1
"""Share of the interval by which polls are spread, so that fleets do not poll in step."""


class Poller:
    """Polls until stopped. `poll_once` is what its thread does, callable from tests."""

    def __init__(
        self, repo: Repo, clock: Clock, put: Callable[[Event], None], *, interval_seconds: float
    ) -> None:
        self._repo = repo
        self._clock = clock
        self._put = put
        self._interval = interval_seconds
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.last_answer = ""

    def start(self) -> None:
        """Poll now and then at every interval, on a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="git-poller", daemon=True)
        self._thread.start()

    def poll_soon(self) -> None:
        """Poll at once instead of at the end of the interval."""
        self._wake.set()

    def stop(self) -> None:
        """Ask the thread to end; it may still wait for a git child, which is killed by its limit."""
        self._stopping = True
        self._wake.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the thread's end, at most that long."""
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def poll_once(self) -> None:
        """Fetch, and say what came of it."""
        try:
            revision = self._repo.fetch()
        except StokerError as error:
            self.last_answer = error.code
            _log.warning("source.failed", code=error.code, message=error.message)
            event = Event(EventKind.REVISION, self._clock.monotonic(), finding=finding_of(error))
        else:
            self.last_answer = "ok"
            event = Event(EventKind.REVISION, self._clock.monotonic(), revision=revision)
        self._put(event)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self.poll_once()
            except Exception:  # noqa: BLE001 - the top of a thread: reported, then polled again
                _log.exception("poller.crashed")
                self.last_answer = "bug"
            spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret hangs on it
            self._wake.wait(self._interval * spread)
            self._wake.clear()
