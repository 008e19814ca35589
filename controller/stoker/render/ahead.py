"""Rendering that goes on while its caller waits for others: for the Git host, the API server.

A piece of work starts on a thread of its own, and whoever uses the renderer next first waits
for its end, so that children and memo never serve two threads. Used by shape and renderer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from stoker.errors import StokerError
from stoker.log import get_log

__all__ = ["Ahead"]

_log = get_log("render")


class _Stopped(Exception):  # noqa: N818 - the way out of a piece of work, no error
    """Nobody waits for the rest."""


class Ahead:
    """At most one piece of work at a time."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._stops = False

    def start(self, act: Callable[[Callable[[], None]], object]) -> None:
        """Begin; `act` gets a checkpoint that it calls often. What fails is done again later."""
        self._stops = False
        self._thread = threading.Thread(target=self._run, args=(act,), name="render", daemon=True)
        self._thread.start()

    def finish(self, *, stop: bool = False) -> None:
        """Wait for the end, with `stop` for the next checkpoint."""
        if self._thread is not None:
            self._stops = stop
            self._thread.join()
            self._thread = None

    @property
    def is_here(self) -> bool:
        """Whether the caller is the piece of work."""
        return threading.current_thread() is self._thread

    def _run(self, act: Callable[[Callable[[], None]], object]) -> None:
        try:
            act(self._checkpoint)
        except _Stopped:
            pass
        except StokerError as error:  # the pass meets it too, and says so
            _log.debug("render.ahead.failed", code=error.code, message=error.message)
        except Exception:  # noqa: BLE001 - the top of a thread is a boundary
            _log.exception("render.ahead.crashed")

    def _checkpoint(self) -> None:
        if self._stops:
            raise _Stopped
