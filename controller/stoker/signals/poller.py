"""Reads signals on a thread of its own, each service at its interval, so that a hanging source
never delays a pass.

In: the asks of the newest pass. Out: the latest readings for it, and a call for each round.
Made by the long-running controller; tests call `look` without a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from stoker.log import get_log
from stoker.model.ports import Clock
from stoker.model.readings import ServiceReadings, SignalAsk, Signals
from stoker.model.refs import UnitRef
from stoker.signals.questions import valid_ms
from stoker.signals.store import ReadingStore

__all__ = ["Reader", "SignalPoller"]

_log = get_log("signals")

LONGEST_READ_SECONDS = 10.0
SHARE_OF_INTERVAL = 0.8
"""Of the shortest interval, what a round may take: the next one begins in time."""
BACKOFF_FIRST_SECONDS = 1.0
BACKOFF_MAX_SECONDS = 60.0
TOGETHER_SECONDS = 0.2
"""Services that are due so soon are read in the same round."""
IDLE_SECONDS = 60.0


class Reader(Signals, Protocol):
    """Who reads, and remembers what the next read is compared with."""

    def keep(self, asks: tuple[SignalAsk, ...]) -> None:
        """Forget what is asked for no more."""
        ...


class SignalPoller:
    """Polls until stopped. `changed` is called on its thread and must only enqueue."""

    def __init__(
        self,
        reader: Reader,
        clock: Clock,
        changed: Callable[[tuple[UnitRef, ...]], None] = lambda _refs: None,
    ) -> None:
        self._reader = reader
        self._clock = clock
        self.changed = changed
        """May be set until `start`."""
        self._store = ReadingStore()
        self._asks: tuple[SignalAsk, ...] = ()
        self._due: dict[UnitRef, float] = {}
        self._wake = threading.Event()
        self._running = False
        self._failures = 0
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------- from the reconciler
    def start(self) -> None:
        """Read from the first ask on, at every interval, on a thread of its own."""
        self._running = True

    def stop(self) -> None:
        """Ask the thread to end; it is left behind where it waits for an answer."""
        self._running = False
        self._wake.set()

    @property
    def trouble(self) -> str:
        """Why nothing is measured at all; empty when nothing is wrong."""
        if self._failures:
            return f"crashed {self._failures} times in a row; see the log"
        thread = self._thread
        return "its thread ended" if thread is not None and not thread.is_alive() else ""

    def latest(self, asks: tuple[SignalAsk, ...], now_ms: int) -> tuple[ServiceReadings, ...]:
        """What was read last of each, in the order of the asks, and may still be used; services
        that were not read yet are absent. From now on these are read and no others.
        """
        before = {ask.ref: ask for ask in self._asks}
        self._asks = asks
        if asks and self._running and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, name="signals", daemon=True)
            self._thread.start()
        if any(_is_news(before.get(ask.ref), ask) for ask in asks):
            self._wake.set()
        found = (self._store.latest(ask, now_ms) for ask in asks)
        return tuple(readings for readings in found if readings is not None)

    # ---------------------------------------------------------- from its thread
    def look(self) -> float:
        """Read what is due; seconds until something is due again."""
        asks = self._asks
        refs = frozenset(ask.ref for ask in asks)
        self._store.keep(refs)
        self._reader.keep(asks)
        self._due = {ref: due for ref, due in self._due.items() if ref in refs}
        started = self._clock.monotonic()
        soon = started + TOGETHER_SECONDS
        due = tuple(ask for ask in asks if self._due.get(ask.ref, started) <= soon)
        if due:
            self._read(due, started)
        now = self._clock.monotonic()
        return max(0.0, min(self._due.values(), default=now + IDLE_SECONDS) - now)

    def _read(self, asks: tuple[SignalAsk, ...], started: float) -> None:
        shortest = min(ask.scaling.interval_ms for ask in asks) / 1000
        for ask in asks:
            self._due[ask.ref] = started + ask.scaling.interval_ms / 1000
        seconds = min(LONGEST_READ_SECONDS, shortest * SHARE_OF_INTERVAL)
        found = self._reader.read(asks, seconds)
        lives = [valid_ms(ask) for ask in asks]
        self._store.put(zip(found, lives, strict=True), self._clock.now_ms())
        self.changed(tuple(ask.ref for ask in asks))

    def turn(self) -> float:
        """Look once and never raise; seconds until the next turn. A crash makes everything
        unmeasurable, and is tried again with back-off.
        """
        try:
            wait = self.look()
        except Exception:  # noqa: BLE001 - the top of a thread: reported, then asked again
            _log.exception("signals.crashed")
            self._failures += 1
            self._store.keep(frozenset())
            self._due = {}
            self.changed(tuple(ask.ref for ask in self._asks))
            backoff: float = BACKOFF_FIRST_SECONDS * 2 ** min(self._failures - 1, 16)
            return min(BACKOFF_MAX_SECONDS, backoff)
        self._failures = 0
        return wait

    def _run(self) -> None:
        while self._running:
            wait = self.turn()
            if self._failures:
                self._wake.clear()  # news of asks does not end a back-off
            self._wake.wait(wait)
            self._wake.clear()


def _is_news(before: SignalAsk | None, ask: SignalAsk) -> bool:
    """Whether a service is to be read that was not, or is to be read otherwise."""
    return before is None or (before.scaling, before.sources) != (ask.scaling, ask.sources)
