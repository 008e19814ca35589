"""Engines and clients on virtual time behave as the real stand-ins do."""

from __future__ import annotations

from collections import Counter

from stoker.rehearse.load import Endpoint
from stoker.rehearse.record import Outcome, Request
from stoker.rehearse.schema import LoadBlock
from stoker.rehearse.virtual import VirtualEngine, VirtualEngines, VirtualLoad
from stoker.sim.clock import VirtualClock


def request(at_ms: int, output_ms: int) -> Request:
    return Request("a", "lag-0s", at_ms, output_ms)


def an_engine(clock: VirtualClock, **load: int) -> VirtualEngine:
    return VirtualEngine(clock, "e:1", clock.now_ms(), LoadBlock(**load))  # type: ignore[arg-type]


def test_an_answer_takes_its_time_and_is_then_whole():
    clock = VirtualClock(0)
    engine = an_engine(clock)
    asked = request(0, 1_000)
    engine.take(asked)

    clock.advance(1_199)
    assert 1 == engine.in_flight
    clock.advance(1)
    assert 0 == engine.in_flight
    assert (Outcome.OK, 200, 1_200) == (asked.outcome, asked.first_ms, asked.ended_ms)


def test_more_requests_than_seats_wait_for_the_next_that_is_free():
    engine = an_engine(VirtualClock(0), seats=1)
    first, second = request(0, 1_000), request(100, 1_000)
    engine.take(first)
    engine.take(second)

    assert 1_400 == second.first_ms


def test_told_to_stop_it_refuses_new_ones_and_ends_old_ones():
    clock = VirtualClock(0)
    engine = an_engine(clock)
    asked = request(0, 1_000)
    engine.take(asked)
    engine.begin_shutdown(5.0)

    assert not engine.takes_requests
    assert not engine.stopped
    clock.advance(1_200)
    assert engine.stopped
    assert Outcome.OK is asked.outcome


def test_what_lasts_longer_than_its_shutdown_is_truncated_then():
    clock = VirtualClock(0)
    engine = an_engine(clock)
    asked = request(0, 60_000)
    engine.take(asked)
    engine.begin_shutdown(5.0)
    clock.advance(9_000)

    assert engine.stopped
    assert (Outcome.TRUNCATED, 5_000) == (asked.outcome, asked.ended_ms)


def test_a_crash_truncates_what_has_begun_and_refuses_what_has_not():
    clock = VirtualClock(0)
    engine = an_engine(clock, seats=1)
    begun, queued = request(0, 60_000), request(100, 60_000)
    engine.take(begun)
    engine.take(queued)
    clock.advance(1_000)
    engine.crash()

    assert (Outcome.TRUNCATED, Outcome.REFUSED) == (begun.outcome, queued.outcome)
    assert engine.stopped


class Clients:
    """A load on one service, with an engine a pod."""

    def __init__(self, **load: object) -> None:
        self.clock = VirtualClock(0)
        block = LoadBlock(**load)  # type: ignore[arg-type]
        self.engines = VirtualEngines(self.clock, block)
        self.load = VirtualLoad(block, ["a"], 1, self.engines)

    def pod(self, uid: str) -> Endpoint:
        self.engines.start({"metadata": {"uid": uid}}, 0.0)
        return Endpoint(uid)

    def go(self, milliseconds: int) -> None:
        for _ in range(milliseconds // 250):
            self.clock.advance(250)
            self.load.advance(self.clock.now_ms())

    def by_client(self, outcome: Outcome) -> Counter[str]:
        return Counter(r.client for r in self.load.requests if r.outcome is outcome)


def test_without_an_endpoint_every_request_is_refused():
    clients = Clients(sticky=0)
    clients.load.note_endpoints(0, "a", ())
    clients.load.begin(0)
    clients.go(3_000)

    assert 30 == len(clients.load.requests)
    assert {Outcome.REFUSED} == {r.outcome for r in clients.load.requests}


def test_only_clients_that_are_behind_go_on_asking_a_pod_that_is_gone():
    clients = Clients(sticky=0)
    old, new = clients.pod("old"), clients.pod("new")
    clients.load.note_endpoints(0, "a", (old,))
    clients.clock.advance(20_000)
    clients.load.begin(20_000)
    clients.go(1_000)
    clients.load.note_endpoints(21_000, "a", (new,))
    engine = clients.engines.of_pod("old")
    assert engine is not None
    engine.begin_shutdown(600.0)
    clients.go(30_000)

    refused = clients.by_client(Outcome.REFUSED)
    assert {"lag-2s", "lag-10s"} == set(refused)
    assert 6 <= refused["lag-2s"] <= 7
    assert 33 <= refused["lag-10s"] <= 34


def test_a_client_with_a_connection_keeps_its_pod_until_that_takes_no_more():
    clients = Clients(output={"p50": "500ms", "p99": "600ms", "tail": {"perMille": 0}})
    old, new = clients.pod("old"), clients.pod("new")
    clients.load.note_endpoints(0, "a", (old,))
    clients.load.begin(0)
    clients.go(2_000)
    clients.load.note_endpoints(2_000, "a", (new,))
    clients.go(4_000)
    mine = [r for r in clients.load.requests if r.client == "sticky-1"]
    assert {"old"} == {r.pod for r in mine}

    engine = clients.engines.of_pod("old")
    assert engine is not None
    engine.crash()
    clients.go(4_000)
    after = [r for r in clients.load.requests if r.client == "sticky-1"][len(mine) :]
    assert {"new"} == {r.pod for r in after}
