"""When the loop runs passes, on virtual time: back-off, wake-ups, the lease, bugs, the end."""

from __future__ import annotations

import queue
from collections.abc import Callable
from functools import partial
from typing import Any

from stoker.errors import Unreachable
from stoker.kube.client import Client
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Request
from stoker.loop.keeper import LeaseKeeper
from stoker.loop.lease import Lease
from stoker.loop.loop import Loop, PassRequest, PassVerdict
from stoker.loop.step import Event, EventKind, PassKind, Timing
from stoker.metrics import Metrics
from stoker.model.refs import SourceRevision
from stoker.sim.clock import VirtualClock

FIRST, SECOND = SourceRevision("main", "a" * 40), SourceRevision("main", "b" * 40)
DONE = PassVerdict(failed=False)
FAILED = PassVerdict(failed=True)
TIMING = Timing(coalesce=0.2, backoff_first=1.0, backoff_max=60.0, full_pass=600.0)


class Events(queue.SimpleQueue):
    """Waiting lets virtual time go by; what is planned for an instant comes at it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.waits = 0
        self.planned: list[tuple[float, Callable[[], object]]] = []

    def at(self, second: float, act: Callable[[], object]) -> None:
        self.planned.append((second, act))
        self.planned.sort(key=lambda item: item[0])

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self.empty() or not block:
            return super().get_nowait()
        assert timeout is not None, "the loop never waits without an end"
        self.waits += 1
        end = self.clock.monotonic() + timeout
        while self.planned and self.planned[0][0] <= end and self.empty():
            second, act = self.planned.pop(0)
            self.clock.wait(second - self.clock.monotonic())
            act()
        if self.empty():
            self.clock.wait(end - self.clock.monotonic())
        return super().get_nowait()


class World:
    """A loop on virtual time; `verdicts` are what its passes come to, the last one stays."""

    def __init__(self, *verdicts: PassVerdict | Exception, lease: bool = False) -> None:
        self.clock = VirtualClock()
        self.events = Events(self.clock)
        self.metrics = Metrics()
        self.server = MemoryServer(self.clock)
        self.verdicts = list(verdicts) or [DONE]
        self.passes: list[tuple[float, PassRequest]] = []
        self.ended: list[PassRequest] = []
        self.half_way: dict[int, Callable[[], None]] = {}
        self.led: list[float] = []
        self.warmed: list[tuple[float, SourceRevision]] = []
        self.while_warming: Callable[[], None] = lambda: None
        self.lease = self.candidate("us") if lease else None
        self.loop = Loop(
            self._pass,
            self.clock,
            self.metrics,
            timing=TIMING,
            lease=self.lease,
            on_lead=lambda: self.led.append(self.clock.monotonic()),
            warm=self._warm,
            term=1,
            events=self.events,
        )
        self.keeper = LeaseKeeper(self.lease, self._wake) if self.lease is not None else None

    def _wake(self) -> None:
        self.loop.put(Event(EventKind.WAKE, self.clock.monotonic()))

    def _keep(self) -> None:
        """What the keeper's thread does, at its instants of virtual time."""
        assert self.keeper is not None
        self.events.at(self.clock.monotonic() + self.keeper.turn(), self._keep)

    def _warm(self, revision: SourceRevision) -> None:
        self.warmed.append((self.clock.monotonic(), revision))
        self.while_warming()
        self.loop.checkpoint()

    def candidate(self, holder: str) -> Lease:
        client = Client(self.server)
        return Lease(client, self.clock, namespace="default", name="stoker-f1", holder=holder)

    def _pass(self, request: PassRequest) -> PassVerdict:
        self.passes.append((self.clock.monotonic(), request))
        verdict = self.verdicts[min(len(self.passes), len(self.verdicts)) - 1]
        if isinstance(verdict, Exception):
            raise verdict
        self.half_way.get(len(self.passes), lambda: None)()
        self.loop.checkpoint()
        self.ended.append(request)
        return verdict

    def commit(self, revision: SourceRevision) -> None:
        now = self.clock.monotonic()
        self.loop.put(Event(EventKind.REVISION, now, revision=revision))

    def run(self, seconds: float) -> list[float]:
        """Start with a revision, stop at that second; when passes ran."""
        if self.keeper is not None:
            self._keep()
        self.commit(FIRST)
        self.events.at(seconds, self.loop.stop)
        self.loop.run()
        return [round(second, 1) for second, _ in self.passes]


def test_the_first_revision_is_worked_on_after_the_coalescing_time():
    world = World()

    assert [0.2] == world.run(60)
    assert world.passes[0][1] == PassRequest(PassKind.FULL, FIRST)


def test_without_news_a_full_pass_runs_every_ten_minutes():
    """An event that was lost is made up for (cases.md row 87)."""
    assert [0.2, 600.2, 1200.2] == World().run(1300)


def test_a_failed_pass_is_tried_again_after_1_2_4_seconds():
    assert [0.2, 1.2, 3.2, 7.2, 15.2] == World(FAILED).run(30)


def test_a_new_revision_ends_the_back_off():
    """a.5 W5: it may well be the correction."""
    world = World(FAILED, FAILED, FAILED, FAILED, FAILED, DONE)
    world.events.at(20.0, lambda: world.commit(SECOND))

    assert [0.2, 1.2, 3.2, 7.2, 15.2, 20.0] == world.run(100)
    assert SECOND == world.passes[-1][1].revision


def test_a_pass_is_run_again_when_it_wished_to_be():
    """A deadline of a waiting unit needs no event."""
    assert [0.2, 12.7] == World(PassVerdict(failed=False, wake_in=12.5), DONE).run(100)


def test_a_bug_in_a_pass_is_counted_and_the_loop_goes_on():
    world = World(ZeroDivisionError("a bug"), DONE)

    assert [0.2, 1.2] == world.run(60)
    assert b"stoker_bugs_total 1.0" in world.metrics.text()


def test_events_of_a_burst_are_one_pass():
    """a.5 W5."""
    world = World()
    for number in range(50):
        event = Event(EventKind.OBJECT, 30 + number / 1000)
        world.events.at(event.at, partial(world.loop.put, event))

    assert [0.2, 30.2] == world.run(60)


# -------------------------------------------------------------------------- lease
def test_a_leader_keeps_its_lease_and_works():
    world = World(PassVerdict(failed=False, wake_in=5.0), lease=True)
    ran = world.run(60)

    assert [0.2, 5.2, 10.2] == ran[:3]
    assert world.lease is not None
    assert world.lease.held
    assert [] == world.led


def test_who_does_not_hold_the_lease_runs_no_pass_and_does_not_spin():
    """One look every two seconds, however much is due: a busy loop would cost a core."""
    world = World(lease=True)
    other = world.candidate("other")
    other.renew()
    for second in range(2, 120, 2):
        world.events.at(second, other.renew)

    assert [] == world.run(119)
    assert world.events.waits < 130


def test_a_follower_takes_over_once_the_leader_is_silent():
    """Research a.6 L4: at most 17 s; what it remembers is read again before its first pass."""
    world = World(PassVerdict(failed=False, wake_in=5.0), lease=True)
    other = world.candidate("other")
    other.renew()
    for second in range(2, 40, 2):
        world.events.at(second, other.renew)
    ran = world.run(90)

    assert 38 + 15 <= ran[0] <= 38 + 17.2
    assert [ran[0]] == [round(second, 1) for second in world.led]
    assert world.passes[0][1].revision == FIRST


def test_a_leader_that_is_asked_to_stop_hands_over_last():
    world = World(lease=True)
    world.run(10)
    assert world.lease is not None
    world.lease.release()

    assert world.candidate("next").renew()


def test_a_leader_without_an_api_server_stops_working_before_another_may_begin():
    """It cannot know whether somebody else leads after the lease ran out."""
    world = World(PassVerdict(failed=False, wake_in=1.0), lease=True)

    def away(request: Request) -> None:
        raise Unreachable("gone")

    def cut() -> None:
        world.server.before = away

    def mend() -> None:
        world.server.before = None

    world.events.at(20.0, cut)
    world.events.at(60.0, mend)
    ran = world.run(80)

    assert [second for second in ran if 30.5 < second < 60] == []
    assert next(second for second in ran if second >= 60) <= 62.2
    assert 1 == len(world.led)


def test_a_lease_lost_within_a_pass_ends_it():
    """Fencing: the pass meets its checkpoint after another took over."""
    world = World(PassVerdict(failed=False, wake_in=1.0), lease=True)
    other = world.candidate("other")

    def hang() -> None:
        assert not other.renew()
        world.clock.wait(16)
        assert other.renew()

    world.half_way[4] = hang
    world.run(30)

    assert 4 == len(world.passes)
    assert 3 == len(world.ended)
    assert world.lease is not None
    assert not world.lease.held


def test_who_waits_warms_up_once_for_each_revision():
    """A takeover must find everything read and rendered (issue B: first write within 17 s)."""
    world = World(lease=True)
    other = world.candidate("other")
    other.renew()
    for second in range(2, 60, 2):
        world.events.at(second, other.renew)
    world.events.at(30.5, lambda: world.commit(SECOND))

    assert [] == world.run(59)
    assert [FIRST, SECOND] == [revision for _, revision in world.warmed]


def test_a_leader_does_not_warm_up():
    world = World(lease=True)
    world.run(60)

    assert [] == world.warmed


def test_warming_up_ends_when_there_is_real_work():
    world = World(lease=True)
    other = world.candidate("other")
    other.renew()
    finished: list[str] = []

    def long_work() -> None:
        other.release()
        assert world.lease is not None
        world.lease.renew()
        world.loop.checkpoint()
        finished.append("warm-up")

    world.while_warming = long_work
    ran = world.run(20)

    assert [] == finished
    assert ran[0] < 5


def test_a_pass_of_an_older_term_ends_and_the_next_catches_up_first():
    """Lost, taken by another and won back between two steps: held all the time as it seems."""
    world = World(PassVerdict(failed=False, wake_in=1.0), lease=True)
    other = world.candidate("other")

    def frozen() -> None:
        assert not other.renew()
        world.clock.wait(16)
        assert other.renew()
        other.release()
        assert world.lease is not None
        assert world.lease.renew()

    world.half_way[3] = frozen
    world.run(60)

    assert len(world.passes) - 1 == len(world.ended)
    assert 1 == len(world.led)
    assert world.passes[2][0] + 16 <= world.led[0] <= world.passes[3][0]
