"""Bounds of a count: of the service, and of schedules that are on."""

from __future__ import annotations

from datetime import UTC, datetime

from stoker.decide.scale_bounds import count_bounds
from stoker.model.scaling import Scaling, ScheduledBounds

HOUR = 3_600_000
MINUTE = 60_000


def office(**bounds):
    """From nine in Berlin (eight in UTC in winter), for eight hours."""
    return ScheduledBounds("office", "0 9 * * 1-5", 8 * HOUR, "Europe/Berlin", **bounds)


def at(hour, minute=0, day=5):
    """In January 2026; the 5th is a Monday."""
    return int(datetime(2026, 1, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


def bounds(now_ms, *scheduled, ahead_ms=0):
    return count_bounds(Scaling(1, 8, scheduled=scheduled), ahead_ms, now_ms)


def test_a_schedule_that_is_on_replaces_the_bounds():
    """And it alone names itself."""
    on = bounds(at(8), office(min_replicas=4, max_replicas=12))
    off = bounds(at(7, 59), office(min_replicas=4, max_replicas=12))

    assert (4, 12) == (on.least, on.most)
    assert (1, 8) == (off.least, off.most)
    assert on.limits(3) == "schedule office: minReplicas 4"
    assert on.limits(13) == "schedule office: maxReplicas 12"
    assert off.limits(0) == "minReplicas 1"
    assert not off.limits(8)


def test_it_ends_after_its_duration():
    """Half open: at the last instant it is over."""
    assert bounds(at(15, 59), office(min_replicas=4)).least == 4
    assert bounds(at(16), office(min_replicas=4)).least == 1


def test_replicas_are_started_in_time_for_it():
    """A lower bound looks ahead by a cold start; an upper one does not."""
    early = bounds(at(7, 55), office(min_replicas=4, max_replicas=12), ahead_ms=5 * MINUTE)

    assert (4, 8) == (early.least, early.most)


def test_the_upper_bound_gives_way_to_the_lower_one():
    """A schedule that lifts only the lower one means it."""
    lifted = bounds(at(9), office(min_replicas=10))

    assert (10, 10) == (lifted.least, lifted.most)
    assert lifted.clamp(3) == 10 == lifted.clamp(30)


def test_of_several_the_highest_hold():
    """Two that are on at once both have their reason."""
    noon = ScheduledBounds("noon", "0 11 * * *", HOUR, "UTC", 6, 6)
    found = bounds(at(11, 30), office(min_replicas=4, max_replicas=12), noon)

    assert (6, 12) == (found.least, found.most)


def test_it_says_when_to_look_again():
    """Nothing else would start a pass at nine."""
    five = 5 * MINUTE

    assert bounds(at(6), office(min_replicas=4), ahead_ms=five).changes_ms == at(7, 55)
    assert bounds(at(7, 57), office(min_replicas=4), ahead_ms=five).changes_ms == at(8)
    assert bounds(at(9), office(min_replicas=4)).changes_ms == at(16)
    assert bounds(at(9, day=10), office(min_replicas=4)).changes_ms == at(9, day=11)
    assert bounds(at(9)).changes_ms is None
