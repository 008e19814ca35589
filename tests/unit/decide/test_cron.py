"""Cron schedules: what strikes when, on the two days of the year too when clocks jump."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.cron import parse, strikes, zone_of

BERLIN = zone_of("Europe/Berlin")


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def told(schedule: str, start: str, end: str, zone=BERLIN) -> list[str]:
    """UTC times, as `29T01:00`."""
    found = strikes(parse(schedule), zone, ms(start), ms(end))
    return [datetime.fromtimestamp(each / 1000, UTC).strftime("%dT%H:%M") for each in found]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("0 9 * * 1-5", ["02T09:00", "03T09:00", "04T09:00"]),
        ("*/20 9 2 * *", ["02T09:00", "02T09:20", "02T09:40"]),
        ("5/25 9 2 mar *", ["02T09:05", "02T09:30", "02T09:55"]),
        ("0 9,21 * MAR mon", ["02T09:00", "02T21:00"]),
        ("0 9 3 * sun", ["01T09:00", "03T09:00"]),
        ("0 9 * * 7", ["01T09:00"]),
        ("0 9 31 * *", []),
    ],
    ids=["weekdays", "steps", "from-with-step", "names", "either-day", "seven-is-sunday", "none"],
)
def test_what_strikes_from_sunday_to_wednesday(schedule, expected):
    """1 March 2026 is a Sunday."""
    found = told(schedule, "2026-03-01T00:00:00Z", "2026-03-05T00:00:00Z", zone_of("UTC"))

    assert expected == found[: len(expected) + 1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0 9 * *", "4 fields"),
        ("60 9 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 9 0 * *", "day of month"),
        ("0 9 * 13 *", "month"),
        ("0 9 * * 8", "day of week"),
        ("0 9 * * fri-mon", "ends before it begins"),
        ("*/0 9 * * *", "step"),
        ("*/x 9 * * *", "step"),
        ("٣ 9 * * *", "minute"),
        ("-5 9 * * *", "minute"),
        ("0 9 30 2 *", "no month"),
        ("0 9 31 apr,jun *", "no month"),
        ("@daily", "fields"),
    ],
)
def test_a_text_that_is_no_schedule_says_why(text, why):
    with pytest.raises(ValueError, match=why):
        parse(text)


@pytest.mark.parametrize("name", ["", "Berlin", "../etc/passwd", "/etc/localtime", "A\x00B"])
def test_a_zone_that_is_not_there_is_a_value_error(name):
    with pytest.raises(ValueError, match="time zone"):
        zone_of(name)


def test_a_time_that_the_clocks_skip_strikes_when_they_jump():
    """29 March 2026 in Berlin: 02:00 becomes 03:00 at 01:00 UTC."""
    found = told("30 2 * * *", "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z")

    assert ["28T01:30", "29T01:00", "30T00:30"] == found


def test_a_time_that_the_clocks_show_twice_strikes_the_first_time():
    """25 October 2026 in Berlin: 03:00 becomes 02:00 at 01:00 UTC."""
    found = told("30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z")

    assert ["25T00:30", "26T01:30"] == found


@pytest.mark.parametrize("hours", ["*", "*/1"])
def test_with_every_hour_no_hour_that_passes_is_left_out(hours):
    spring = told(f"0 {hours} * * *", "2026-03-28T23:30:00Z", "2026-03-29T03:30:00Z")
    autumn = told(f"0 {hours} * * *", "2026-10-24T23:30:00Z", "2026-10-25T03:30:00Z")

    assert ["29T00:00", "29T01:00", "29T02:00", "29T03:00"] == spring
    assert ["25T00:00", "25T01:00", "25T02:00", "25T03:00"] == autumn


def test_a_midnight_that_is_skipped_belongs_to_its_day():
    """Santiago skips 00:00 to 01:00 on 6 September 2026, at 04:00 UTC."""
    zone = zone_of("America/Santiago")

    found = told("0 0 6 9 *", "2026-09-01T00:00:00Z", "2026-09-30T00:00:00Z", zone)

    assert ["06T04:00"] == found


FIELD = st.sampled_from(["*", "*/5", "0", "1-3", "1,3", "2/2"])
SCHEDULES = st.builds("{} {} {} {} {}".format, FIELD, FIELD, *[
    st.sampled_from(["*", "*/2", "1", "1-3", "1,3", "2/2"]) for _ in range(3)
])  # fmt: skip
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"])
STARTS = st.integers(ms("2026-01-01T00:00:00Z"), ms("2027-01-01T00:00:00Z"))


@given(SCHEDULES, ZONES, STARTS, st.integers(0, 20))
def test_strikes_rise_lie_in_the_span_and_do_not_depend_on_where_it_is_cut(text, name, start, days):
    schedule, zone = parse(text), zone_of(name)
    middle, end = start + days * 43_200_000, start + days * 86_400_000

    whole = list(strikes(schedule, zone, start, end))

    assert whole == sorted(set(whole))
    assert all(start < each <= end for each in whole)
    cut = [*strikes(schedule, zone, start, middle), *strikes(schedule, zone, middle, end)]
    assert whole == cut


@given(SCHEDULES, STARTS)
def test_in_utc_every_minute_that_matches_strikes_and_no_other(text, start):
    """The oracle looks at each minute of a day by the five fields alone."""
    schedule = parse(text)
    first = datetime.fromtimestamp(start // 60_000 * 60, UTC) + timedelta(minutes=1)
    minutes = [first + timedelta(minutes=n) for n in range(1440)]

    found = set(strikes(schedule, zone_of("UTC"), start, start + 1440 * 60_000))

    assert found == {
        round(each.timestamp()) * 1000
        for each in minutes
        if each.minute in schedule.minutes
        and each.hour in schedule.hours
        and schedule.strikes_on(each.date())
        and start < round(each.timestamp()) * 1000 <= start + 1440 * 60_000
    }
