"""Public bug reports about counts that follow load, replayed (cases.md rows 101 to 117)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.decide.stalled import STALLED_MS
from stoker.model.readings import Sample, Unmeasurable
from stoker.model.scale_history import NO_SCALE, ScaleHistory
from unit.decide.scaling import (
    GONE,
    NAN,
    NOW_MS,
    SECOND,
    a_capacity,
    a_ratio,
    asked,
    busy,
    engine,
    facts,
    low_for,
    metric,
    readings,
)


@pytest.mark.parametrize("spec", [a_ratio(), a_capacity(metric("queue"))], ids=["Ratio", "ours"])
def test_row_101_not_a_number_holds(spec):
    """Seen in keda 7475: NaN became a huge negative number."""
    assert asked(spec, facts(3), readings(queue=NAN)).replicas == 3


@pytest.mark.parametrize("spec", [a_ratio(), a_capacity(metric("queue"))], ids=["Ratio", "ours"])
def test_row_103_a_negative_value_holds_and_is_not_clamped(spec):
    """Seen in keda 7880: -5 gave a wrong count."""
    answer = asked(spec, facts(3), readings(queue=Sample(-5.0, NOW_MS, 60_000)))

    assert answer.replicas == 3
    assert ("metric queue", "negative (-5)") in answer.verdict.unmeasurable


def test_row_105_an_average_of_no_endpoint_holds():
    """Seen in keda 7742: division by zero when all endpoints fail."""
    none = Unmeasurable("missing", "0 of 3 pods answer", NOW_MS)

    assert asked(a_ratio(), facts(3), readings(queue=none)).replicas == 3
    assert asked(a_capacity(), facts(3), readings(load=none)).replicas == 3


def test_row_107_a_source_that_is_down_from_the_start_at_zero_has_a_fallback():
    """Seen in keda 7411, 7239: at 0 replicas the fallback was not applied."""
    spec = a_ratio(least=0, blind_for_ms=60 * SECOND)
    first = asked(spec, facts(0), readings(queue=GONE), ScaleHistory(served=True))
    later = asked(spec, facts(0), readings(queue=GONE), first.history, 60 * SECOND)

    assert (0, 1) == (first.replicas, later.replicas)


@pytest.mark.parametrize("spec", [a_ratio(window_s=60), a_capacity()], ids=["Ratio", "ours"])
def test_row_109_a_controller_that_has_restarted_keeps_the_count(spec):
    """Seen in keda 5490: once paused, the load was scaled to 0 by the restart."""
    fresh = replace(facts(4), wanted=None)
    given = readings(queue=0, load=0.0, engines=busy(4, running=0.0, rate=0.0))

    assert asked(spec, fresh, given, NO_SCALE).replicas == 4
    assert asked(spec, fresh, None, NO_SCALE).replicas == 4


def test_row_111_two_services_do_not_share_a_result():
    """Seen in aibrix 436: A wants 2, B wants 5."""
    spec = a_ratio(metric("d", None))

    assert asked(spec, facts(1), readings(d=2)).replicas == 2
    assert asked(spec, facts(1), readings(d=5)).replicas == 5


def test_row_115_a_replica_that_was_not_scraped_is_not_spare():
    """Seen in wva 360: a missing series was read as idle."""
    given = readings(load=1.0, engines=busy(3))
    answer = asked(a_capacity(), facts(4), given, low_for(600))

    assert (4, "1 of 4 Ready replicas say nothing (p-3)") == (
        answer.replicas,
        answer.verdict.held,
    )


def test_row_117_nothing_more_is_bought_while_replicas_start():
    """Seen in wva 549: three pending pods, and a cascade of scale-ups."""
    spec = a_capacity(metric("queue"), prior=None)
    given = readings(load=8.0, engines=busy(1, rate=0.0, waiting=30.0, queued=True), queue=30)
    bought = ScaleHistory(scaled_up_ms=NOW_MS - 30 * SECOND)

    assert asked(spec, facts(1, warming=3), given, bought).replicas == 4


def test_row_117_queues_that_stand_still_are_told_and_keep_nothing_for_ever():
    """Seen in wva 769: 6 of 7 pods report a frozen queue, and it never scales down again."""
    frozen = [engine(n, waiting=9.0, queued=True, rate=0.0, kv=0.1) for n in range(6)]
    given = readings(load=0.5, engines=(*frozen, engine(6, rate=0.5, kv=0.1)))
    spec, known = a_capacity(), facts(7)
    first = asked(spec, known, given, low_for(600))
    past = replace(first.history, recommended=low_for(600).recommended)
    told = asked(spec, known, given, past, STALLED_MS)
    after = asked(spec, known, given, told.history, STALLED_MS + 60 * SECOND)

    assert (7, 7, 1) == (first.replicas, told.replicas, after.replicas)
    assert ("queue of p-0", "it waits since 2025-06-15T15:06:40Z and no token is made") in (
        told.verdict.unmeasurable
    )


def test_a_queue_that_moves_again_is_no_longer_stalled():
    """The clock begins anew."""
    past = ScaleHistory(stalled_since_ms=NOW_MS - STALLED_MS)
    given = readings(load=2.0, engines=busy(1, rate=2.0, waiting=3.0, queued=True))

    assert asked(a_capacity(), facts(1), given, past).history.stalled_since_ms is None
