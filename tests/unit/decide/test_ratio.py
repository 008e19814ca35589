"""`algorithm: Ratio` is LLMScaler's rule to the letter: seed 001, row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model.readings import Sample, Unmeasurable
from stoker.model.scale_history import NO_SCALE, ScaleHistory
from unit.decide.scaling import (
    GONE,
    NAN,
    NOW_MS,
    SECOND,
    a_ratio,
    asked,
    facts,
    metric,
    readings,
    sample,
)

SERVED = ScaleHistory(served=True)
EMPTY = Unmeasurable("missing", "no series", NOW_MS)
MANY = Unmeasurable("many-values", "3 series", NOW_MS)


@pytest.mark.parametrize(
    ("ready", "value", "count"),
    [
        pytest.param(2, 5, 2, id="on target"),
        pytest.param(2, 5.0001, 3, id="no tolerance band"),
        pytest.param(3, 10, 6, id="twice the target"),
        pytest.param(3, 1, 1, id="below target"),
        pytest.param(3, 0, 1, id="nothing, down to minReplicas"),
        pytest.param(4, 500, 20, id="clamped to maxReplicas"),
        pytest.param(2, 1e300, 20, id="absurd, clamped"),
    ],
)
def test_the_count_is_ready_times_value_over_target(ready, value, count):
    """Standard HPA arithmetic, rounded up, off the Ready replicas."""
    answer = asked(a_ratio(), facts(ready), readings(queue=value))

    assert count == answer.replicas


def test_the_largest_recommendation_wins():
    """Across entries of spec.metrics."""
    spec = a_ratio(metric("queue"), metric("kv", 0.8))
    answer = asked(spec, facts(2), readings(queue=5, kv=1.6))

    assert (4, "metric kv") == (answer.replicas, answer.verdict.rule)


def test_decimals_are_taken_as_they_are_written():
    """3 x 0.8 / 0.8 is 3.0000000000000004 in floats, and would buy a replica for nothing."""
    answer = asked(a_ratio(metric("kv", 0.8)), facts(3), readings(kv=0.8))

    assert answer.replicas == 3


@pytest.mark.parametrize("bad", [GONE, NAN, EMPTY, MANY], ids=lambda bad: bad.code)
def test_a_metric_that_cannot_be_measured_is_skipped(bad):
    """It is not read as zero, and keeps nobody from buying."""
    spec = a_ratio(metric("queue"), metric("kv", 0.8))
    answer = asked(spec, facts(2), readings(queue=10, kv=bad))

    assert answer.replicas == 4
    assert (("metric kv", bad.why),) == answer.verdict.unmeasurable


@pytest.mark.parametrize("bad", [GONE, NAN, EMPTY, MANY], ids=lambda bad: bad.code)
def test_when_every_metric_is_skipped_the_count_is_held(bad):
    """Never zero."""
    answer = asked(a_ratio(least=0), facts(3), readings(queue=bad), SERVED)

    assert (3, False) == (answer.replicas, answer.verdict.active)
    assert answer.verdict.held


def test_a_percentile_of_no_request_lets_the_others_lower():
    """The seed's reason to skip: a guardrail answers NaN while nobody asks for anything."""
    spec = a_ratio(metric("queue"), metric("ttft", 2.0))
    answer = asked(spec, facts(4), readings(queue=0, ttft=NAN))

    assert answer.replicas == 1


@pytest.mark.parametrize("bad", [GONE, EMPTY, MANY], ids=lambda bad: bad.code)
def test_a_failed_read_keeps_the_others_from_lowering(bad):
    """Decision 44: what is kept from us may be what needs the replicas."""
    spec = a_ratio(metric("queue"), metric("kv", 0.8))
    answer = asked(spec, facts(4), readings(queue=0, kv=bad))

    assert answer.replicas == 4
    assert f"metric kv could not be measured: {bad.why}" == answer.verdict.held


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(float("nan"), id="NaN"),
        pytest.param(float("inf"), id="infinite"),
        pytest.param(-1.0, id="negative"),
    ],
)
def test_an_odd_sample_is_none(value):
    """Signals refuses them; an old record or a simulator may still bring one."""
    answer = asked(a_ratio(), facts(3), readings(queue=Sample(value, NOW_MS, 60_000)))

    assert answer.replicas == 3


@pytest.mark.parametrize(
    "old",
    [
        pytest.param(sample(0, age_ms=60_001), id="stale"),
        pytest.param(sample(0, age_ms=-1), id="of the future"),
    ],
)
def test_a_stale_sample_is_none(old):
    """Its time says nothing about now."""
    answer = asked(a_ratio(), facts(3), readings(queue=old))

    assert answer.replicas == 3
    assert "stale" in answer.verdict.unmeasurable[0][1]


def test_nothing_read_at_all_holds():
    """The first pass of a controller that has just started."""
    answer = asked(a_ratio(), facts(3), None)

    assert answer.replicas == 3
    assert (("metric queue", "not measured yet"),) == answer.verdict.unmeasurable


@pytest.mark.parametrize(
    ("value", "count"),
    [
        pytest.param(15, 15, id="absolute"),
        pytest.param(0, 1, id="clamped up"),
        pytest.param(150_000, 20, id="clamped down"),
    ],
)
def test_a_decision_is_absolute(value, count):
    """Multiplying it by the ready ratio would compound the server's own decision."""
    answer = asked(a_ratio(metric("d", None)), facts(3), readings(d=value))

    assert count == answer.replicas


@pytest.mark.parametrize("value", [2.5, 1e9, -1.0, float("nan")])
def test_a_decision_that_is_no_count_holds(value):
    """Issue D, bad input: one clear reason, never a scale-down."""
    given = readings(d=Sample(value, NOW_MS, 60_000))
    answer = asked(a_ratio(metric("d", None)), facts(3), given)

    assert answer.replicas == 3
    assert len(answer.verdict.unmeasurable) == 1


def test_a_decision_of_zero_is_a_recommendation():
    """With minReplicas 0."""
    answer = asked(a_ratio(metric("d", None), least=0), facts(3), readings(d=0), SERVED)

    assert answer.replicas == 0


def test_scale_up_is_immediate_and_without_cap():
    """Window and step bound what is removed only."""
    answer = asked(a_ratio(window_s=180, step=1), facts(1), readings(queue=50))

    assert answer.replicas == 10


def walked(spec, values, count=10, tick_s=15, ready=None):
    """Counts of one decision every `tick_s`, with all of them Ready at once."""
    past, counts, wanted = NO_SCALE, [], count
    for number, value in enumerate(values):
        known = facts(ready or wanted)
        later_ms = number * tick_s * SECOND
        known = replace(known, wanted=wanted)
        answer = asked(spec, known, readings(queue=value), past, later_ms)
        past, wanted = answer.history, answer.replicas
        counts.append((wanted, answer.desired))
    return counts


def test_the_highest_recommendation_of_the_window_holds():
    """A brief dip does not shrink the fleet: 180 s after the last high one it falls."""
    counts = walked(a_ratio(window_s=180), [5, *[1] * 14])

    assert [(10, 10)] * 13 + [(2, 2)] * 2 == counts


def test_an_outage_within_the_window_leaves_the_window_alone():
    """A skipped round recommends nothing."""
    counts = walked(a_ratio(window_s=60), [5, 1, GONE, GONE, 1, 1, 1])

    assert [10, 10, 10, 10, 10, 2, 2] == [count for count, _ in counts]


def test_steps_walk_down_and_status_says_where_to():
    """10, 8, 6 and so on, while desiredReplicas reports the destination."""
    counts = walked(a_ratio(metric("queue", 5.0), step=2), [0, 0, 0, 0, 0, 0])

    assert [(8, 1), (6, 1), (4, 1), (2, 1), (1, 1), (1, 1)] == counts


def test_steps_are_a_round_apart():
    """Passes that other events start must not walk a fleet down within seconds."""
    first = asked(a_ratio(step=2), facts(10), readings(queue=0))
    second = asked(a_ratio(step=2), facts(8), readings(queue=0), first.history, 14_999)

    assert 8 == first.replicas == second.replicas
    assert second.wake_at_ms == NOW_MS + 15_000


@pytest.mark.parametrize(
    ("value", "count"),
    [
        pytest.param(0, 0, id="nothing asks"),
        pytest.param(0.1, 1, id="something asks"),
        pytest.param(12, 3, id="as many as one replica would need"),
        pytest.param(GONE, 0, id="a failed read holds at zero"),
    ],
)
def test_zero_counts_from_a_baseline_of_one_replica(value, count):
    """A fleet of zero has no per-replica measurement to scale off."""
    answer = asked(a_ratio(least=0), facts(0), readings(queue=value), SERVED)

    assert count == answer.replicas


def test_while_none_is_ready_one_replica_is_the_baseline():
    """Ready is zero, whatever was asked for."""
    answer = asked(a_ratio(), facts(0, warming=2), readings(queue=12))

    assert answer.replicas == 3


@pytest.mark.parametrize("value", [0, 50])
def test_a_rollout_defers_everything(value):
    """New pods have cold caches, which distort the average and would be mis-picked."""
    answer = asked(a_ratio(), facts(3, rolling=True), readings(queue=value))

    assert answer.replicas == 3
    assert "rollout" in answer.verdict.held


def test_a_raised_minimum_holds_in_an_outage_too():
    """Git says it; it does not wait for a metric."""
    answer = asked(a_ratio(least=4), facts(2), readings(queue=GONE))

    assert (4, "minReplicas 4") == (answer.replicas, answer.verdict.limited)


def test_a_lost_history_starts_the_window_now():
    """Nothing shrinks because something was forgotten."""
    answer = asked(a_ratio(window_s=180), facts(6), readings(queue=0), NO_SCALE)

    assert answer.replicas == 6
    assert answer.wake_at_ms == NOW_MS + 180 * SECOND


def test_a_service_that_does_not_stand_yet_starts_with_one():
    """And with minReplicas, where those are more."""
    fresh = replace(facts(0), wanted=None, standing=0)

    assert asked(a_ratio(least=0), fresh, None).replicas == 1
    assert asked(a_ratio(least=3), fresh, None).replicas == 3


def test_bounds_of_zero_pin_it_there():
    """MaxReplicas 0 with minReplicas 0 disables scaling."""
    answer = asked(a_ratio(least=0, most=0), facts(0), readings(queue=50), SERVED)

    assert answer.replicas == 0


def test_the_words_name_the_rule_its_numbers_and_what_would_change_it():
    """For explain."""
    answer = asked(a_ratio(), facts(2), readings(queue=7.5))

    assert answer.reason.source == "Ratio"
    assert answer.reason.detail == "metric queue: 2 Ready x 7.5 / 5"
    assert answer.verdict.changes == ("metric queue above 7.5 in the mean of its replicas",)
