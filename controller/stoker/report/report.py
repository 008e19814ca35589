"""The last stage: everything a pass found out, in every form it is shown in.

In: ReportInputs. Out: Report, with conditions derived once and anew (cases.md row 93).
Pure; the publisher and the mirror writer carry it out. Called by reconcile, and by the
command line for `stoker status` on a live cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stoker.model.codec import digest, to_data
from stoker.model.fleet import FleetMode
from stoker.model.outcome import Condition, Document, Sync
from stoker.model.plan import Plan, ServiceDecision
from stoker.model.refs import UnitRef
from stoker.report.conditions import Judgement, conditions_of, with_times
from stoker.report.documents import FleetFacts, status_document
from stoker.report.events import events_of
from stoker.report.fleet_state import (
    applied_revision,
    attempted_revision,
    judge_fleet,
    pending_of,
    status_written,
)
from stoker.report.gather import facts_of, in_scope
from stoker.report.history import HistoryEntry, next_history
from stoker.report.inputs import Report, ReportInputs
from stoker.report.mirrors import fleet_mirror, service_mirrors
from stoker.report.previous import PreviousStatus, errors_of
from stoker.report.secrets import without_secrets
from stoker.report.tallies import cold_starts, drift_hours
from stoker.report.unit_report import UnitReport
from stoker.report.unit_state import unit_report
from stoker.report.units import unit_document

__all__ = ["decision_digest", "report"]


def report(inputs: ReportInputs, *, checkpoint: Callable[[], None] = lambda: None) -> Report:
    """Report on one pass. `checkpoint` is called between units and may raise to abort."""
    before = inputs.previous
    units = _unit_reports(inputs, checkpoint)
    ordered = tuple(units.values())
    judgement = judge_fleet(inputs, ordered)
    conditions = conditions_of(judgement, before.conditions, inputs.now_ms)
    written = with_times((status_written(inputs.written),), before.written, inputs.now_ms)
    fleet = FleetFacts(
        sync=judgement.sync,
        health=judgement.health,
        conditions=conditions,
        last_attempted=attempted_revision(inputs),
        last_applied=applied_revision(inputs, ordered),
        decision_digest=decision_digest(inputs.plan) if inputs.plan is not None else "",
        history=_history(inputs, ordered, judgement),
        drift_hours=drift_hours(inputs, units),
        pending=pending_of(inputs, ordered),
    )
    documents = _unit_documents(ordered, before)
    desired = inputs.desired
    mirrors = (
        service_mirrors(inputs.identity, desired, ordered, before, inputs.live) if desired else {}
    )
    if inputs.scope is None:
        before.memo.end_round()
    status = status_document(inputs, fleet, ordered)
    memory = PreviousStatus(
        conditions=conditions,
        written=written,
        last_attempted=fleet.last_attempted,
        last_applied=fleet.last_applied,
        history=fleet.history,
        units=units,
        documents=documents,
        mirrors=mirrors,
        errors=errors_of(status.data),
        drift_hours=fleet.drift_hours,
        observed_at_ms=inputs.now_ms,
        memo=before.memo,
        known_standings=before.known_standings,
        known_substance=before.known_substance,
    )
    return Report(
        conditions=(*conditions, *written),
        documents=(status, *documents.values()),
        complete=desired is not None and desired.unit_set_known,
        substance=memory.substance,
        urgent=_is_urgent(before, conditions, units),
        mirrors=(
            fleet_mirror(inputs.identity, desired, fleet, ordered, written, inputs.handled),
            *mirrors.values(),
        )
        if desired
        else (),
        events=events_of(before, conditions, ordered),
        memory=memory,
        wake_at_ms=min((u.due_ms for u in ordered if u.due_ms is not None), default=None),
    )


def decision_digest(plan: Plan) -> str:
    """Name what was decided, whenever it was decided: 64 hex digits.

    Estimates and instants are left out, so that the same decision keeps its name.
    """
    return digest([_decision_data(decision) for decision in plan.decisions])


def _decision_data(decision: ServiceDecision) -> list[Any]:
    return [
        str(decision.ref),
        decision.rev,
        decision.replicas,
        to_data(decision.count),
        to_data(decision.retirements),
        decision.untouched,
        [[p.name, p.node, p.node_uid, p.count, p.replaces] for p in decision.placements],
        [hold.code for hold in decision.holds],
        decision.updating,
        *([p.name, p.state, p.over] for p in decision.prefetches),
    ]


def _unit_reports(
    inputs: ReportInputs, checkpoint: Callable[[], None]
) -> dict[UnitRef, UnitReport]:
    """Every unit, sorted: judged anew, or as it was where this pass did not look at it."""
    found: dict[UnitRef, UnitReport] = {}
    for facts in facts_of(inputs):
        checkpoint()
        made = unit_report(facts, inputs)
        old = inputs.previous.units.get(facts.ref)
        if made != old and inputs.secrets:
            made = without_secrets(made, inputs.secrets)
        found[facts.ref] = old if old is not None and old == made else made
    known = inputs.desired is not None and inputs.desired.unit_set_known
    for ref, old in inputs.previous.units.items():
        if ref not in found and (not known or not in_scope(ref, inputs)):
            found[ref] = old
    return {ref: found[ref] for ref in sorted(found)}


def _unit_documents(
    units: Sequence[UnitReport], before: PreviousStatus
) -> Mapping[UnitRef, Document]:
    """The file of each unit; an unchanged unit keeps its very document, so it dumps for free."""
    documents = {}
    for unit in units:
        old = before.documents.get(unit.ref)
        if old is not None and before.units.get(unit.ref) is unit:
            documents[unit.ref] = old
        else:
            documents[unit.ref] = unit_document(unit)
    return documents


def _history(
    inputs: ReportInputs, units: Sequence[UnitReport], judgement: Judgement
) -> tuple[HistoryEntry, ...]:
    attempted = inputs.attempted or (inputs.desired.revision if inputs.desired else None)
    observing = inputs.desired is not None and inputs.desired.fleet.mode is FleetMode.OBSERVE
    synced = inputs.desired is not None and all(unit.sync is Sync.SYNCED for unit in units)
    result = "Applying"
    if judgement.stalled:
        result = "Failed"
    elif synced:
        result = "Applied"
    elif observing:
        result = "Observed"
    return next_history(
        inputs.previous.history,
        revision=attempted.commit if attempted is not None else "",
        result=result,
        all_ready=synced and not judgement.stalled and all(unit.ready for unit in units),
        cold_starts=cold_starts(inputs),
        now_ms=inputs.now_ms,
    )


def _is_urgent(
    before: PreviousStatus, conditions: Sequence[Condition], units: Mapping[UnitRef, UnitReport]
) -> bool:
    """Whether people should see it at once: Ready or Stalled of the fleet, Stalled of a unit.

    Ready of single units is left to the flush interval: a large fleet of short-lived
    nodes would commit without end.
    """
    old = {c.type: c.status for c in before.conditions}
    if any(c.type in {"Ready", "Stalled"} and old.get(c.type) != c.status for c in conditions):
        return True
    olds = ((unit, before.units.get(ref)) for ref, unit in units.items())
    return any(
        unit.stalled != (old is not None and old.stalled) for unit, old in olds if old is not unit
    )
