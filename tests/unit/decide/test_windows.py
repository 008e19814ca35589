"""Change windows: Deny wins, and a closed one says when it opens."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.windows import Opening, opening
from stoker.model.flow import ChangeWindow, WindowKind

HOUR = 3_600_000
OFFICE = ChangeWindow("office", WindowKind.ALLOW, "0 9 * * 1-5", 8 * HOUR, "Europe/Berlin")
FREEZE = ChangeWindow("freeze", WindowKind.DENY, "0 0 20 12 *", 14 * 24 * HOUR, "Europe/Berlin")


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("windows", "now", "closed_by", "until"),
    [
        ((), "2026-11-29T23:00:00Z", (), None),
        ((OFFICE,), "2026-11-30T08:00:00Z", (), None),
        ((OFFICE,), "2026-11-30T16:00:00Z", ("office",), "2026-12-01T08:00:00Z"),
        ((OFFICE,), "2026-11-29T23:00:00Z", ("office",), "2026-11-30T08:00:00Z"),
        ((FREEZE,), "2026-12-01T08:00:00Z", (), None),
        ((FREEZE,), "2026-12-22T09:00:00Z", ("freeze",), "2027-01-02T23:00:00Z"),
        ((OFFICE, FREEZE), "2026-12-22T09:00:00Z", ("freeze",), "2027-01-04T08:00:00Z"),
        ((OFFICE, FREEZE), "2026-12-18T20:00:00Z", ("office",), "2027-01-04T08:00:00Z"),
    ],
    ids=[
        "none-is-open", "opens-at-the-strike", "closes-at-its-end", "weekend", "deny-alone-is-open",
        "deny-ends", "deny-wins-over-allow", "the-next-one-is-denied",
    ],
)  # fmt: skip
def test_when_changes_are_applied(windows, now, closed_by, until):
    expected = Opening(closed_by, ms(until) if until else None)

    assert expected == opening(windows, ms(now))


def test_what_never_opens_says_so():
    always = ChangeWindow("always", WindowKind.DENY, "* * * * *", HOUR)

    assert Opening(("always",), None) == opening((always,), ms("2026-11-30T08:00:00Z"))


def test_what_opens_only_beyond_five_years_is_not_foreseen():
    """2100 is no leap year: the next 29 February after 2096 is in 2104."""
    leap = ChangeWindow("leap", WindowKind.ALLOW, "0 0 29 2 *", HOUR)

    assert Opening(("leap",), None) == opening((leap,), ms("2096-03-01T12:00:00Z"))


def test_what_is_denied_whenever_it_is_allowed_never_opens():
    leap = ChangeWindow("leap", WindowKind.ALLOW, "0 0 29 2 *", HOUR)
    never = ChangeWindow("never", WindowKind.DENY, "0 0 29 2 *", 2 * HOUR)

    assert Opening(("leap",), None) == opening((leap, never), ms("2026-03-01T12:00:00Z"))


WINDOWS = st.lists(
    st.builds(
        ChangeWindow,
        name=st.sampled_from(["a", "b", "c"]),
        kind=st.sampled_from(WindowKind),
        schedule=st.sampled_from(["0 9 * * *", "*/30 2 * * *", "0 0 * * 1", "15 * * * *"]),
        duration_ms=st.integers(1, 40).map(lambda n: n * HOUR // 2),
        time_zone=st.sampled_from(["UTC", "Europe/Berlin"]),
    ),
    max_size=3,
)
NOWS = st.integers(ms("2026-03-20T00:00:00Z"), ms("2026-11-10T00:00:00Z"))


@given(WINDOWS, NOWS)
def test_it_opens_at_the_instant_it_names_and_not_a_moment_before(windows, now):
    found = opening(windows, now)

    if found.until_ms is not None:
        assert now < found.until_ms
        assert opening(windows, found.until_ms).is_open
        assert not opening(windows, found.until_ms - 1).is_open
        assert not opening(windows, (now + found.until_ms) // 2).is_open


@given(WINDOWS, NOWS)
def test_one_more_deny_window_never_opens_anything(windows, now):
    more = [*windows, FREEZE]

    assert opening(windows, now).is_open or not opening(more, now).is_open
