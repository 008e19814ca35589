"""A service in virtual time: what is bought, when it serves, who gets what, what is paid."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from stoker.model.readings import Sample, ServiceReadings, Unmeasurable
from stoker.model.scaling import Slo
from stoker.sim.baseline_metric import Fixed
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.fleet_ground import Blind, Blindness, FleetGround, Period
from stoker.sim.fleet_run import simulate
from stoker.sim.policy import Seen, waiting_outside
from stoker.sim.routing import RouterName
from stoker.sim.trace_files import SpotTrace
from stoker.sim.traffic import Request

HALF_SECOND = BatchProfile(max_sequences=1, step_seconds=0.5, sequence_seconds=0.0)
"""One request of one token at a time, in 0.5 s: 2 requests/s, as in seed 000's experiment."""
GROUND = FleetGround(HALF_SECOND, scrape_ms=5_000, slo=Slo(ttft_p95_ms=5_000))


@dataclass
class Script:
    """Says one count after the other, and keeps what it was shown."""

    counts: list[int]
    seen: list[Seen] = field(default_factory=list)
    name: str = "script"
    interval_ms: int = 5_000
    cache_aware: bool = False

    def begin(self) -> None:
        pass

    def decide(self, seen: Seen, past: None) -> tuple[int, None]:
        self.seen.append(seen)
        return self.counts[min(len(self.seen), len(self.counts)) - 1], past


def steady(per_second: float, until_s: float, from_s: float = 0.0) -> list[Request]:
    count = round((until_s - from_s) * per_second)
    return [Request(from_s + (number + 0.5) / per_second, 1, 1) for number in range(count)]


def test_a_replica_serves_what_it_can_and_costs_its_time():
    run = simulate(steady(1.0, 100), Fixed(1), replace(GROUND, gpus=2, price=3.6))

    assert (100, 100, 1.0, 0) == (run.requests, run.kept, run.attainment, run.unanswered)
    assert run.ttft_p50_ms == pytest.approx(500, rel=0.01)
    assert (99.5, 199 / 3600) == (run.replica_seconds, run.gpu_hours)
    assert run.cost == pytest.approx(0.199)
    assert (0, 0, 1) == (run.bought, run.ups, run.peak)


def test_a_purchase_serves_after_its_start_and_costs_from_the_beginning():
    policy = Script([1, 3])
    run = simulate(steady(1.0, 100), policy, replace(GROUND, cold_start_s=30.0))

    assert (2, 2, 1, 3) == (run.bought, run.cold_starts, run.ups, run.peak)
    assert run.replica_seconds == pytest.approx(99.5 + 2 * 94.5)
    assert [(1, 0), (1, 0), (1, 2)] == [(s.ready, s.warming) for s in policy.seen[:3]]
    at_35 = policy.seen[7]
    assert (3, 0, 30_000) == (at_35.ready, at_35.warming, at_35.cold_start_p90_ms)


def test_one_that_leaves_finishes_what_it_has():
    """Nothing is lost, and it costs until it is done."""
    slow = replace(GROUND, engine=replace(HALF_SECOND, step_seconds=12.0), first=2)
    requests = [Request(1.0, 1, 1), Request(1.5, 1, 1), Request(60.0, 1, 1)]
    run = simulate(requests, Script([2, 1]), slow)

    assert (0, 0, 3) == (run.unanswered, run.broken, run.requests)
    # The newest took the second request: it ends at 13.5 s, though it was let go at 5 s.
    assert run.replica_seconds == pytest.approx(60.0 + 13.5, rel=1e-3)


def test_requests_wait_outside_while_nothing_serves():
    ground = replace(GROUND, first=0, min_replicas=0, cold_start_s=10.0)
    policy = Script([0, 1])
    run = simulate([Request(1.0, 1, 1), Request(20.0, 1, 1)], policy, ground)

    assert [0.0, 1.0] == [waiting_outside(s.readings) for s in policy.seen[:2]]
    assert (0, 1) == (run.unanswered, run.waited_over_5s)
    assert run.ttft_p99_ms == pytest.approx(14_500, rel=1e-3)


def test_who_waits_at_the_end_without_a_replica_is_not_answered():
    ground = replace(GROUND, first=0, min_replicas=0)
    run = simulate([Request(1.0, 1, 1)], Script([0]), ground)

    assert (1, 0, None) == (run.unanswered, run.kept, run.ttft_p50_ms)


def test_what_no_engine_can_hold_is_refused():
    run = simulate([Request(1.0, 10**6, 1), Request(9.0, 1, 1)], Fixed(1), GROUND)

    assert (1, 1, 0) == (run.refused, run.kept, run.unanswered)


def test_a_service_that_crashes_while_it_starts_stays_stuck():
    ground = replace(GROUND, cold_start_s=10.0, crashing=(Period(4.0, 9.0),))
    policy = Script([1, 2, 2, 2, 3])
    run = simulate(steady(1.0, 60), policy, ground)

    assert (2, 1) == (run.bought, run.cold_starts)
    assert [0, 1] == [policy.seen[place].stuck for place in (2, 3)]


def test_instances_that_are_taken_away_break_what_they_serve():
    slow = replace(HALF_SECOND, step_seconds=20.0)
    ground = replace(GROUND, engine=slow, first=2, spot=SpotTrace(10.0, (2, 1, 1, 1, 2)))
    policy = Script([2])
    requests = [Request(1.0, 1, 1), Request(1.5, 1, 1), Request(100.0, 1, 1)]
    run = simulate(requests, policy, replace(ground, cold_start_s=20.0))

    assert (1, 1) == (run.lost, run.broken)
    # Its successor waits for an instance until 40 s, costs from then on, and serves from 60 s on.
    assert [(1, 1), (1, 1), (2, 0)] == [
        (s.ready, s.warming) for s in (policy.seen[i] for i in (3, 11, 13))
    ]
    assert run.replica_seconds == pytest.approx(100 + 10 + 60)


@pytest.mark.parametrize("of", list(Blindness))
def test_what_is_not_seen_is_not_known_rather_than_zero(of):
    policy = Script([2])
    ground = replace(GROUND, first=2, blind=(Blind(Period(20.0, 40.0), of),))
    simulate(steady(2.0, 60), policy, ground)
    blind = [
        s.readings for s in policy.seen if 20 <= (s.now_ms - policy.seen[0].now_ms) / 1000 < 40
    ]
    clear = policy.seen[2].readings

    assert 4 == len(blind)
    assert not any(found == 0 for readings in blind for found in _values(readings))
    assert len(_values(clear)) > max(len(_values(readings)) for readings in blind)


def _values(readings: ServiceReadings) -> list[float]:
    """What is known of rates and load."""
    load = readings.load
    assert load is not None
    known = [load.arrivals.value] if isinstance(load.arrivals, Sample) else []
    assert known or isinstance(load.arrivals, Unmeasurable)
    return [
        *known,
        *(e.ttft_p95_ms for e in readings.engines if e.ttft_p95_ms is not None),
        *(e.running + 1 for e in readings.engines if e.running is not None),
    ]


def test_the_readings_are_those_of_the_time_since_the_last_look():
    policy = Script([1])
    simulate(steady(1.0, 60), policy, GROUND)
    readings = policy.seen[4].readings
    (engine,) = readings.engines

    assert readings.load is not None
    assert isinstance(readings.load.arrivals, Sample)
    assert (1.0, 1.0, 1.0) == (
        readings.load.arrivals.value,
        readings.load.prefill_tokens,
        readings.load.output_tokens,
    )
    assert (5_000, 1.0, 1.0) == (
        engine.window_ms,
        engine.finished_per_second,
        engine.decode_tokens_per_second,
    )
    assert engine.ttft_p95_ms == pytest.approx(737.5)  # 0.5001 s is in the bucket up to 0.75


@pytest.mark.parametrize("router", list(RouterName))
def test_the_same_inputs_give_the_same_result(router):
    requests = [replace(r, prefix=(n % 7,)) for n, r in enumerate(steady(3.0, 120))]
    ground = replace(GROUND, router=router, start_spread=0.3, seed=4)

    assert simulate(requests, Script([1, 2, 4, 2]), ground) == simulate(
        requests, Script([1, 2, 4, 2]), ground
    )
