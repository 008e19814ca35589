"""Asks the cloud for notices on a thread of its own: a service may hold a question for minutes.

In: a NoticeSource. Out: what stands, and a call for each change. Used by node.reporter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from stoker.log import get_log
from stoker.node.notice import NodeNotice, NoticeSource, Poll, Standing, Unknown, standing

__all__ = ["NoticeWatch"]

_log = get_log("notices")


class NoticeWatch:
    """`look` is what its thread does again and again, callable from tests.

    Without a source nothing is ever known. `changed` is called by the thread.
    """

    def __init__(self, source: NoticeSource | None, changed: Callable[[], None]) -> None:
        self._source = source
        self._changed = changed
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.standing = Standing()
        """Replaced whole by one thread, so that any may read it."""

    def start(self) -> None:
        """Ask until stopped. The thread is left behind at the end: it may be waiting."""
        if self._source is not None:
            self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopped.set()

    @property
    def alive(self) -> bool:
        """Whether its thread runs, or none is needed."""
        return self._source is None or (self._thread is not None and self._thread.is_alive())

    def look(self) -> None:
        """Ask once and fold the answer in."""
        if self._source is not None:
            self._fold(self._source.poll())

    def acknowledge(self, notice: NodeNotice) -> bool:
        """Tell the cloud that nothing runs here any more; False where it did not take it."""
        return self._source is not None and self._source.acknowledge(notice)

    def _fold(self, poll: Poll) -> None:
        before, after = self.standing, standing(self.standing, poll)
        self.standing = after
        if after.why_unknown and after.why_unknown != before.why_unknown:
            _log.warning("notice.unknown", why=after.why_unknown)
        if after.withdrawn is not None:
            _log.info("notice.withdrawn", kind=after.withdrawn.kind, id=after.withdrawn.id)
        if after.notice is not None and after.notice != before.notice:
            told = after.notice
            _log.warning("notice.told", kind=told.kind, id=told.id, deadline_ms=told.deadline_ms)
        if (before.notice, before.hint) != (after.notice, after.hint):
            self._changed()

    def _run(self) -> None:
        assert self._source is not None
        while not self._stopped.is_set():
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the top of a thread: reported, then asked again
                _log.exception("notices.crashed")
                self._fold(Unknown("the poller crashed; see the log"))
            self._stopped.wait(self._source.pause_seconds)
