"""`algorithm: Capacity`: as many as the load needs, bought once; fewer only where they would do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.readings import LoadReading
from stoker.model.scale_history import NO_SCALE, ScaleHistory
from stoker.model.scaling import PrometheusQuery, ScaleToZero, Slo, WakeSource
from unit.decide.scaling import (
    GONE,
    NAN,
    NOW_MS,
    PRIOR,
    SECOND,
    a_capacity,
    asked,
    busy,
    engine,
    facts,
    idle,
    learned,
    low_for,
    metric,
    readings,
    sample,
)

FULL = {"queued": True, "waiting": 4.0}


def count(spec, known, given, past=NO_SCALE):
    return asked(spec, known, given, past).replicas


@pytest.mark.parametrize(
    ("load", "need"),
    [
        pytest.param(1.8, 1, id="half of the headroom is left"),
        pytest.param(1.9, 2, id="less than half of it"),
        pytest.param(8.0, 5, id="8 x 1.2 / 2"),
        pytest.param(500.0, 20, id="within the bounds"),
        pytest.param(1.7e308, 20, id="absurd"),
    ],
)
def test_the_load_with_headroom_over_what_one_replica_can_do(load, need):
    """20 % by default."""
    assert need == count(a_capacity(), facts(1), readings(load=load, engines=busy()))


def test_what_waits_in_a_replica_asks_for_one_at_most():
    """It stays there: new ones take the place of one that is busy with its own queue."""
    spec, known = a_capacity(headroom_percent=0), facts(4, p90_s=0)
    little = asked(spec, known, readings(load=6.0, engines=busy(4, waiting=15.0)))
    much = asked(spec, known, readings(load=6.0, engines=busy(4, waiting=900.0)))

    assert (4, 7) == (little.replicas, much.replicas)
    assert little.verdict.why == "6/s + 0 % over 2/s a replica, 1 for what waits"


def test_what_waits_before_replicas_is_drained_within_the_window():
    """At a gateway: 240 take four replicas of 2 a second for 30 s."""
    gateway = WakeSource("gateway", PrometheusQuery("main", "queue"))
    spec = a_capacity(headroom_percent=0, scale_to_zero=ScaleToZero(wake=(gateway,)))
    given = readings(load=6.0, engines=busy(3), wake=[("gateway", sample(240))])

    assert count(spec, facts(3, p90_s=0), given) == 7
    assert count(spec, facts(0, warming=3), given) == 7


def test_what_will_be_served_before_a_start_ends_buys_nothing():
    """4 replicas have 2 a second to spare: in the minute of a cold start they serve 120 more."""
    spec = a_capacity(headroom_percent=0)
    given = readings(load=6.0, engines=busy(4, waiting=30.0))

    assert count(spec, facts(4, p90_s=0), given) == 5
    assert count(spec, facts(4), given) == 4


def test_half_of_the_headroom_is_for_noise():
    """From 4 replicas: 7.2 a second leave 10 %, 7.3 do not, and then all of it is asked for."""
    spec = a_capacity(headroom_percent=20)

    assert count(spec, facts(4), readings(load=7.2, engines=busy(4))) == 4
    assert count(spec, facts(4), readings(load=7.3, engines=busy(4))) == 5
    assert count(spec, facts(4), readings(load=8.4, engines=busy(4))) == 6


def test_what_is_bought_already_is_not_bought_again():
    """Warming replicas count: need is compared with Ready plus warming, not added to the count."""
    given = readings(load=8.0, engines=busy(1))

    assert count(a_capacity(), facts(1, warming=4), given) == 5
    assert count(a_capacity(), facts(1, warming=2), given) == 5


def test_the_drain_window_can_be_turned_off():
    """The instrument of the seed's experiment has none."""
    given = readings(load=6.0, engines=busy(2, rate=2.0, waiting=900.0, queued=True))

    assert count(a_capacity(headroom_percent=0, drain_window_ms=0), facts(2), given) == 3


# Without a declared capacity.


def test_a_rate_of_replicas_that_were_never_full_buys_nothing():
    """A service that idles would buy for a tiny rate, and its rate would never grow."""
    past = ScaleHistory(rates=(learned(0.1, saturated=False),))
    answer = asked(
        a_capacity(prior=None), facts(1), readings(load=0.5, engines=busy(rate=0.1)), past
    )

    assert answer.replicas == 1
    assert "no queue says that it is not enough" in answer.verdict.why


def test_a_rate_of_replicas_that_were_never_full_is_enough_to_lower():
    """What one of them carried, each can carry."""
    past = low_for(600, rates=(learned(3.0, saturated=False),))
    given = readings(load=4.0, engines=busy(5, rate=0.8))

    assert count(a_capacity(prior=None), facts(5), given, past) == 2


def test_replicas_that_are_full_buy_for_all_of_the_load():
    """Their rate in this window is what they can do."""
    given = readings(load=8.0, engines=busy(1, rate=2.0, waiting=1.0, queued=True))

    assert count(a_capacity(prior=None, drain_window_ms=0), facts(1, since_s=30), given) == 5


def test_a_lower_bound_is_trusted_for_eight_more_or_twice_as_many():
    """It may be off by any factor; those that become Ready say more."""
    full = {"rate": 0.01, "waiting": 1.0, "queued": True}
    one = readings(load=8.0, engines=busy(1, **full))
    ten = readings(load=8.0, engines=busy(10, **full))
    spec = a_capacity(prior=None, most=99)

    assert count(spec, facts(1, since_s=30), one) == 9
    assert count(spec, facts(10, since_s=30), ten) == 20


def test_short_requests_that_end_first_do_not_flatter_a_lower_bound():
    """What full replicas finish says more than sizes do; half of the bound holds in any case."""
    past = ScaleHistory(rates=(learned(4.0, saturated=False),))

    def bought(finished):
        fields = {"rate": 4.0, "finished_per_second": finished, "waiting": 1.0, "queued": True}
        given = readings(load=8.0, engines=busy(1, **fields))
        spec = a_capacity(prior=None, drain_window_ms=0)
        return count(spec, facts(1, since_s=30), given, past)

    assert (3, 4, 5, 3) == (bought(4.0), bought(2.5), bought(0.1), bought(None))


def test_a_first_queue_buys_one():
    """More than one request waits in each, but nothing was full for a whole window yet."""
    past = ScaleHistory(rates=(learned(2.0, saturated=False),))
    given = readings(load=8.0, engines=busy(1, rate=2.0, waiting=20.0))
    bought = replace(past, scaled_up_ms=NOW_MS - 5 * SECOND)

    assert count(a_capacity(prior=None), facts(1), given, past) == 2
    assert count(a_capacity(prior=None), facts(1, warming=1), given, bought) == 2


def test_before_any_rate_is_known_a_queue_buys_one_in_each_cold_start():
    """Bought once: not again while the purchase is on its way."""
    given = readings(load=8.0, engines=busy(1, rate=0.0, waiting=9.0, queued=True))
    first = asked(a_capacity(prior=None), facts(1), given)
    second = asked(
        a_capacity(prior=None), facts(1, warming=1), given, first.history, later_ms=5_000
    )
    third = asked(a_capacity(prior=None), facts(2), given, first.history, later_ms=60_000)

    assert (2, 2, 3) == (first.replicas, second.replicas, third.replicas)
    assert second.wake_at_ms == NOW_MS + 60_000


def test_without_a_queue_an_unknown_capacity_changes_nothing():
    """There is no number to divide by."""
    answer = asked(a_capacity(prior=None), facts(3), readings(load=8.0, engines=busy(3, rate=0.0)))

    assert answer.replicas == 3
    assert "not known yet" in answer.verdict.held


# Fewer.


def test_it_falls_after_the_window_and_says_until_when_it_holds():
    """At least the P90 of a cold start, also where Git asks for less."""
    spec, given = a_capacity(window_s=10), readings(load=1.0, engines=busy(4))
    first = asked(spec, facts(4), given)
    before = asked(spec, facts(4), given, first.history, 59_999)
    at = asked(spec, facts(4), given, first.history, 60_000)

    assert (4, 4, 1) == (first.replicas, before.replicas, at.replicas)
    assert "the highest of 60s holds" in first.verdict.held
    assert first.wake_at_ms == NOW_MS + 60_000


def test_without_a_window_in_git_it_holds_for_five_minutes():
    """A cold start of less than that does not shorten it."""
    spec = a_capacity()
    spec = replace(spec, scale_down=replace(spec.scale_down, window_ms=None))
    given = readings(load=1.0, engines=busy(4))

    assert count(spec, facts(4), given, low_for(299)) == 4
    assert count(spec, facts(4), given, low_for(300)) == 1


def test_steps_are_capped():
    """And a round apart."""
    answer = asked(a_capacity(step=2), facts(9), readings(load=1.0, engines=busy(9)), low_for(600))

    assert (7, 1, "maxStep 2") == (answer.replicas, answer.desired, answer.verdict.limited)
    assert answer.wake_at_ms == NOW_MS + 15_000


@pytest.mark.parametrize(
    ("spec", "given", "why"),
    [
        pytest.param(
            a_capacity(),
            readings(load=1.0, engines=(*idle(3), engine(3, waiting=4.0))),
            "4 requests wait",
            id="more wait than replicas would stay",
        ),
        pytest.param(
            a_capacity(),
            readings(load=1.0, engines=(*idle(3), engine(3, waiting=1.0, queued=True))),
            "1 requests wait",
            id="one is full",
        ),
        pytest.param(
            a_capacity(),
            readings(load=1.0, engines=busy(4, kv=0.61)),
            "3 would fill 81.3 % of their KV blocks, over 80%",
            id="KV blocks",
        ),
        pytest.param(
            a_capacity(slo=Slo(ttft_p95_ms=2_000)),
            readings(load=1.0, engines=busy(4, waiting=0.5, ttft_p95_ms=1_300.0)),
            "P95 TTFT of 3 would be 1733 ms of 2000 ms",
            id="TTFT",
        ),
        pytest.param(
            a_capacity(slo=Slo(itl_p95_ms=60)),
            readings(load=1.0, engines=busy(4, itl_p95_ms=40.0)),
            "P95 ITL of 3 would be 53.3 ms of 60 ms",
            id="ITL",
        ),
    ],
)
def test_it_does_not_fall_where_fewer_would_break_a_target(spec, given, why):
    """What each of the rest has to do grows with Ready over the count (semantics 1.15.2)."""
    answer = asked(spec, facts(4), given, low_for(600))

    assert answer.replicas == 4
    assert why in answer.verdict.held
    assert answer.history.low_since_ms is None


def test_a_first_token_that_waits_for_nothing_keeps_nobody():
    """A prompt of 12,000 tokens takes its seconds on any number of replicas; and one whose KV blocks
    are full of one long request says nothing of the others.
    """
    spec = a_capacity(slo=Slo(ttft_p95_ms=2_000))
    given = readings(
        load=1.0, engines=(*busy(3, kv=0.0, ttft_p95_ms=9e3), engine(3, kv=0.7, ttft_p95_ms=100.0))
    )

    assert count(spec, facts(4), given, low_for(600)) == 1


def test_it_falls_only_as_far_as_the_rest_can_carry():
    """The load would do with one; of KV blocks two fill 64 %."""
    given = readings(load=1.0, engines=busy(4, kv=0.32))

    assert count(a_capacity(), facts(4), given, low_for(600)) == 2


@pytest.mark.parametrize(
    ("known", "given", "why"),
    [
        pytest.param(facts(4), readings(load=GONE, engines=busy(4)), "the load", id="load"),
        pytest.param(facts(4), readings(engines=busy(4)), "the load", id="no load at all"),
        pytest.param(facts(4), readings(load=1.0, engines=busy(3)), "1 of 4", id="one replica"),
        pytest.param(
            facts(4),
            readings(load=1.0, engines=(*busy(3), engine(3, waiting=None))),
            "(p-3)",
            id="one number of one replica",
        ),
        pytest.param(
            facts(4),
            readings(load=1.0, engines=(*busy(3), engine(3, age_ms=45_001))),
            "1 of 4 Ready replicas say nothing (p-3)",
            id="one replica is silent for three rounds",
        ),
        pytest.param(
            facts(4),
            readings(load=1.0, engines=(*busy(3), engine(3, waiting=float("nan")))),
            "1 of 4",
            id="NaN",
        ),
        pytest.param(
            facts(4, rolling=True), readings(load=1.0, engines=busy(4)), "update", id="update"
        ),
        pytest.param(facts(4), None, "the load", id="nothing"),
    ],
)
def test_what_is_not_known_lowers_nothing(known, given, why):
    """Issue D figure 3; a missed scrape of one replica is not spare capacity (row 115)."""
    answer = asked(a_capacity(), known, given, low_for(600))

    assert answer.replicas == 4
    assert why in answer.verdict.held


def test_a_metric_that_is_not_known_lowers_nothing_while_it_works():
    """A percentile of no request keeps nobody from shrinking an idle service."""
    spec = a_capacity(metric("ttft", 2.0))
    works = readings(load=1.0, engines=busy(4), ttft=NAN)
    rests = readings(load=0.0, engines=idle(4), ttft=NAN)
    fails = readings(load=0.0, engines=idle(4), ttft=GONE)

    assert count(spec, facts(4), works, low_for(600)) == 4
    assert count(spec, facts(4), rests, low_for(600)) == 1
    assert count(spec, facts(4), fails, low_for(600)) == 4


def test_during_an_update_it_still_buys():
    """Load does not wait for an update."""
    assert count(a_capacity(), facts(1, rolling=True), readings(load=8.0, engines=busy(1))) == 5


# Metrics with targets, and the SLO.


def test_a_metric_with_a_target_asks_for_more_than_the_load():
    """The highest of all rules decides, counted against what is bought."""
    given = readings(load=1.0, engines=busy(2), queue=20)
    answer = asked(a_capacity(metric("queue", 5.0)), facts(2), given)

    assert (8, "metric queue") == (answer.replicas, answer.verdict.rule)
    assert count(a_capacity(metric("queue", 5.0)), facts(2, warming=6), given) == 8


def test_a_metric_buys_once_in_each_cold_start():
    """A queue grows while its replicas warm up, and would run to maxReplicas (semantics 1.2)."""
    spec = a_capacity(metric("queue", 5.0))
    bought = ScaleHistory(scaled_up_ms=NOW_MS - 30 * SECOND)
    given = readings(load=1.0, engines=busy(2), queue=200)
    answer = asked(spec, facts(2, warming=2), given, bought)

    assert answer.replicas == 4
    assert count(spec, facts(4), given, replace(bought, scaled_up_ms=NOW_MS - 61_000)) == 20


def test_a_decision_is_one_of_the_guards():
    """Absolute here too."""
    spec = a_capacity(metric("d", None))

    assert count(spec, facts(2), readings(load=1.0, engines=busy(2), d=7)) == 7


def test_a_broken_promise_buys_one_in_each_cold_start():
    """Clients wait longer than promised in replicas that are full, whatever the load says."""
    spec = a_capacity(slo=Slo(ttft_p95_ms=2_000), drain_window_ms=0)
    given = readings(load=1.0, engines=busy(2, ttft_p95_ms=2_500.0, queued=True, waiting=1.0))
    first = asked(spec, facts(2), given)
    second = asked(spec, facts(2, warming=1), given, first.history, 5_000)

    assert (3, "slo") == (first.replicas, first.verdict.rule)
    assert second.replicas == 3
    assert "2 of 2 are full and break 2000 ms P95 TTFT" == first.verdict.why


def test_one_replica_that_is_late_with_its_own_queue_is_no_reason():
    """What waits in it stays there, whatever is bought."""
    spec = a_capacity(slo=Slo(ttft_p95_ms=2_000), drain_window_ms=0)
    late = engine(0, ttft_p95_ms=99_000.0, queued=True, waiting=9.0)
    given = readings(load=1.0, engines=(late, engine(1)))

    assert count(spec, facts(2), given) == 2


def test_slow_answers_of_replicas_that_are_not_full_buy_nothing():
    """A long prompt is slow on any number of replicas."""
    spec = a_capacity(slo=Slo(ttft_p95_ms=2_000))

    assert count(spec, facts(2), readings(load=1.0, engines=busy(2, ttft_p95_ms=9e3))) == 2


def test_the_words_name_the_load_that_would_change_the_count():
    """For explain: 2 / 1.1 a replica, for half of the headroom is for noise."""
    answer = asked(a_capacity(), facts(2), readings(load=3.0, engines=busy(2)))

    assert answer.verdict.changes == (
        "more than 3.64 requests a second (now 3/s)",
        "less than 1.82 requests a second (now 3/s)",
    )
    assert answer.reason.detail == "load: 3/s + 20 % over 2/s a replica"


def test_the_other_algorithm_is_heard_too():
    """What each rule would have said."""
    spec = a_capacity(metric("queue", 5.0))
    said = asked(spec, facts(2), readings(load=3.0, engines=busy(2), queue=20)).verdict.said
    before = {each.rule: each.replicas for each in said}

    assert {"load": 2, "slo": None, "metric queue": 8} == before


def test_request_sizes_are_taken_from_the_replicas_where_the_load_has_none():
    """500 and 100 tokens a finished request."""
    given = readings(load=8.0, engines=busy(1, rate=1.0))
    given = replace(given, load=LoadReading(given.load.arrivals, True))

    assert count(a_capacity(prior=PRIOR), facts(1), given) == 5


@given(
    st.lists(st.floats(0, 1e6), min_size=2, max_size=2),
    st.floats(0, 1e3),
    st.booleans(),
    st.integers(0, 6),
    st.integers(0, 6),
    st.sampled_from([None, PRIOR]),
)
def test_more_load_never_asks_for_fewer(loads, waiting, queued, ready, warming, prior):
    """Everything else equal."""
    low, high = sorted(loads)
    spec = a_capacity(most=10_000, prior=prior)
    engines = busy(ready, waiting=waiting, queued=queued)
    past = ScaleHistory(rates=(learned(2.0, saturated=False),), served=True)
    known = facts(ready, warming=warming)

    assert count(spec, known, readings(load=low, engines=engines), past) <= count(
        spec, known, readings(load=high, engines=engines), past
    )


QUIET = {"prefill_tokens_per_second": 0.0, "decode_tokens_per_second": 0.0}


@pytest.mark.parametrize(
    ("slo", "lacks", "falls"),
    [
        (Slo(), {"kv": None}, False),
        (Slo(ttft_p95_ms=2_000), {"ttft_p95_ms": None}, False),
        (Slo(ttft_p95_ms=2_000), {"ttft_p95_ms": None, **QUIET}, True),
        (Slo(ttft_p95_ms=2_000), {"ttft_p95_ms": None, "finished_per_second": 0.0}, True),
        (Slo(itl_p95_ms=60), {"itl_p95_ms": None}, False),
        (Slo(itl_p95_ms=60), {"itl_p95_ms": None, **QUIET}, True),
        (Slo(), {"ttft_p95_ms": None, "itl_p95_ms": None}, True),
    ],
    ids=["kv", "ttft", "no first token", "nothing finished", "itl", "no token", "no promise"],
)
def test_what_is_promised_must_be_measured_before_one_leaves(slo, lacks, falls):
    """Unknown is never fine: as after a restart of what measures. A window in which there was
    nothing to measure is no failed read.
    """
    told = {"kv": 0.1, "ttft_p95_ms": 100.0, "itl_p95_ms": 10.0, "finished_per_second": 1.0}
    rates = {"prefill_tokens_per_second": 100.0, "decode_tokens_per_second": 50.0}
    engines = [engine(number, **told | rates) for number in range(2)]
    given = readings(load=0.5, engines=(*engines, engine(2, **told | rates | lacks)))

    assert falls == (count(a_capacity(slo=slo), facts(3), given, low_for(600)) < 3)
