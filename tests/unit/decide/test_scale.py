"""Promises that every count keeps, whatever is measured; and the seed's experiment."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.scale import scale
from stoker.model.codec import canonical_json, to_data
from stoker.model.readings import Sample, Unmeasurable
from stoker.model.scale_history import NO_SCALE, LearnedRate, ScaleHistory
from stoker.model.scaling import CapacityPrior, ScaleDown, ScaleToZero, Scaling, ZeroPolicy
from unit.decide.closed_loop import experiment, play
from unit.decide.scaling import (
    NOW_MS,
    a_capacity,
    a_ratio,
    asked,
    busy,
    engine,
    facts,
    metric,
    readings,
)

TICK_MS = 15_000
AFTER_IDLE = ScaleToZero(ZeroPolicy.AFTER_IDLE, 60_000)
SPECS = (
    a_capacity(metric("queue"), least=1),
    a_capacity(least=0, prior=None, step=1, scale_to_zero=AFTER_IDLE),
    a_capacity(metric("d", None), least=2, prior=None),
    a_ratio(metric("queue")),
    a_ratio(metric("queue"), metric("d", None), least=0, window_s=60, step=2),
)

VALUES = st.one_of(
    st.floats(0, 50), st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, 1e9])
)
CODES = st.sampled_from(["missing", "stale", "many-values", "unreachable", "refused", "negative"])
READINGS = st.one_of(
    st.builds(Sample, VALUES, st.just(NOW_MS), st.just(60_000)),
    st.builds(Unmeasurable, CODES, st.just("no"), st.just(NOW_MS)),
)


@st.composite
def rounds(draw):
    """What one round of polls gives of so many Ready replicas."""
    ready = draw(st.integers(0, 5))
    engines = [
        engine(
            number,
            running=draw(st.sampled_from([0.0, 3.0, None])),
            waiting=draw(st.sampled_from([0.0, 1.0, 40.0, None, float("nan")])),
            kv=draw(st.sampled_from([0.0, 0.5, 0.95])),
            rate=draw(st.sampled_from([0.0, 1.0, 2.0])),
            queued=draw(st.booleans()),
        )
        for number in range(ready)
        if draw(st.integers(0, 4))
    ]
    return (
        facts(ready, warming=draw(st.integers(0, 3)), rolling=draw(st.booleans())),
        readings(load=draw(READINGS), engines=engines, queue=draw(READINGS), d=draw(READINGS)),
    )


def played(spec, given_rounds, wanted=3):
    """Each round's count before and after, and what was given."""
    past, found = NO_SCALE, []
    for number, (drawn, given_readings) in enumerate(given_rounds):
        known = replace(drawn, wanted=wanted)
        answer = asked(spec, known, given_readings, past, number * TICK_MS)
        found.append((known, given_readings, answer))
        past, wanted = answer.history, answer.replicas
    return found


@given(st.sampled_from(SPECS), st.lists(rounds(), min_size=1, max_size=12))
def test_a_count_is_within_its_bounds(spec, given_rounds):
    """Whatever is measured; from above maxReplicas it walks down."""
    for known, _, answer in played(spec, given_rounds):
        least = min(known.wanted, spec.min_replicas)

        assert max(least, spec.min_replicas) <= answer.replicas
        assert answer.replicas <= max(spec.max_replicas, known.wanted)
        assert spec.min_replicas <= answer.desired <= spec.max_replicas


@given(st.sampled_from(SPECS), st.lists(rounds(), min_size=1, max_size=12))
def test_a_failed_read_never_lowers_a_count(spec, given_rounds):
    """Issue D figure 3: any subset of the readings, at any point."""
    names = {each.name for each in spec.metrics}
    for known, given_readings, answer in played(spec, given_rounds):
        metrics = [reading for name, reading in given_readings.metrics if name in names]
        failed = any(isinstance(reading, Unmeasurable) for reading in metrics)
        if spec.algorithm == "Capacity":
            failed = failed or isinstance(given_readings.load.arrivals, Unmeasurable)
            failed = failed or len(given_readings.engines) < known.ready
        if failed:
            assert answer.replicas >= known.wanted


@given(st.sampled_from(SPECS), st.lists(rounds(), min_size=1, max_size=12))
def test_never_to_zero_without_a_ready_replica(spec, given_rounds):
    """Neither before the first, nor while a woken one is on its way."""
    for known, _, answer in played(spec, given_rounds):
        if known.wanted and not known.ready:
            assert answer.replicas > 0


@given(st.sampled_from(SPECS), st.lists(rounds(), min_size=1, max_size=6), st.randoms())
def test_an_answer_does_not_depend_on_the_order_of_readings(spec, given_rounds, random):
    """Engines come as scrapes end."""
    past = NO_SCALE
    for known, given_readings in given_rounds:
        mixed = list(given_readings.engines)
        random.shuffle(mixed)
        answer = asked(spec, known, given_readings, past)

        assert answer == asked(spec, known, replace(given_readings, engines=tuple(mixed)), past)
        past = answer.history


def test_what_is_remembered_stays_small():
    """A unit's history has 4 KiB for everything: the fullest that rules leave takes 2.5."""
    rates = tuple(
        LearnedRate(f"{n:08x}", "NVIDIA-H100-80GB-HBM3", 123_456.789, 12_345.678, True, NOW_MS)
        for n in range(99)
    )
    past = ScaleHistory(
        tuple((NOW_MS - n, n) for n in range(999, 0, -1)),
        desired=9,
        scaled_up_ms=NOW_MS,
        scaled_down_ms=NOW_MS,
        blind_since_ms=NOW_MS,
        idle_since_ms=NOW_MS,
        low_since_ms=NOW_MS,
        woken_ms=NOW_MS,
        served=True,
        rates=rates,
        gaps_ms=(86_400_000,) * 99,
    )
    given_readings = readings(load=1.0, engines=busy(2))
    kept = asked(a_capacity(), facts(2), given_readings, past).history

    assert len(canonical_json(to_data(kept))) < 2_560


@given(st.floats(0, 200), st.floats(0, 50), st.integers(0, 5), st.sampled_from([None, "told"]))
def test_with_a_constant_backlog_the_count_never_runs_away(backlog, load, stuck, told):
    """Warming replicas count: need is bought once, however long they take, and never more for
    those that are stuck: whoever places replicas substitutes each once.
    """
    spec = a_capacity(most=10_000, prior=CapacityPrior(1_000.0, 200.0) if told else None)
    engines = busy(2, waiting=backlog / 2, queued=backlog > 0, rate=2.0)
    past, wanted, counts = NO_SCALE, 2, []
    for number in range(40):
        known = facts(2, wanted=wanted, warming=max(0, wanted - 2), stuck=stuck, p90_s=600)
        given_readings = readings(load=load, engines=engines)
        answer = asked(spec, known, given_readings, past, number * TICK_MS)
        past, wanted = answer.history, answer.replicas
        counts.append(wanted)
    need = load * 1.2 / 2 + (backlog + load * 60) / (2 * 30)

    assert max(counts) <= need + 3
    assert counts[5:] == counts[5:6] * 35


def naive(known, given_readings, now_ms):
    """The ready-only arm: what stands plus what is short of Ready, at most 40 (the fuse)."""
    need = -(-given_readings.load.arrivals.value // 2.0)
    return min(40, known.count + max(0, int(need) - known.ready))


def following(spec):
    """A rule that follows `scale` and remembers for it."""
    kept = [NO_SCALE]

    def rule(known, given_readings, now_ms):
        answer = scale(spec, known, given_readings, kept[0], now_ms)
        kept[0] = answer.history
        return answer.replicas

    return rule


def test_the_ready_only_arm_of_the_seeds_experiment_is_reproduced():
    """Seed 000: 27 to 28 replicas and 12,364 replica-seconds; pods take two seconds to schedule."""
    at_once = play(naive, experiment())
    run = play(naive, experiment(), warm_up_ms=62_000)

    assert (26, 28) == (at_once.peak, run.peak)
    assert abs(run.replica_seconds - 12_364) <= 0.03 * 12_364
    assert len(run.waits_ms) == 4_080


def test_counting_warming_replicas_peaks_at_four():
    """The instrument: capacity told, no headroom, no backlog; a minute of hold as the warm-up."""
    instrument = Scaling(
        1,
        40,
        interval_ms=5_000,
        headroom_percent=0,
        drain_window_ms=0,
        capacity=CapacityPrior(200.0, 200.0),
        scale_down=ScaleDown(window_ms=60_000),
    )
    run = play(following(instrument), experiment())

    assert run.peak == 4
    assert run.replica_seconds <= 2_113
    assert len(run.waits_ms) == 4_080


def test_the_default_policy_keeps_waits_short_at_a_third_of_the_cost():
    """Nobody tells it a capacity: issue D figure 1 (b)."""
    run = play(following(Scaling(1, 20, interval_ms=5_000)), experiment())

    assert run.late() <= 0.20
    assert run.replica_seconds <= 5_000
    assert run.backlog == 0


def test_a_step_is_followed_in_a_handful_of_changes():
    """Up in a few purchases, then down once: no flapping."""
    counts = play(following(Scaling(1, 20, interval_ms=5_000)), experiment()).counts
    changes = sum(1 for before, after in pairwise(counts) if before != after)

    assert changes <= 6
