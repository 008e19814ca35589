"""The whole fleet, judged from its units and from what ended the pass.

Called by report; gives the fleet's Judgement, conditions and applied revision.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.decide.gates import fleet_suspension
from stoker.errors import Finding, Severity
from stoker.model.change import Action
from stoker.model.fleet import FleetMode
from stoker.model.outcome import Condition, Health, Sync
from stoker.objects.health import HealthVerdict, badness
from stoker.report.conditions import Judgement, Reason, camel, is_retryable, sentence
from stoker.report.inputs import Pending, ReportInputs, StatusWritten
from stoker.report.unit_report import UnitReport

__all__ = ["applied_revision", "attempted_revision", "judge_fleet", "pending_of", "status_written"]

NAMED = 3
"""Units named in a message; the rest are counted."""


def judge_fleet(inputs: ReportInputs, units: Sequence[UnitReport]) -> Judgement:
    """Judge the fleet: its own failure first, then held deletions, then its units.

    While the source only cannot be reached, the last good state is what counts: the
    fleet retries and stays as Ready as its units are.
    """
    failure = _failure(inputs)
    passing = failure is not None and is_retryable(failure.code) and inputs.desired is not None
    hold = _prune_hold(inputs)
    why, why_message = "", ""
    not_ready = [unit for unit in units if not unit.ready and not unit.suspended]
    if failure is not None and not passing:
        why, why_message = camel(failure.code), sentence(failure)
    elif hold:
        why, why_message = Reason.PRUNE_HELD, hold
    elif not_ready and not _all_unknown(not_ready):
        why = Reason.UNITS_NOT_READY
        why_message = f"{len(not_ready)} of {len(units)} units: {_named(not_ready)}"
    stalled = failure is not None and not is_retryable(failure.code)
    verdict = _health(inputs, units)
    waiting = pending_of(inputs, units)
    pending = waiting.message if waiting is not None else ""
    waits = Reason.CHANGE_WINDOW_CLOSED if pending else _retrying(units)
    return Judgement(
        sync=_sync(inputs, units),
        health=verdict.status,
        health_reason=verdict.reason,
        health_message=verdict.message,
        stalled=camel(failure.code) if failure is not None and stalled else "",
        stalled_message=sentence(failure) if failure is not None and stalled else "",
        retrying=Reason.RETRYING if failure is not None and not stalled else waits,
        retrying_message=sentence(failure) if failure is not None and not stalled else pending,
        suspended=_suspended(inputs),
        excused=all(unit.suspended for unit in units if unit.sync is not Sync.SYNCED),
        why_not_ready=why,
        why_not_ready_message=why_message,
        out_of_sync_message=_named([unit for unit in units if unit.sync is not Sync.SYNCED]),
        writes=inputs.desired is None or inputs.desired.fleet.mode is FleetMode.CORRECT,
    )


def pending_of(inputs: ReportInputs, units: Sequence[UnitReport]) -> Pending | None:
    """The revision that waits for its window; None for one that stands as a whole already."""
    found = inputs.pending
    if found is None or inputs.desired is None:
        return found
    stands = all(unit.sync is Sync.SYNCED for unit in units)
    return None if stands and found.revision == inputs.desired.revision else found


def attempted_revision(inputs: ReportInputs) -> str:
    """The revision this pass looked at, or the last one that was looked at."""
    if inputs.attempted is not None:
        return str(inputs.attempted)
    if inputs.desired is not None:
        return str(inputs.desired.revision)
    return inputs.previous.last_attempted


def applied_revision(inputs: ReportInputs, units: Sequence[UnitReport]) -> str:
    """The last revision that stood as a whole; it moves when every unit is Synced."""
    desired = inputs.desired
    if desired is None or _failure(inputs) is not None or not desired.unit_set_known:
        return inputs.previous.last_applied
    if any(unit.sync is not Sync.SYNCED for unit in units):
        return inputs.previous.last_applied
    return str(desired.revision)


def status_written(written: StatusWritten) -> Condition:
    """Whether the status branch takes our commits; the fleet converges all the same."""
    if written.code:
        return Condition("StatusWritten", "False", camel(written.code), written.message, "")
    if not written.commit:
        return Condition("StatusWritten", "Unknown", Reason.NOT_YET, "", "")
    message = f"{written.commit[:7]} on {written.branch}"
    return Condition("StatusWritten", "True", Reason.PUSHED, message, "")


def _failure(inputs: ReportInputs) -> Finding | None:
    """What ended the pass, else the first error of the files that is no unit's own."""
    if inputs.failure is not None:
        return inputs.failure
    if inputs.outcome is not None and inputs.outcome.failure is not None:
        return inputs.outcome.failure
    of_files = inputs.desired.findings if inputs.desired is not None else ()
    wrong = (f for f in (*of_files, *inputs.findings) if not f.unit)
    return next((f for f in wrong if f.severity is Severity.ERROR), None)


def _prune_hold(inputs: ReportInputs) -> str:
    """Why deletions that are due do not happen; empty when none is due."""
    changes = inputs.changes
    if changes is None:
        return ""
    due = any(
        c.action is Action.DELETE or c.code == "prune-held"
        for unit in changes.units
        for c in unit.changes
    )
    return (
        (inputs.outcome.prune_hold if inputs.outcome else "") or changes.prune_hold if due else ""
    )


def _suspended(inputs: ReportInputs) -> str:
    """Who suspended the whole fleet; empty while it is not."""
    if inputs.desired is None or inputs.snapshot is None:
        return ""
    found = fleet_suspension(inputs.desired, inputs.snapshot, inputs.now_ms)
    return found.message if found is not None else ""


def _all_unknown(units: Sequence[UnitReport]) -> bool:
    """Whether none of them is known to be wrong: then the fleet is not known to be, either."""
    conditions = [unit.condition("Ready") for unit in units]
    return all(condition is None or condition.status == "Unknown" for condition in conditions)


def _sync(inputs: ReportInputs, units: Sequence[UnitReport]) -> Sync:
    if any(unit.sync is Sync.OUT_OF_SYNC for unit in units):
        return Sync.OUT_OF_SYNC
    if inputs.desired is None or any(unit.sync is Sync.UNKNOWN for unit in units):
        return Sync.UNKNOWN
    return Sync.SYNCED


def _health(inputs: ReportInputs, units: Sequence[UnitReport]) -> HealthVerdict:
    """The worst unit's health, by its name; without desired state, unknown."""
    if inputs.desired is None:
        return HealthVerdict(Health.UNKNOWN, Reason.UNKNOWN, "units as they were last reported")
    found = max(units, key=lambda unit: badness(unit.health), default=None)
    if found is None or badness(found.health) <= badness(Health.HEALTHY):
        return HealthVerdict(Health.HEALTHY, Reason.HEALTHY, "")
    return _verdict(found)


def _verdict(unit: UnitReport) -> HealthVerdict:
    told = unit.condition("Healthy")
    reason, message = (told.reason, told.message) if told is not None else (Reason.UNKNOWN, "")
    return HealthVerdict(unit.health, reason, f"{unit.ref.short} {message}".rstrip())


def _retrying(units: Sequence[UnitReport]) -> str:
    """Whether any unit retries or waits, so that the fleet still works on something."""
    return Reason.RETRYING if any(unit.retrying for unit in units) else ""


def _named(units: Sequence[UnitReport]) -> str:
    names = ", ".join(unit.ref.short for unit in units[:NAMED])
    more = f" and {len(units) - NAMED} more" if len(units) > NAMED else ""
    return names + more
