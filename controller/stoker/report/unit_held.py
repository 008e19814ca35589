"""What being held, and taking too long, does to the report of a unit. Called by unit_state.

In: who holds the unit, how it was judged without that, its earlier report. Out: the judgement
with the hold in it, the health word, and since when its revision has been tried.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.model.fleet import Unit
from stoker.model.flow import Held, HeldBy
from stoker.model.outcome import Health, Sync
from stoker.model.times import rfc3339, to_milliseconds
from stoker.objects.health import HealthVerdict
from stoker.report.conditions import Judgement
from stoker.report.unit_report import Attempt, UnitReport

__all__ = [
    "attempt_of",
    "due_ms",
    "health_word",
    "judged_with",
    "late_message",
    "timed_out",
    "verdict_with",
]

_WELL = {Health.HEALTHY, Health.SUSPENDED}


def verdict_with(held: Held | None, verdict: HealthVerdict) -> HealthVerdict:
    """What is missing only because the unit waits is on its way, and wants nobody."""
    if held is None or held.by is HeldBy.SUSPENDED or verdict.status is not Health.MISSING:
        return verdict
    return HealthVerdict(Health.PROGRESSING, held.by, held.message)


def health_word(held: Held | None, verdict: HealthVerdict) -> Health:
    """The unit's health word: Suspended hides how well its objects are; conditions do not."""
    suspended = held is not None and held.by is HeldBy.SUSPENDED
    return Health.SUSPENDED if suspended else verdict.status


def judged_with(held: Held | None, judgement: Judgement) -> Judgement:
    """The judgement with the hold in it: why it is not Ready, and what it waits for."""
    if held is None or held.by is HeldBy.FAILED:  # its hold says it, with what serves now
        return judgement
    message = held.message
    stands = judgement.sync is Sync.SYNCED and judgement.health in _WELL
    judgement = replace(
        judgement,
        why_not_ready=judgement.why_not_ready if stands else held.by,
        why_not_ready_message=judgement.why_not_ready_message if stands else message,
    )
    if held.by is HeldBy.SUSPENDED:
        since = rfc3339(held.since_ms) if held.since_ms is not None else ""
        return replace(
            judgement, suspended=message, suspended_since=since, retrying="", retrying_message=""
        )
    return replace(judgement, retrying=held.by, retrying_message=message)


def attempt_of(
    unit: Unit | None, held: Held | None, before: UnitReport | None, now_ms: int
) -> Attempt | None:
    """Since when this revision of the unit has been tried; None while it is not."""
    if unit is None or held is not None:
        return None
    digest = unit.digest[:12]
    if before is not None and before.attempt is not None and before.attempt.digest == digest:
        return before.attempt
    return Attempt(digest, rfc3339(now_ms))


def due_ms(
    unit: Unit | None,
    attempt: Attempt | None,
    verdict: HealthVerdict,
    before: UnitReport | None,
    now_ms: int,
) -> int | None:
    """When the unit must be Healthy by spec.timeout; None where nothing is to be awaited.

    The time counts from the last change of its files, or from when it was last Healthy.
    """
    timeout_ms = unit.flow.timeout_ms if unit is not None else None
    if timeout_ms is None or attempt is None or verdict.status in {*_WELL, Health.UNKNOWN}:
        return None
    since_ms = _instant(attempt.since, now_ms)
    told = before.condition("Healthy") if before is not None else None
    if told is not None:
        unwell_ms = _instant(told.since, now_ms) if told.status == "False" else now_ms
        since_ms = max(since_ms, unwell_ms)
    return since_ms + timeout_ms


def late_message(unit: Unit | None, verdict: HealthVerdict) -> str:
    """What a unit that is over its time says."""
    timeout_ms = unit.flow.timeout_ms if unit is not None else None
    detail = f": {verdict.reason} {verdict.message}".rstrip()
    return f"not Healthy within spec.timeout ({(timeout_ms or 0) // 1000}s){detail}"


def timed_out(due: int | None, now_ms: int) -> bool:
    """Whether the time is over."""
    return due is not None and now_ms >= due


def _instant(text: str, otherwise_ms: int) -> int:
    try:
        return to_milliseconds(text)
    except ValueError:
        return otherwise_ms
