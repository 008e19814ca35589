"""When the last replica leaves, and when a service at zero wakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model.scale_history import NO_SCALE, ScaleHistory
from stoker.model.scaling import (
    PrometheusQuery,
    ScaleToZero,
    ScheduledBounds,
    WakeSource,
    ZeroPolicy,
)
from unit.decide.scaling import (
    GONE,
    NOW_MS,
    SECOND,
    a_capacity,
    a_ratio,
    asked,
    busy,
    facts,
    idle,
    low_for,
    readings,
    sample,
)

MINUTE = 60 * SECOND
GATEWAY = WakeSource("gateway", PrometheusQuery("main", "queue"), 30_000)


def zero(policy=ZeroPolicy.AFTER_IDLE, idle_s=300, breach=2.0, wake=(GATEWAY,)):
    return ScaleToZero(policy, idle_s * SECOND, breach, wake)


def spec(*, least=0, blind_s=None, scheduled=(), **fields):
    blind_ms = None if blind_s is None else blind_s * SECOND
    return a_capacity(
        least=least, blind_for_ms=blind_ms, scheduled=scheduled, scale_to_zero=zero(**fields)
    )


def resting(*, wake=0.0, load=0.0, count=1):
    given = [("gateway", wake if not isinstance(wake, float) else sample(wake))]
    return readings(load=load, engines=idle(count), wake=given)


def idle_for(seconds, **fields) -> ScaleHistory:
    since_ms = NOW_MS - seconds * SECOND
    return low_for(seconds, idle_since_ms=since_ms, recommended=((since_ms, 0),), **fields)


ONE = facts(1, price_per_hour=3.0, p90_s=45)
NONE = facts(0, price_per_hour=3.0, p90_s=45)
SLEEPS = ScaleHistory(served=True)


def test_after_idle_the_last_replica_leaves():
    """Idle is measured: no arrival, nothing under way, nobody at the gateway."""
    before = asked(spec(), ONE, resting(), idle_for(299))
    at = asked(spec(), ONE, resting(), idle_for(300))

    assert (1, 0) == (before.replicas, at.replicas)
    assert before.verdict.limited == "one replica stays: idle for 299s of 300s"
    assert before.wake_at_ms == NOW_MS + SECOND


def test_idle_is_counted_from_when_it_was_first_seen():
    """And remembered."""
    answer = asked(spec(), ONE, resting())

    assert (1, NOW_MS) == (answer.replicas, answer.history.idle_since_ms)


def test_it_waits_at_least_for_a_cold_start():
    """The cooldown rule of seed 002: to stop sooner only makes more cold starts."""
    short = spec(idle_s=10)

    assert asked(short, ONE, resting(), idle_for(44)).replicas == 1
    assert asked(short, ONE, resting(), idle_for(60)).replicas == 0


@pytest.mark.parametrize(
    ("known", "given", "past"),
    [
        pytest.param(ONE, resting(load=0.1), idle_for(900), id="an arrival between two polls"),
        pytest.param(ONE, resting(load=GONE), idle_for(900), id="load not known"),
        pytest.param(ONE, resting(wake=1.0), idle_for(900), id="somebody waits at the gateway"),
        pytest.param(ONE, resting(wake=GONE), idle_for(900), id="nobody could wake it"),
        pytest.param(
            ONE,
            replace(resting(), engines=busy(1)),
            idle_for(900),
            id="a request under way",
        ),
        pytest.param(ONE, replace(resting(), engines=()), idle_for(900), id="silent replica"),
        pytest.param(
            facts(0, warming=1), resting(count=0), idle_for(900), id="not Ready yet, this time"
        ),
        pytest.param(ONE, None, idle_for(900), id="nothing read"),
        pytest.param(ONE, resting(), NO_SCALE, id="history lost"),
    ],
)
def test_the_last_replica_stays(known, given, past):
    """Kept for what is not known as for what is under way."""
    assert asked(spec(), known, given, past).replicas == 1


def test_never_to_zero_before_the_first_ready():
    """Init takes long, and nobody asks for a service that cannot answer yet (kserve 1247)."""
    past = replace(idle_for(900), served=False)
    answer = asked(spec(), facts(0, warming=1), resting(count=0), past)

    assert answer.replicas == 1
    assert "never to zero before it was Ready" in answer.verdict.limited


def test_a_policy_of_never_keeps_one():
    """Although minReplicas is 0."""
    answer = asked(spec(policy=ZeroPolicy.NEVER), ONE, resting(), idle_for(9_000))

    assert (1, "one replica stays: scaleToZero.policy is Never") == (
        answer.replicas,
        answer.verdict.limited,
    )


def test_break_even_gives_up_after_41_minutes():
    """3 dollars an hour, 2 for a client that waits, 45 s of cold start: 40.75 minutes."""
    policy = spec(policy=ZeroPolicy.BREAK_EVEN)
    before = asked(policy, ONE, resting(), idle_for(2_444))
    at = asked(policy, ONE, resting(), idle_for(2_445))

    assert (1, 0) == (before.replicas, at.replicas)
    assert "break-even gap 41 min with the SLO, 45s in GPU money alone" in before.verdict.limited


def test_break_even_learns_from_the_idle_times_that_were_seen():
    """Gaps of a day: it does not wait for the 41 minutes."""
    past = idle_for(60, gaps_ms=(1_440 * MINUTE,) * 5)

    assert asked(spec(policy=ZeroPolicy.BREAK_EVEN), ONE, resting(), past).replicas == 0


def test_without_a_price_nothing_breaks_even():
    """And so nothing leaves."""
    answer = asked(
        spec(policy=ZeroPolicy.BREAK_EVEN),
        replace(ONE, price_per_hour=None),
        resting(),
        idle_for(9),
    )

    assert answer.replicas == 1
    assert "no price" in answer.verdict.limited


def test_an_idle_time_ends_with_a_request_and_is_remembered():
    """Of at least a round: less is no gap."""
    ended = asked(spec(), ONE, resting(load=1.0), idle_for(900)).history
    blip = asked(spec(), ONE, resting(load=1.0), idle_for(14)).history

    assert (None, (900 * SECOND,)) == (ended.idle_since_ms, ended.gaps_ms)
    assert () == blip.gaps_ms


def test_an_outage_is_no_idle_time():
    """It begins anew."""
    during = asked(spec(), ONE, resting(load=GONE), idle_for(900)).history

    assert during.idle_since_ms is None


# At zero.


@pytest.mark.parametrize(
    ("given", "count", "why"),
    [
        pytest.param(resting(wake=3.0, count=0), 1, "3 wait at gateway", id="gateway"),
        pytest.param(resting(load=0.2, count=0), 1, "0.2 requests a second", id="an arrival"),
        pytest.param(resting(load=8.0, count=0), 5, "8 requests a second", id="many arrivals"),
        pytest.param(resting(count=0), 0, "nobody asks for it", id="nobody"),
        pytest.param(resting(wake=GONE, load=GONE, count=0), 0, "nobody asks for it", id="blind"),
        pytest.param(None, 0, "nobody asks for it", id="nothing read"),
    ],
)
def test_a_service_at_zero_wakes_for_whoever_asks(given, count, why):
    """And for nothing else: a failed read holds."""
    answer = asked(spec(), NONE, given, SLEEPS)

    assert (count, why) == (answer.replicas, answer.verdict.why)


def test_the_idle_time_goes_on_at_zero_until_somebody_asks():
    """That is the gap that break-even is about."""
    past = replace(SLEEPS, idle_since_ms=NOW_MS - 90 * MINUTE)
    still = asked(spec(), NONE, resting(count=0), past).history
    blind = asked(spec(), NONE, resting(wake=GONE, load=GONE, count=0), past).history
    woken = asked(spec(), NONE, resting(wake=1.0, count=0), past).history

    assert still.idle_since_ms == blind.idle_since_ms == NOW_MS - 90 * MINUTE
    assert (None, (90 * MINUTE,), NOW_MS) == (woken.idle_since_ms, woken.gaps_ms, woken.woken_ms)


def test_being_blind_for_too_long_wakes_one():
    """Capacity after ten minutes, or what blindFor says; nobody knows who waits."""
    blind = resting(wake=GONE, load=GONE, count=0)
    first = asked(spec(), NONE, blind, SLEEPS)
    before = asked(spec(), NONE, blind, first.history, 10 * MINUTE - 1)
    at = asked(spec(), NONE, blind, first.history, 10 * MINUTE)
    sooner = asked(spec(blind_s=30), NONE, blind, first.history, 30 * SECOND)

    assert (0, 0, 1, 1) == (first.replicas, before.replicas, at.replicas, sooner.replicas)
    assert first.wake_at_ms == NOW_MS + 10 * MINUTE
    assert at.verdict.why == "nothing could be measured for 600s"


def test_one_source_that_answers_is_not_blind():
    """It says that nobody waits."""
    past = replace(SLEEPS, blind_since_ms=NOW_MS - 90 * MINUTE)
    answer = asked(spec(), NONE, resting(load=GONE, count=0), past)

    assert (0, None) == (answer.replicas, answer.history.blind_since_ms)


def test_ratio_is_blind_for_ever_unless_git_says_for_how_long():
    """As the seed."""
    past = replace(SLEEPS, blind_since_ms=NOW_MS - 900 * MINUTE)
    silent = readings(queue=GONE)

    assert asked(a_ratio(least=0), facts(0), silent, past).replicas == 0
    assert asked(a_ratio(least=0, blind_for_ms=MINUTE), facts(0), silent, past).replicas == 1


def test_ratio_with_a_wake_source_wakes_too():
    """The metric of pods that do not exist says nothing."""
    given = readings(queue=GONE, wake=[("gateway", sample(2.0))])

    assert asked(a_ratio(least=0, scale_to_zero=zero()), facts(0), given, SLEEPS).replicas == 1


def test_a_schedule_wakes():
    """Its lower bound holds a cold start before it begins."""
    daily = ScheduledBounds("day", "0 0 * * *", 1_439 * MINUTE, "UTC", 2)
    answer = asked(spec(scheduled=(daily,)), NONE, resting(count=0), SLEEPS)

    assert (2, "schedule day: minReplicas") == (answer.replicas, answer.verdict.rule)


def test_a_replica_that_was_woken_is_not_put_to_bed_before_it_served():
    """Its client waits for it; the gateway forgot, or the next poll says nothing."""
    woken = asked(spec(), NONE, resting(wake=1.0, count=0), SLEEPS)
    next_round = asked(spec(), facts(0, warming=1), resting(count=0), woken.history, 15 * SECOND)

    assert (1, 1) == (woken.replicas, next_round.replicas)
