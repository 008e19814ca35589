"""The poller of the controller: passes take what it read, and its readings wake the loop."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from builders import a_ref
from stoker.cli.measuring import measuring
from stoker.loop.step import EventKind
from stoker.model.readings import ServiceReadings, SignalAsk
from stoker.model.scaling import Scaling
from stoker.sim.clock import VirtualClock

ASK = SignalAsk(a_ref("qwen"), Scaling(min_replicas=1, max_replicas=2), (), "")


class Reader:
    """Reads nothing, or crashes."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def read(self, asks, deadline_seconds):
        if self.error is not None:
            raise self.error
        return tuple(ServiceReadings(ask.ref) for ask in asks)

    def keep(self, asks):
        pass


@pytest.mark.parametrize("error", [None, RuntimeError("bug")])
def test_each_round_wakes_the_loop_and_a_crash_does_too(error):
    """A count that cannot be measured any more is news, too: people see why it holds."""
    events: list[Any] = []
    heard = threading.Event()

    def put(event):
        events.append(event)
        heard.set()

    clock = VirtualClock()
    session: Any = SimpleNamespace(signals=lambda: Reader(error))
    loop: Any = SimpleNamespace(put=put)
    parts: Any = SimpleNamespace(clock=clock, observer=SimpleNamespace(measures=None))
    poller = measuring(session, loop, parts)
    parts.observer.measures.latest((ASK,), clock.now_ms())

    assert heard.wait(10)
    poller.stop()
    assert (EventKind.READINGS, "ModelService/llm/qwen") == (events[0].kind, events[0].detail)
