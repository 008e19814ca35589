"""The bounds of a count at one instant: those of the service, or of a schedule that is on.

In: `scaling` and how long a start takes. Out: the bounds, who set them, and when they may
change. Called by scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stoker.decide.cron import parse, strikes, zone_of
from stoker.model.scaling import Scaling, ScheduledBounds

__all__ = ["CountBounds", "count_bounds"]

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class CountBounds:
    """`least` and `most` replicas, what set each, and when another schedule begins or ends (None:
    no schedule).
    """

    least: int
    most: int
    least_by: str = "minReplicas"
    most_by: str = "maxReplicas"
    changes_ms: int | None = None

    def clamp(self, count: int) -> int:
        """The count within them."""
        return min(max(count, self.least), self.most)

    def limits(self, count: int) -> str:
        """Which of them a count meets, for people; empty for none."""
        if count > self.most:
            return f"{self.most_by} {self.most}"
        return f"{self.least_by} {self.least}" if count < self.least else ""


def count_bounds(spec: Scaling, ahead_ms: int, now_ms: int) -> CountBounds:
    """The bounds now. A lower bound holds `ahead_ms` before its schedule begins, so that what it
    asks for is Ready in time. Of several schedules that are on, the highest bounds hold; an upper
    bound is never below the lower one.
    """
    least, least_by = spec.min_replicas, "minReplicas"
    most, most_by = spec.max_replicas, "maxReplicas"
    floors, caps = [], []
    for each in spec.scheduled:
        if each.min_replicas is not None and _is_on(each, now_ms, ahead_ms):
            floors.append((each.min_replicas, f"schedule {each.name}: minReplicas"))
        if each.max_replicas is not None and _is_on(each, now_ms, 0):
            caps.append((each.max_replicas, f"schedule {each.name}: maxReplicas"))
    if floors:
        least, least_by = max(floors)
    if caps:
        most, most_by = max(caps)
    if most < least:
        most, most_by = least, least_by
    changes = [_changes_ms(each, now_ms, ahead_ms) for each in spec.scheduled]
    known = [at_ms for at_ms in changes if at_ms is not None]
    return CountBounds(least, most, least_by, most_by, min(known, default=None))


def _is_on(bounds: ScheduledBounds, now_ms: int, ahead_ms: int) -> bool:
    return bool(_struck(bounds, now_ms - bounds.duration_ms, now_ms + ahead_ms))


def _changes_ms(bounds: ScheduledBounds, now_ms: int, ahead_ms: int) -> int | None:
    """The next begin or end, within a day: it is asked again by then."""
    began = _struck(bounds, now_ms - bounds.duration_ms, now_ms)
    ends = [at_ms + bounds.duration_ms for at_ms in began]
    to_come = _struck(bounds, now_ms, now_ms + ahead_ms + DAY_MS)
    begins = [at_ms - early for at_ms in to_come for early in (0, ahead_ms)]
    return min((at_ms for at_ms in (*ends, *begins) if at_ms > now_ms), default=now_ms + DAY_MS)


def _struck(bounds: ScheduledBounds, from_ms: int, to_ms: int) -> list[int]:
    """The instants in (from_ms, to_ms], rising."""
    days = range((from_ms + 1) // DAY_MS, to_ms // DAY_MS + 1)
    found = (_in_day(bounds.schedule, bounds.time_zone, day) for day in days)
    return [at_ms for each in found for at_ms in each if from_ms < at_ms <= to_ms]


@lru_cache(maxsize=4_096)
def _in_day(schedule: str, time_zone: str, day: int) -> tuple[int, ...]:
    """Those of one UTC day, which do not change: hundreds of services ask every few seconds."""
    first_ms = day * DAY_MS
    return tuple(strikes(parse(schedule), zone_of(time_zone), first_ms - 1, first_ms + DAY_MS - 1))
