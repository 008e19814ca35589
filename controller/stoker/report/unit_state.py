"""One unit, judged: from what the stages said about it to its UnitReport.

In: the inputs of report, indexed once. Called by report for every unit in scope.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stoker.errors import Finding, Severity, SourceLocation
from stoker.model.change import Action, Change, UnitChanges
from stoker.model.fleet import FleetMode, ModelService, Unit
from stoker.model.flow import Held
from stoker.model.outcome import Health, ObjectOutcome, Result, Sync, UnitOutcome
from stoker.model.plan import ServiceDecision
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.snapshot import ServiceState
from stoker.model.workload import is_workload
from stoker.objects.health import ABSENT, HealthVerdict, worst
from stoker.report.conditions import (
    Judgement,
    Reason,
    camel,
    conditions_of,
    is_retryable,
    sentence,
)
from stoker.report.inputs import ReportInputs
from stoker.report.service_state import ServiceView, judge_service, service_report
from stoker.report.unit_held import (
    attempt_of,
    due_ms,
    health_word,
    judged_with,
    late_message,
    timed_out,
    verdict_with,
)
from stoker.report.unit_report import ErrorLine, ObjectLine, ServiceReport, UnitReport

__all__ = ["UnitFacts", "error_lines", "unit_report"]

LISTED = 20
"""Errors and notes kept of one unit or fleet (ux.md)."""

_LEFT = {"reconcile-disabled", "create-only"}
"""Codes of objects that stay as they are because Git says so."""
_SETTLED = {Action.UNCHANGED, Action.KEEP}
_WRITTEN = {Result.CREATED, Result.CHANGED, Result.UNCHANGED, Result.KEPT, Result.DELETED}


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """What the stages said about one unit; None means that none said anything."""

    ref: UnitRef
    unit: Unit | None = None
    changes: UnitChanges | None = None
    outcome: UnitOutcome | None = None
    decision: ServiceDecision | None = None
    view: ServiceView | None = None
    findings: tuple[Finding, ...] = ()
    broken: bool = False
    gone: bool = False
    """It left Git; its objects are deleted or kept."""
    previous: UnitReport | None = None
    results: dict[ObjectRef, ObjectOutcome] = field(default_factory=dict, hash=False)
    held: Held | None = None


def unit_report(facts: UnitFacts, inputs: ReportInputs) -> UnitReport:
    """Judge one unit. Unknown never counts as absent or as zero."""
    writes = inputs.desired is None or inputs.desired.fleet.mode is FleetMode.CORRECT
    sync, sync_message = _sync(facts, inputs)
    service = _service(facts)
    before = facts.previous
    verdict = verdict_with(facts.held, _health(facts, inputs, service))
    attempt = attempt_of(facts.unit, facts.held, before, inputs.now_ms) if writes else None
    due = due_ms(facts.unit, attempt, verdict, before, inputs.now_ms)
    findings = _findings(facts)
    if timed_out(due, inputs.now_ms):
        findings += (Finding(_location(facts), "timed-out", late_message(facts.unit, verdict)),)
    stalled = _first(findings, retryable=False)
    retrying = _first(findings, retryable=True)
    waiting = _waiting(facts) if facts.held is None else ""
    hold = service.holds[0] if service and service.holds and sync is Sync.OUT_OF_SYNC else None
    judgement = Judgement(
        sync=sync,
        health=verdict.status,
        health_reason=verdict.reason,
        health_message=verdict.message,
        stalled=camel(stalled.code) if stalled else "",
        stalled_message=sentence(stalled) if stalled else "",
        retrying=Reason.RETRYING if retrying else Reason.WAITING if waiting else "",
        retrying_message=sentence(retrying) if retrying else waiting,
        why_not_ready=hold.reason if hold else "",
        why_not_ready_message=hold.message if hold else "",
        out_of_sync_message=sync_message,
        writes=writes,
        scale=facts.decision.scale if facts.decision is not None else None,
    )
    judgement = judged_with(facts.held, judgement)
    if facts.gone and before is not None and before.suspended:
        judgement = replace(judgement, suspended="left Git while it was suspended")
    notes = _notes(facts)
    errors = error_lines(findings)
    changes = facts.changes.changes if facts.changes is not None else ()
    rendered = [c for c in changes if c.action not in {Action.DELETE, Action.KEEP}]
    unknown = facts.changes is None and before is not None
    return UnitReport(
        ref=facts.ref,
        sync=sync,
        health=health_word(facts.held, verdict),
        conditions=conditions_of(judgement, before.conditions if before else (), inputs.now_ms),
        digest=facts.unit.digest[:12]
        if facts.unit and sync is Sync.SYNCED
        else (before.digest if before else ""),
        path=_location(facts).path,
        line=_location(facts).line,
        applied_revision=_applied_revision(facts, inputs, sync),
        objects=before.objects if unknown and before else len(rendered),
        synced=sum(1 for change in rendered if _stands(change, facts)),
        service=service,
        notes=notes[:LISTED],
        errors=errors[:LISTED],
        truncated=len(notes) > LISTED or len(errors) > LISTED,
        depends_on=_depends_on(facts),
        attempt=attempt,
        due_ms=None if timed_out(due, inputs.now_ms) else due,
    )


def error_lines(findings: tuple[Finding, ...]) -> tuple[ErrorLine, ...]:
    """Findings as they are listed: errors before warnings, then by place, each once."""
    ordered = sorted(set(findings), key=lambda f: (f.severity is not Severity.ERROR, f))
    return tuple(
        ErrorLine(
            code=finding.code,
            message=f"{finding.field}: {finding.message}" if finding.field else finding.message,
            path=finding.location.path,
            line=finding.location.line,
            column=finding.location.column,
        )
        for finding in ordered
    )


def _depends_on(facts: UnitFacts) -> tuple[str, ...]:
    """Kept of a unit that left Git: it goes before what it depends on."""
    if facts.unit is not None:
        return tuple(str(ref) for ref in facts.unit.flow.depends_on)
    return facts.previous.depends_on if facts.previous is not None else ()


def _location(facts: UnitFacts) -> SourceLocation:
    if facts.unit is not None:
        return facts.unit.location
    if facts.findings:
        return facts.findings[0].location
    before = facts.previous
    return SourceLocation(before.path, before.line) if before else SourceLocation()


def _findings(facts: UnitFacts) -> tuple[Finding, ...]:
    """Findings of the stages, and one for each object that failed or must not be written."""
    found = list(facts.findings)
    changes = facts.changes.changes if facts.changes is not None else ()
    places = {c.ref: c.manifest.source for c in changes if c.manifest is not None}

    def add(ref: ObjectRef, code: str, message: str) -> None:
        place = places.get(ref)
        where = place if place is not None and place.line else _location(facts)
        text = message if str(ref) in message else f"{ref}: {message}"
        found.append(Finding(where, code, text))

    for result in facts.results.values():
        if result.result is Result.FAILED:
            add(result.ref, result.code or "apply-failed", result.message)
    for change in changes:
        if change.action is Action.ERROR and change.ref not in facts.results:
            add(change.ref, change.code or "apply-refused", change.note)
    return tuple(found)


def _first(findings: tuple[Finding, ...], *, retryable: bool) -> Finding | None:
    """The first error of that sort."""
    errors = (finding for finding in findings if finding.severity is Severity.ERROR)
    return next((error for error in errors if is_retryable(error.code) is retryable), None)


def _waiting(facts: UnitFacts) -> str:
    """What the unit waits for, empty for nothing."""
    for result in facts.results.values():
        if result.result in {Result.WAITING, Result.UNKNOWN}:
            return f"{result.ref}: {result.message or result.code or result.result}"
    return ""


def _sync(facts: UnitFacts, inputs: ReportInputs) -> tuple[Sync, str]:
    """Whether the unit stands as Git and the plan want it, and what is missing."""
    changes = facts.changes
    if changes is None or not changes.complete or facts.broken:
        return Sync.UNKNOWN, "not compared with the cluster in this pass"
    if facts.unit is None and not facts.gone:
        return Sync.UNKNOWN, "not every file of the fleet could be read"
    if facts.gone:
        left = [c for c in changes.changes if not _stands(c, facts)]
        message = f"left Git; {len(left)} objects are still to be deleted"
        return (Sync.OUT_OF_SYNC, message) if left else (Sync.SYNCED, "")
    if facts.held is not None and not facts.held.whole:
        return Sync.OUT_OF_SYNC, facts.held.message
    if facts.unit is not None and isinstance(facts.unit.spec, ModelService):
        decision = facts.decision
        if decision is None or decision.replicas is None:
            return Sync.UNKNOWN, "nothing could be decided"
        if decision.updating:
            return Sync.OUT_OF_SYNC, "replicas of an older model revision or template still stand"
        standing = sum(place.replicas for place in _view(facts).state.placements)
        if facts.held is not None and standing != decision.replicas:
            message = f"{facts.held.by}: {standing} of {decision.replicas} replicas stand"
            return Sync.OUT_OF_SYNC, message
    if changes.retirements:
        return Sync.OUT_OF_SYNC, f"{len(changes.retirements)} Deployments are leaving"
    open_changes = [c for c in changes.changes if not _stands(c, facts)]
    if not open_changes:
        return Sync.SYNCED, ""
    unknown = {r.ref for r in facts.results.values() if r.result is Result.UNKNOWN}
    if any(c.ref in unknown or not _is_known(c, inputs) for c in open_changes):
        return Sync.UNKNOWN, "the live state of an object is not known"
    return Sync.OUT_OF_SYNC, f"{len(open_changes)} of {len(changes.changes)} objects differ"


def _is_known(change: Change, inputs: ReportInputs) -> bool:
    return inputs.live is None or inputs.live.known(change.ref)


def _stands(change: Change, facts: UnitFacts) -> bool:
    """Whether the object is as rendered: it was before, or this pass made it so."""
    result = facts.results.get(change.ref)
    if result is not None:
        return result.result in _WRITTEN
    return change.action in _SETTLED


def _view(facts: UnitFacts) -> ServiceView:
    return facts.view or ServiceView(ServiceState(facts.ref), "the cluster could not be read")


def _service(facts: UnitFacts) -> ServiceReport | None:
    if facts.ref.kind != "ModelService" or facts.gone:
        return None
    return service_report(
        unit=facts.unit,
        decision=facts.decision,
        view=_view(facts),
        previous=facts.previous.service if facts.previous else None,
    )


def _health(facts: UnitFacts, inputs: ReportInputs, service: ServiceReport | None) -> HealthVerdict:
    if facts.gone:
        kept = facts.changes is not None and not _to_delete(facts.changes)
        return (
            HealthVerdict(Health.HEALTHY, Reason.KEPT, "left Git, kept by policy")
            if kept
            else HealthVerdict(Health.PROGRESSING, Reason.PRUNING, "left Git, being deleted")
        )
    verdicts = list(_object_verdicts(facts, inputs, leave_out_workloads=service is not None))
    if service is not None:
        observing = inputs.desired is not None and inputs.desired.fleet.mode is FleetMode.OBSERVE
        verdicts.insert(0, judge_service(service, _view(facts), observing=observing))
    elif facts.changes is None or not facts.changes.complete or inputs.live is None:
        verdicts.append(HealthVerdict(Health.UNKNOWN, Reason.UNKNOWN, "not looked at"))
    found = worst(tuple(verdicts))
    if found.status is Health.HEALTHY and verdicts:
        return verdicts[0] if service is not None else HealthVerdict(found.status, Reason.HEALTHY)
    return found


def _to_delete(changes: UnitChanges) -> bool:
    return any(change.action is not Action.KEEP for change in changes.changes)


def _object_verdicts(
    facts: UnitFacts, inputs: ReportInputs, *, leave_out_workloads: bool
) -> tuple[HealthVerdict, ...]:
    """Judge the live objects; Deployments of a service are judged by their replicas."""
    if facts.changes is None or inputs.live is None:
        return ()
    verdicts = []
    for change in facts.changes.changes:
        if change.action in {Action.DELETE, Action.KEEP} or change.code == "reconcile-disabled":
            continue
        if leave_out_workloads and is_workload(change.ref):
            continue
        verdict = _verdict_on(change, facts, inputs)
        if verdict.status is not Health.HEALTHY:
            told = verdict_text(change.ref, verdict)
            verdicts.append(HealthVerdict(verdict.status, verdict.reason, told, verdict.by))
    return tuple(verdicts)


def verdict_text(ref: ObjectRef, verdict: HealthVerdict) -> str:
    """`Kind namespace/name: why (by policies/health/keda.yaml)`, for conditions and people."""
    told = f"{ref}: {verdict.message}" if verdict.message else str(ref)
    return f"{told} (by {verdict.by})" if verdict.by else told


def _verdict_on(change: Change, facts: UnitFacts, inputs: ReportInputs) -> HealthVerdict:
    assert inputs.live is not None
    if not inputs.live.known(change.ref):
        why = inputs.live.why_unknown(change.ref)
        return HealthVerdict(Health.UNKNOWN, Reason.UNKNOWN, why)
    live = inputs.live.get(change.ref)
    if live is not None:
        return inputs.previous.memo.health_of(live, inputs.health)
    if change.action is Action.UNCHANGED:  # a Job that is done and gone
        return HealthVerdict(Health.HEALTHY, Reason.HEALTHY, change.note)
    if (result := facts.results.get(change.ref)) and result.result is Result.CREATED:
        return HealthVerdict(Health.PROGRESSING, "Created", "just created")
    return ABSENT


def _notes(facts: UnitFacts) -> tuple[ObjectLine, ...]:
    """Objects that differ or were kept, with why; in apply order."""
    found = []
    for change in facts.changes.changes if facts.changes is not None else ():
        result = facts.results.get(change.ref)
        told = change.action is Action.KEEP or change.code in _LEFT
        if _stands(change, facts) and not told:
            continue
        if result is not None:
            line = ObjectLine(str(change.ref), result.result, result.code, result.message)
        else:
            line = ObjectLine(str(change.ref), change.action, change.code, change.note)
        found.append(line)
    return tuple(found)


def _applied_revision(facts: UnitFacts, inputs: ReportInputs, sync: Sync) -> str:
    """The commit that brought what stands; it moves only when the unit itself changed.

    Otherwise every commit of the fleet would rewrite every unit's file.
    """
    before = facts.previous
    if sync is not Sync.SYNCED or facts.unit is None or inputs.desired is None:
        return before.applied_revision if before else ""
    if before is not None and before.applied_revision and before.digest == facts.unit.digest[:12]:
        return before.applied_revision
    return str(inputs.desired.revision)
