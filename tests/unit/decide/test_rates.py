"""What one replica can do, learned from those that serve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.decide.measured import Engines
from stoker.decide.rates import (
    MOST_RATES,
    Request,
    learned_rates,
    rate_of,
    request_of,
    requests_per_second,
    smoothed,
)
from stoker.model.readings import LoadReading
from stoker.model.scale_history import ScaleHistory
from stoker.model.scaling import CapacityPrior
from unit.decide.scaling import NOW_MS, busy, engine, facts, learned, sample

PRIOR = CapacityPrior(1_000.0, 200.0)


def rates(*engines, past=(), prior=None, since_s=600):
    """Requests a second of what is known of rev r1 after these, and whether it is whole."""
    known = facts(len(engines), since_s=since_s)
    found = learned_rates(past, known, Engines(engines), prior, NOW_MS)
    return [(each.decode_tokens_per_second / 100, each.saturated) for each in found]


def full(number=0, **fields):
    return engine(number, queued=True, waiting=3.0, **fields)


def test_a_full_replica_teaches_what_one_can_do():
    """Requests waited in it for the whole window."""
    assert rates(full(rate=2.0)) == [(2.0, True)]


def test_full_replicas_teach_their_mean_and_others_nothing():
    """One that is not full says nothing of the most it can do."""
    assert rates(full(0, rate=2.0), full(1, rate=3.0), engine(2, rate=0.5)) == [(2.5, True)]


def test_a_full_replica_that_is_young_gives_a_lower_bound():
    """Cold caches, kernels still compiled: Ready for less than three minutes."""
    assert rates(full(rate=2.0), since_s=179) == [(2.0, False)]
    assert rates(full(rate=2.0), since_s=180) == [(2.0, True)]


def test_the_best_of_replicas_that_are_not_full_is_a_lower_bound():
    """However short it was Ready."""
    assert rates(engine(0, rate=0.5), engine(1, rate=1.5), since_s=1) == [(1.5, False)]


def test_a_lower_bound_only_rises():
    """Less work is no less capacity."""
    past = (learned(1.5, saturated=False),)

    assert rates(engine(rate=0.5), past=past) == [(1.5, False)]
    assert rates(engine(rate=1.75), past=past) == [(1.75, False)]


def test_full_windows_are_averaged():
    """A quarter each: one window is noise."""
    assert rates(full(rate=4.0), past=(learned(2.0),)) == [(2.5, True)]


def test_full_windows_turn_a_lower_bound_into_a_rate():
    """By averaging: one window of a few long requests may hold no token at all."""
    assert rates(full(rate=1.0), past=(learned(2.0, saturated=False),)) == [(1.75, True)]


def test_full_replicas_that_are_young_lower_a_lower_bound():
    """The best burst of one that was not full is more than it can do for long."""
    past = (learned(2.0, saturated=False),)

    assert rates(full(rate=1.0), past=past, since_s=30) == [(1.75, False)]
    assert rates(full(rate=1.0), past=(learned(2.0),), since_s=30) == [(2.0, True)]


def test_a_reading_counts_once():
    """Passes are more frequent than scrapes."""
    seen = Engines((full(rate=4.0),))
    first = learned_rates((learned(2.0),), facts(1), seen, None, NOW_MS)
    second = learned_rates(first, facts(1), seen, None, NOW_MS + 1)

    assert first == second != (learned(2.0),)


def test_replicas_that_are_not_full_may_raise_what_full_ones_taught():
    """The mix of requests changes; their mean has to speak, not one replica's luck."""
    past = (learned(2.0),)

    assert rates(engine(0, rate=4.0), engine(1, rate=1.0), past=past) == [(2.5, True)]
    assert rates(engine(0, rate=3.0), engine(1, rate=0.5), past=past) == [(2.0, True)]


@pytest.mark.parametrize(("rate", "known"), [(0.5, 1.0), (2.0, 2.0), (9.0, 4.0)])
def test_what_is_learned_stays_within_half_and_double_of_what_git_declares(rate, known):
    """A declared 2 requests a second."""
    assert rates(full(rate=rate), prior=PRIOR) == [(known, True)]


@pytest.mark.parametrize(
    "silent",
    [
        pytest.param({"decode_tokens_per_second": None}, id="first round"),
        pytest.param({"prefill_tokens_per_second": 0.0, "decode_tokens_per_second": 0.0}, id="0"),
    ],
)
def test_a_replica_without_rates_teaches_nothing(silent):
    """Not known is not zero."""
    assert rates(full(**silent)) == []


def test_the_newest_rates_are_kept():
    """The history is small."""
    past = tuple(replace(learned(2.0, rev=f"r{n:02}"), at_ms=n) for n in range(20))

    assert len(rates(full(rate=2.0), past=past)) == MOST_RATES


def test_a_rev_or_accelerator_learns_for_itself():
    """Two GPU products in one service."""
    known = facts(2)
    pods = (known.pods[0], replace(known.pods[1], accelerator="H100"))
    known = replace(known, pods=pods)
    engines = Engines((full(0, rate=1.0), full(1, rate=4.0)))
    found = learned_rates((), known, engines, None, NOW_MS)

    assert ["H100", "L4"] == [each.accelerator for each in found]
    assert rate_of(found, known, None) == (1_250.0, 250.0, True)


def test_a_new_rev_begins_with_the_newest_other_one_as_a_lower_bound():
    """After an update nothing is bought for a capacity that nobody measured."""
    old = (learned(2.0, rev="r0"), replace(learned(9.0, rev="q9"), at_ms=0))

    assert rate_of(old, facts(1), None) == (1_000.0, 200.0, False)
    assert rate_of((), facts(1), None) is None


def test_what_git_declares_holds_until_full_replicas_were_seen():
    """An idle service is not worth half of it."""
    little = (learned(0.1, saturated=False),)
    more = (learned(3.0, saturated=False),)

    assert rate_of(little, facts(1), PRIOR) == (1_000.0, 200.0, True)
    assert rate_of(more, facts(1), PRIOR) == (1_500.0, 300.0, True)
    assert rate_of((), facts(0), PRIOR) == (1_000.0, 200.0, True)


def test_a_rate_holds_while_nobody_is_ready():
    """A wake from zero counts with it."""
    assert rate_of((learned(2.0),), facts(0), None) == (1_000.0, 200.0, True)


def test_sizes_of_requests_come_from_the_load_else_from_what_was_finished():
    """Each by itself."""
    load = LoadReading(sample(1.0), False, 700.0, None)

    assert request_of(load, Engines(busy(2))) == Request(700.0, 100.0)
    assert request_of(None, Engines(busy(1, rate=0.0))) == Request()


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -1.0])
def test_a_size_that_is_no_number_is_not_known(odd):
    """It would make every capacity one."""
    load = LoadReading(sample(1.0), False, odd, odd)

    assert request_of(load, Engines(busy(1))) == Request(500.0, 100.0)


@pytest.mark.parametrize(
    ("request_", "served"),
    [
        pytest.param(Request(500.0, 100.0), 2.0, id="as learned"),
        pytest.param(Request(900.0, 0.0), 2.0, id="a decoded token is worth four"),
        pytest.param(Request(None, 100.0), 2.0, id="decoded tokens alone"),
        pytest.param(Request(500.0, None), 2.0, id="prefilled tokens alone"),
        pytest.param(Request(0.0, 0.0), None, id="nothing to do"),
        pytest.param(Request(), None, id="unknown"),
    ],
)
def test_a_rate_is_worth_so_many_requests(request_, served):
    """Learned from one mix, it holds for another."""
    assert served == requests_per_second(1_000.0, 200.0, request_)


def test_the_size_of_requests_is_that_of_several_rounds():
    """Those of one round are few, and a count that follows them follows noise."""
    past = ScaleHistory(prefill_tokens=500.0)

    assert smoothed(past, Request(1_000.0, 100.0)) == Request(600.0, 100.0)
    assert smoothed(past, Request()) == Request(500.0, None)
