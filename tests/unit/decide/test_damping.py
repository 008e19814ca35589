"""The window of recommendations, and steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.damping import MOST_KEPT, Recommended, remembered, stepped, window_ends_ms

W = 60_000


def after(*rounds, now=5, window_ms=W):
    """What is remembered after (instant, recommendation) of each round."""
    past: Recommended = ()
    for at_ms, count in rounds:
        past = remembered(past, count, now, window_ms=window_ms, now_ms=at_ms)
    return past


def test_a_recommendation_that_stays_changes_nothing():
    """A steady service must not write its history in every pass."""
    assert after((0, 5)) == after((0, 5), (15_000, 5), (900_000, 5))


def test_a_higher_one_takes_the_place_of_all_lower_ones():
    """Only the highest of the window is ever asked for."""
    assert after((0, 5), (1_000, 3), (2_000, 4), (3_000, 7)) == ((0, 7),)


def test_a_lower_one_stands_behind_the_higher_ones():
    """Each holds until the next began."""
    past = after((0, 5), (1_000, 3), (2_000, 1))

    assert past == ((0, 5), (1_000, 3), (2_000, 1))
    assert window_ends_ms(past, W) == 1_000 + W


def test_what_ended_a_window_ago_is_forgotten():
    """It was recommended last just before the next one."""
    before = after((0, 5), (1_000, 3), (60_999, 3))
    at = after((0, 5), (1_000, 3), (61_000, 3))

    assert before[0] == (0, 5)
    assert at == ((1_000, 3),)
    assert window_ends_ms(at, W) is None


def test_without_a_window_nothing_is_held():
    """StabilizationWindowSeconds 0 is off."""
    assert after((0, 5), (1_000, 2), window_ms=0) == ((1_000, 2),)


def test_a_clock_that_went_back_makes_no_window_longer():
    """What is said to begin in the future began now."""
    past = remembered(((900_000, 5),), 2, 5, window_ms=W, now_ms=1_000)

    assert past == ((1_000, 5), (1_000, 2))


@given(st.lists(st.tuples(st.integers(1, 30_000), st.integers(0, 100)), min_size=1, max_size=80))
def test_the_first_is_the_highest_of_the_window(rounds):
    """However counts rise and fall; dropping entries only ever holds for longer."""
    past: Recommended = ()
    at_ms, seen = 0, []
    for wait_ms, count in rounds:
        at_ms += wait_ms
        past = remembered(past, count, 0, window_ms=W, now_ms=at_ms)
        seen.append((at_ms, count))
    highest = max(count for since_ms, count in seen if since_ms > at_ms - W)

    assert past[0][1] >= highest
    assert len(past) <= MOST_KEPT
    assert sorted(past, key=lambda each: (each[0], -each[1])) == list(past)


def test_of_too_many_the_higher_ones_are_held_for_longer():
    """The history stays small."""
    falling = after(*((n, 100 - n) for n in range(100)), now=0)

    assert len(falling) == MOST_KEPT
    assert falling[0] == (0, 100)
    assert falling[-1] == (99, 1)


def test_a_step_bounds_only_what_is_removed():
    """Up at once."""
    assert stepped(10, 3, max_step=2) == 8
    assert stepped(10, 3, max_step=0) == 3
    assert stepped(3, 10, max_step=2) == 10
