"""Keeps the lease on a thread of its own, so that a slow stage or read never loses it.

In: a Lease. Out: renewals, and a call of `on_change` whenever the lease was won or lost.
Made by `cli.single`; virtual time calls `turn` without a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from stoker.errors import StokerError
from stoker.log import get_log
from stoker.loop.lease import Lease

__all__ = ["LeaseKeeper"]

_log = get_log("lease")


class LeaseKeeper:
    """Renews until stopped. `turn` is what its thread does."""

    def __init__(self, lease: Lease, on_change: Callable[[], None] = lambda: None) -> None:
        self.lease = lease
        self.on_change = on_change
        self._led = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Renew now and then whenever it is time."""
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End the thread, waiting at most that long; whether nothing renews any more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(seconds)
        return not self.alive

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def turn(self) -> float:
        """Renew once; seconds until the next turn."""
        try:
            self.lease.renew()
        except StokerError as error:
            _log.warning("lease.failed", code=error.code, message=error.message)
        held = self.lease.held
        if held != self._led:
            self._led = held
            _log.info("lease.won" if held else "lease.lost", other=self.lease.other)
            self.on_change()
        return self.lease.look_in

    def _run(self) -> None:
        wait = 0.0
        while not self._stopping.wait(wait):
            try:
                wait = self.turn()
            except Exception:  # noqa: BLE001 - the top of a thread: the lease runs out meanwhile
                _log.exception("lease.crashed")
                wait = self.lease.timing.retry
