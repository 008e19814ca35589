"""The Git poller: what it hands to the loop, and that nothing ends its thread."""

from __future__ import annotations

import queue
from dataclasses import dataclass

import pytest

from stoker.errors import Stalled, StokerError, Unreachable
from stoker.loop.poller import Poller
from stoker.loop.step import Event, EventKind
from stoker.model.refs import SourceRevision
from stoker.sim.clock import VirtualClock

FIRST, SECOND = SourceRevision("main", "a" * 40), SourceRevision("main", "b" * 40)
FOREVER = 3_600.0
PATIENCE = 10.0
"""Seconds to wait for another thread at most; nothing here takes a tenth of one."""


@dataclass
class Remote:
    """Answers of `fetch`, one after the other; the last one stays."""

    answers: list[SourceRevision | Exception]
    asked: int = 0

    def fetch(self) -> SourceRevision:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def poller(remote: Remote, put) -> Poller:
    return Poller(remote, VirtualClock(), put, interval_seconds=FOREVER)  # type: ignore[arg-type]


def test_a_poll_brings_the_revision():
    events: list[Event] = []
    made = poller(Remote([FIRST]), events.append)
    made.poll_once()

    assert [(EventKind.REVISION, FIRST, None)] == [(e.kind, e.revision, e.finding) for e in events]
    assert "ok" == made.last_answer


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("no answer", code="repository-unreachable"),
        Stalled("no such branch", code="ref-not-found", hint="--ref"),
    ],
    ids=["that passes", "that a person must mend"],
)
def test_an_error_is_news_and_no_revision(error: StokerError):
    """The last good revision is worked on; the finding says why there is none newer."""
    events: list[Event] = []
    made = poller(Remote([error]), events.append)
    made.poll_once()

    assert events[0].revision is None
    assert events[0].finding is not None
    assert (error.code, error.message) == (events[0].finding.code, events[0].finding.message)
    assert error.code == made.last_answer


def test_the_thread_polls_at_once_and_again_when_asked():
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    made = poller(Remote([FIRST, SECOND]), events.put)
    made.start()
    try:
        first = events.get(timeout=PATIENCE)
        assert made.alive
        made.poll_soon()
        second = events.get(timeout=PATIENCE)
    finally:
        made.stop()
    made.join(PATIENCE)

    assert (FIRST, SECOND) == (first.revision, second.revision)
    assert not made.alive


def test_a_bug_of_one_poll_does_not_end_the_thread():
    """The top of a thread is a boundary: reported, then polled again."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    remote = Remote([ZeroDivisionError("a bug"), SECOND])
    made = poller(remote, events.put)
    made.poll_soon()
    made.start()
    try:
        event = events.get(timeout=PATIENCE)
    finally:
        made.stop()
    made.join(PATIENCE)

    assert SECOND == event.revision
    assert 2 == remote.asked
    assert "ok" == made.last_answer
