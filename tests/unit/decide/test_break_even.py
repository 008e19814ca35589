"""How long an idle replica is worth keeping: seed 002, semantics 6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.break_even import break_even, break_even_gap_ms

MINUTE = 60_000


@pytest.mark.parametrize(
    ("cold_s", "minutes"), [(45, 40.75), (40, 40.67), (60, 41.0), (92, 41.53), (0, 40.0)]
)
def test_the_guides_gap_is_about_41_minutes(cold_s, minutes):
    """2 dollars for a client that waits, 3 dollars an hour."""
    gap_ms = break_even_gap_ms(cold_s * 1_000, 2.0, 3.0)

    assert minutes == pytest.approx(gap_ms / MINUTE, abs=0.01)


def test_both_views_are_told():
    """Dollars alone always favour zero; only the SLO view says whether it can be defended."""
    found = break_even((), 45_000, 2.0, 3.0)

    assert (2_445_000, 45_000, 2_445_000) == (found.gap_ms, found.dollars_ms, found.wait_ms)
    assert found.told == (
        "break-even gap 41 min with the SLO, 45s in GPU money alone; "
        "gives up after 41 min as nothing is known of idle times"
    )


def test_short_gaps_are_waited_for_and_long_ones_are_not():
    """A service that is asked every few minutes and then not for the night."""
    found = break_even((*[5 * MINUTE] * 6, 600 * MINUTE, 700 * MINUTE), 45_000, 2.0, 3.0)

    assert 5 * MINUTE == found.wait_ms
    assert "from 8 idle times" in found.told


def test_where_every_gap_is_long_it_gives_up_at_once():
    """A tool that is used once a day."""
    assert break_even([500 * MINUTE] * 5, 45_000, 2.0, 3.0).wait_ms == 0


def test_where_every_gap_is_short_it_waits_at_least_for_the_break_even():
    """A gap longer than all that were seen may be the end of the day."""
    assert break_even([MINUTE] * 9, 45_000, 2.0, 3.0).wait_ms == 2_445_000


@given(
    st.lists(st.integers(0, 10**8), max_size=40),
    st.integers(0, 10**6),
    st.floats(0, 100),
    st.floats(0.01, 100),
)
def test_no_wait_is_cheaper_on_the_idle_times_that_were_seen(gaps, cold_ms, breach, price):
    """The wait is the best one, or that of the ski rental bound."""
    found = break_even(gaps, cold_ms, breach, price)

    def cost(wait_ms):
        return sum(min(g, wait_ms) + (found.gap_ms if g > wait_ms else 0) for g in gaps)

    assert found.wait_ms >= 0
    if len(gaps) >= 5:
        assert cost(found.wait_ms) <= min(cost(0), cost(max(gaps)), cost(found.gap_ms)) + 1
