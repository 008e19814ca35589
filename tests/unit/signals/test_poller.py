"""Each service is read at its interval, and a crash is never taken for a measurement."""

from __future__ import annotations

import threading

import pytest

from stoker.model.readings import Sample, ServiceReadings, SignalAsk
from stoker.model.refs import UnitRef
from stoker.signals.once import ReadOnce
from stoker.signals.poller import BACKOFF_MAX_SECONDS, SignalPoller
from stoker.sim.clock import VirtualClock
from unit.signals.signal_builders import a_scaling, an_ask, scrape

QWEN = an_ask(a_scaling(interval_ms=5_000), name="qwen")
LLAMA = an_ask(a_scaling(interval_ms=15_000), name="llama")


class Reading:
    """A reader that counts; `error` is raised instead."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.reads: list[tuple[list[str], float]] = []
        self.kept: list[list[str]] = []
        self.error: Exception | None = None

    def read(
        self, asks: tuple[SignalAsk, ...], deadline_seconds: float
    ) -> tuple[ServiceReadings, ...]:
        self.reads.append(([ask.ref.name for ask in asks], deadline_seconds))
        if self.error is not None:
            raise self.error
        sample = Sample(1.0, self.clock.now_ms(), 50_000)
        return tuple(ServiceReadings(ask.ref, metrics=(("m", sample),)) for ask in asks)

    def keep(self, asks: tuple[SignalAsk, ...]) -> None:
        self.kept.append([ask.ref.name for ask in asks])


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def reader(clock):
    return Reading(clock)


@pytest.fixture
def poller(reader, clock):
    return SignalPoller(reader, clock)


def names(reader):
    found = [services for services, _ in reader.reads]
    reader.reads.clear()
    return found


def test_each_service_is_read_at_its_own_interval(poller, reader, clock):
    poller.latest((QWEN, LLAMA), clock.now_ms())
    waits = []
    for _ in range(5):
        waits.append(poller.turn())
        clock.wait(waits[-1])

    assert [5.0] * 5 == waits
    assert [["qwen", "llama"], ["qwen"], ["qwen"], ["qwen", "llama"], ["qwen"]] == names(reader)


def test_a_round_ends_before_the_next_one_is_due(poller, reader, clock):
    poller.latest((QWEN, LLAMA), clock.now_ms())
    poller.turn()
    poller.latest((an_ask(a_scaling(interval_ms=600_000), name="slow"),), clock.now_ms())
    poller.turn()

    assert [4.0, 10.0] == [seconds for _, seconds in reader.reads]


def test_readings_are_there_once_they_were_read_and_whoever_waits_is_told(poller, clock):
    told: list[tuple[UnitRef, ...]] = []
    poller.changed = told.append
    before = poller.latest((QWEN,), clock.now_ms())
    poller.turn()
    after = poller.latest((QWEN, LLAMA), clock.now_ms())

    assert before == ()
    assert ["qwen"] == [readings.ref.name for readings in after]
    assert [(QWEN.ref,)] == told


def test_a_service_that_is_new_is_read_at_once_and_one_that_went_no_more(poller, reader, clock):
    poller.latest((QWEN,), clock.now_ms())
    poller.turn()
    poller.latest((LLAMA,), clock.now_ms())
    poller.turn()

    assert [["qwen"], ["llama"]] == names(reader)
    assert reader.kept[-1] == ["llama"]
    assert poller.latest((QWEN,), clock.now_ms()) == ()


def test_with_nothing_to_read_nothing_is_read(poller, reader):
    assert poller.turn() == 60.0
    assert reader.reads == []


def test_a_crash_makes_everything_unmeasurable_and_is_tried_again_with_back_off(
    poller, reader, clock
):
    poller.latest((QWEN,), clock.now_ms())
    poller.turn()
    reader.error = RuntimeError("bug")
    clock.wait(5)
    told: list[tuple[UnitRef, ...]] = []
    poller.changed = told.append
    waits = [poller.turn() for _ in range(8)]
    blind = poller.latest((QWEN,), clock.now_ms())
    trouble, heard = poller.trouble, tuple(told)
    reader.error = None
    poller.turn()

    assert [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, BACKOFF_MAX_SECONDS, BACKOFF_MAX_SECONDS] == waits
    assert ((), ((QWEN.ref,),) * 8) == (blind, heard)
    assert ("crashed 8 times in a row; see the log", "") == (trouble, poller.trouble)
    assert len(poller.latest((QWEN,), clock.now_ms())) == 1


def test_its_thread_begins_with_the_first_ask_and_reads_what_is_asked_for(poller, clock):
    heard = threading.Event()
    poller.changed = lambda _refs: heard.set()
    poller.latest((QWEN,), clock.now_ms())
    poller.start()
    poller.latest((), clock.now_ms())
    before = poller._thread
    poller.latest((QWEN,), clock.now_ms())

    assert before is None
    assert heard.wait(10)
    assert len(poller.latest((QWEN,), clock.now_ms())) == 1
    poller.stop()
    poller._thread.join(10)
    assert poller.trouble == "its thread ended"


def test_a_thread_that_ended_is_started_anew_by_the_next_pass(poller, clock):
    poller.start()
    poller._thread = threading.Thread(target=lambda: None)
    poller._thread.start()
    poller._thread.join(10)
    ended = poller.trouble
    poller.latest((QWEN,), clock.now_ms())

    assert ("its thread ended", "") == (ended, poller.trouble)
    poller.stop()
    poller._thread.join(10)


def test_another_scaling_block_is_read_at_once(poller, clock):
    poller.latest((QWEN,), clock.now_ms())
    poller._wake.clear()
    poller.latest((QWEN,), clock.now_ms())
    same = poller._wake.is_set()
    changed = an_ask(a_scaling({"queue": scrape("x")}, interval_ms=5_000), name="qwen")
    poller.latest((changed,), clock.now_ms())

    assert (False, True) == (same, poller._wake.is_set())


def test_one_pass_reads_once(reader, clock):
    once = ReadOnce(reader)

    assert ["qwen"] == [each.ref.name for each in once.latest((QWEN,), clock.now_ms())]
    assert once.latest((), clock.now_ms()) == ()
    assert [(["qwen"], 4.0)] == reader.reads
