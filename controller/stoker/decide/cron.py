"""Cron schedules of five fields: text in, the instants at which they strike out. Pure.

Called by windows, and by source to check the text. Fields: minute, hour, day of month, month,
day of week; `*`, lists, ranges, steps, names of months and days, 7 as Sunday. Where both
days are restricted either one is enough (POSIX crontab). Wall time is that of a zone:

- a time that the clocks skip strikes at the moment they jump;
- a time that they show twice strikes the first time; with `*` or `*/n` hours, both times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

__all__ = ["Schedule", "parse", "strikes", "zone_of"]

_MONTH_NAMES = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_NO_NAMES: dict[str, int] = {}
_FIELDS = (
    ("minute", 0, 59, _NO_NAMES),
    ("hour", 0, 23, _NO_NAMES),
    ("day of month", 1, 31, _NO_NAMES),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
_LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A parsed schedule; every field holds the values at which it strikes.

    `days` and `weekdays` (0 = Sunday) are None where the field is `*`.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int] | None
    months: frozenset[int]
    weekdays: frozenset[int] | None
    every_hour: bool
    """The hour field begins with `*`: it counts hours that pass, not what the clock shows."""

    def strikes_on(self, day: date) -> bool:
        """Whether it strikes on that day at all."""
        if day.month not in self.months:
            return False
        by_day = self.days is None or day.day in self.days
        by_weekday = self.weekdays is None or day.isoweekday() % 7 in self.weekdays
        if self.days is not None and self.weekdays is not None:
            return by_day or by_weekday
        return by_day and by_weekday


def parse(text: str) -> Schedule:
    """Read a schedule; ValueError says which field is wrong, and how."""
    words = text.split()
    if len(words) != len(_FIELDS):
        message = f"{len(words)} fields; cron has five: minute, hour, day, month, day of week"
        raise ValueError(message)
    minutes, hours, days, months, weekdays = (
        _values(word, *field) for word, field in zip(words, _FIELDS, strict=True)
    )
    schedule = Schedule(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=None if words[2].startswith("*") and len(days) == 31 else frozenset(days),
        months=frozenset(months),
        weekdays=None
        if len({d % 7 for d in weekdays}) == 7
        else frozenset(d % 7 for d in weekdays),
        every_hour=words[1].startswith("*"),
    )
    if schedule.days is not None and schedule.weekdays is None:
        longest = max(_LONGEST_MONTH[month - 1] for month in schedule.months)
        if min(schedule.days) > longest:
            message = f"day of month: no month of {words[3]} has a day {min(schedule.days)}"
            raise ValueError(message)
    return schedule


def zone_of(name: str) -> ZoneInfo:
    """The zone of that name (IANA); ValueError where there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # not found is a KeyError, a bad name a ValueError
        message = f"{name[:40]!r} is no time zone"
        raise ValueError(message) from None


def strikes(schedule: Schedule, zone: ZoneInfo, from_ms: int, to_ms: int) -> Iterator[int]:
    """Every instant with from_ms < instant <= to_ms, rising, each once."""
    day = _local(from_ms, zone).date() - timedelta(days=1)  # a skipped midnight strikes later
    last = _local(to_ms, zone).date()
    told = from_ms
    while day <= last:
        if schedule.strikes_on(day):
            for instant in sorted(_instants(schedule, day, zone)):
                if told < instant <= to_ms:
                    told = instant
                    yield instant
        day += timedelta(days=1)


def _values(word: str, name: str, least: int, most: int, names: dict[str, int]) -> set[int]:
    found: set[int] = set()
    for part in word.split(","):
        span, slash, step_text = part.partition("/")
        if slash and (not step_text.isascii() or not step_text.isdecimal() or not int(step_text)):
            message = f"{name}: {step_text!r} is no step; write for instance */5"
            raise ValueError(message)
        first_text, dash, last_text = span.partition("-")
        if span == "*":
            first, last = least, most
        else:
            first = _number(first_text, name, least, most, names)
            if dash:
                last = _number(last_text, name, least, most, names)
            else:
                last = most if slash else first
        if last < first:
            message = f"{name}: {span} ends before it begins"
            raise ValueError(message)
        found |= set(range(first, last + 1, int(step_text) if slash else 1))
    return found


def _number(text: str, name: str, least: int, most: int, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    if known is not None:
        return known
    if not text.isascii() or not text.isdecimal() or len(text) > 2:
        message = f"{name}: {text[:20]!r} is not a number from {least} to {most}"
        raise ValueError(message)
    if not least <= int(text) <= most:
        message = f"{name}: {text} is not from {least} to {most}"
        raise ValueError(message)
    return int(text)


def _instants(schedule: Schedule, day: date, zone: ZoneInfo) -> set[int]:
    found: set[int] = set()
    for hour in schedule.hours:
        for minute in schedule.minutes:
            wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
            first, second = _instant_ms(wall), _instant_ms(wall.replace(fold=1))
            if first > second:  # the clocks skip it: read with the old offset it is too late
                found.add(_jump_ms(second, first, zone))
                continue
            found.add(first)
            if schedule.every_hour:
                found.add(second)
    return found


def _jump_ms(before_ms: int, after_ms: int, zone: ZoneInfo) -> int:
    """The first instant of the new offset, between one before the jump and one after it."""
    new = _local(after_ms, zone).utcoffset()
    low, high = before_ms // 1000, after_ms // 1000
    while high - low > 1:
        middle = (low + high) // 2
        if _local(middle * 1000, zone).utcoffset() == new:
            high = middle
        else:
            low = middle
    return high * 1000


def _instant_ms(wall: datetime) -> int:
    return round(wall.astimezone(UTC).timestamp()) * 1000


def _local(instant_ms: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(instant_ms / 1000, UTC).astimezone(zone)
