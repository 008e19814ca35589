"""What stands of a ModelService, and how well that is: counts, phases, holds.

In: its decision and the snapshot, or what was reported before where one is missing.
Called by unit_state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.model.fleet import ModelService, Unit
from stoker.model.outcome import Health
from stoker.model.plan import Attempt, Placement, ServiceDecision
from stoker.model.refs import UnitRef
from stoker.model.snapshot import (
    LivePlacement,
    Notice,
    Replica,
    ReplicaPhase,
    ServiceState,
    Snapshot,
)
from stoker.model.times import rfc3339
from stoker.objects.health import HealthVerdict
from stoker.report.conditions import Reason, camel
from stoker.report.unit_report import (
    Cause,
    HoldLine,
    NodeLine,
    PlacementLine,
    PrefetchLine,
    ReplicaCounts,
    RetirementLine,
    ServiceReport,
)

__all__ = ["ServiceView", "judge_service", "pods_unknown", "service_report"]

MAX_NODES = 50
"""Nodes listed one by one in a unit's file; the rest are counted by rule."""
MAX_PLACEMENTS = 200


@dataclass(frozen=True, slots=True)
class ServiceView:
    """What the snapshot says about one service. `blind` says why its pods are unknown;
    `notices` is shared by all services, by node name.
    """

    state: ServiceState
    blind: str = ""
    notices: Mapping[str, Notice] = field(default_factory=dict, hash=False)


def service_report(
    *,
    unit: Unit | None,
    decision: ServiceDecision | None,
    view: ServiceView,
    previous: ServiceReport | None,
) -> ServiceReport:
    """Collect what is known of a service; where nothing is known now, what was."""
    state, blind = view.state, view.blind
    spec = unit.spec if unit is not None and isinstance(unit.spec, ModelService) else None
    return ServiceReport(
        counts=_counts(decision, state, previous, blind=blind),
        count_source=decision.count.source if decision else "Git",
        count_detail=decision.count.detail if decision else "",
        count_refused=decision.count.refused if decision else "",
        count_line=unit.line_of("spec.replicas").line if unit is not None else 0,
        model_uri=spec.model_uri if spec else previous.model_uri if previous else "",
        model_revision=spec.model_revision if spec else previous.model_revision if previous else "",
        rev=decision.rev if decision else previous.rev if previous else "",
        placements=_placements(decision, state, previous, blind=blind),
        retirements=tuple(
            RetirementLine(r.name, r.stage.value, r.reason, r.keep)
            for r in (decision.retirements if decision else ())
        ),
        holds=tuple(
            HoldLine(camel(h.code), h.message, h.remedy, h.new_node)
            for h in (decision.holds if decision else ())
        ),
        prefetches=tuple(
            PrefetchLine(p.node, p.state.value if p.state is not None else "Wanted")
            for p in (decision.prefetches if decision else ())
            if not p.over
        ),
        nodes=tuple(_node_line(a) for a in (decision.attempts[:MAX_NODES] if decision else ())),
        rejected=decision.rejected if decision else (),
        cause=_cause(view),
        when_full=decision.when_full if decision else "",
    )


def judge_service(service: ServiceReport, view: ServiceView, *, observing: bool) -> HealthVerdict:
    """Judge a service by its replicas. Ready means that it can serve a token.

    Unknown when the wanted count or the pods are not known; degraded when replicas are
    missing and none that would fill the gap is on its way.
    """
    counts = service.counts
    if view.blind:
        return HealthVerdict(Health.UNKNOWN, Reason.UNKNOWN, view.blind)
    if counts.desired is None:
        return HealthVerdict(Health.UNKNOWN, Reason.COUNT_UNKNOWN, f"{counts.ready} Ready")
    message = f"{counts.told()} Ready"
    if counts.desired == 0:
        return HealthVerdict(Health.HEALTHY, Reason.SCALED_TO_ZERO, "")
    hold = service.holds[0].reason if service.holds else ""
    if hold in _FAILED_HOLDS:
        return HealthVerdict(Health.DEGRADED, hold, message)
    if counts.ready >= counts.desired:
        return HealthVerdict(Health.HEALTHY, Reason.HEALTHY, "")
    if counts.ready + counts.warming >= counts.desired:
        return HealthVerdict(Health.PROGRESSING, _phase(view), message)
    if hold:
        status = Health.PROGRESSING if hold in _PASSING_HOLDS else Health.DEGRADED
        return HealthVerdict(status, hold, message)
    if counts.stuck:
        cause = service.cause
        where = f"; {cause.kind} on {cause.node or 'no node'}" if cause else ""
        return HealthVerdict(Health.DEGRADED, Reason.STUCK, message + where)
    if observing and not service.placements:
        return HealthVerdict(Health.MISSING, Reason.NOT_CREATED, message)
    return HealthVerdict(Health.PROGRESSING, _phase(view), message)


_FAILED_HOLDS = {"UpdateFailed", "StartsFailing"}
"""The wanted rev does not start: wrong even while replicas of the old one serve on."""
_PASSING_HOLDS = {
    "WaitingForDeparture",
    "Reclaiming",
    "WaitingForDependency",
    "ChangeWindowClosed",
    "UpdatePaused",
    "WaitingForMoves",
}
"""Ends by itself: room comes free where the service's own replica or one of lower priority is
leaving, what it depends on is ready, a change window opens, the pause of an update is over.
"""


def pods_unknown(snapshot: Snapshot | None, ref: UnitRef) -> str:
    """Why the replicas of a service cannot be counted now; empty when they can."""
    if snapshot is None:
        return "the cluster could not be read"
    about = {"pods", f"pods/{ref.namespace}", "deployments", f"deployments/{ref.namespace}"}
    return next((f"{what}: {why}" for what, why in snapshot.unknown if what in about), "")


def _counts(
    decision: ServiceDecision | None,
    state: ServiceState,
    previous: ServiceReport | None,
    *,
    blind: str,
) -> ReplicaCounts:
    before = previous.counts if previous else None
    desired = decision.replicas if decision else before.desired if before else None
    floor = decision.floor if decision else before.floor if before else 0
    each = decision.size if decision else before.pods_each if before else 1
    if blind:
        return ReplicaCounts(desired, before.ready if before else 0, 0, floor, pods_each=each)
    ready = sum(place.ready for place in state.placements)
    warming = sum(place.warming for place in state.placements if not place.terminating)
    if decision is not None:
        ready, warming = decision.ready, decision.warming
    # Surge copies are not replicas: an autoscaler would count them as load already met.
    shown = ready if desired is None else min(ready, desired)
    stuck = sum(1 for pod in _pods(state) if pod.phase is ReplicaPhase.STUCK)
    return ReplicaCounts(desired, shown, warming, floor, stuck, each)


def _pods(state: ServiceState) -> tuple[Replica, ...]:
    return tuple(pod for place in state.placements for pod in place.pods)


def _placements(
    decision: ServiceDecision | None,
    state: ServiceState,
    previous: ServiceReport | None,
    *,
    blind: str,
) -> tuple[PlacementLine, ...]:
    """Decided placements with what lives of them; without a decision, what lives."""
    live = {place.name: place for place in state.placements}
    if decision is not None:
        told = {line.name: line.ready_in for line in (previous.placements if previous else ())}
        lines = [_decided_line(p, live.get(p.name), told.get(p.name)) for p in decision.placements]
        named = {p.name for p in decision.placements} | {r.name for r in decision.retirements}
        lines += [_line_of(place) for name, place in sorted(live.items()) if name not in named]
    elif blind:
        return previous.placements if previous else ()
    else:
        lines = [_line_of(place) for place in state.placements]
    return tuple(sorted(lines, key=lambda line: (line.node, line.name))[:MAX_PLACEMENTS])


def _line_of(place: LivePlacement) -> PlacementLine:
    return PlacementLine(
        place.name, place.told, "", place.rev, place.replicas, place.ready, place.warming
    )


def _decided_line(
    decided: Placement, live: LivePlacement | None, told: int | None
) -> PlacementLine:
    """The first estimate of a start stays until it is over: what is loaded by now shortens others."""
    ready, warming = (live.ready, live.warming) if live is not None else (0, 0)
    estimate = decided.readiness.p50_ms // 1000 if decided.readiness is not None else None
    return PlacementLine(
        decided.name,
        decided.told,
        decided.pool,
        decided.rev,
        decided.count,
        ready,
        warming,
        None if ready >= decided.count else told if told is not None else estimate,
    )


def _node_line(attempt: Attempt) -> NodeLine:
    readiness = attempt.readiness
    return NodeLine(
        attempt.node,
        attempt.pool,
        attempt.verdict,
        attempt.rule,
        readiness.warmth.value if readiness else "",
        readiness.p50_ms // 1000 if readiness else None,
        readiness.origin if readiness else "",
    )


def _phase(view: ServiceView) -> str:
    """The phase most of its replicas on their way are in, ties by name."""
    phases = Counter(pod.phase.value for pod in _pods(view.state) if pod.phase.warming)
    if not phases:
        return Reason.STARTING
    return min(phases, key=lambda phase: (-phases[phase], phase))


def _cause(view: ServiceView) -> Cause | None:
    """The notice on a node of it, else its first stuck replica."""
    pods = _pods(view.state)
    for pod in pods:
        for node in pod.nodes:
            if (notice := view.notices.get(node)) is not None:
                return Cause(node, notice.kind, rfc3339(notice.at_ms))
    for pod in pods:
        if pod.phase is ReplicaPhase.STUCK:
            why = pod.reason or pod.phase.value
            return Cause(pod.blamed_node, why, rfc3339(pod.since_ms))
    return None
