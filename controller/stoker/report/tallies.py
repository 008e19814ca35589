"""Figures that add up over passes: cold starts of a revision, drift put right in a day.

Called by report.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.fleet import ModelService, Unit
from stoker.model.outcome import Result, Sync
from stoker.model.plan import WarmthClass
from stoker.model.refs import UnitRef
from stoker.model.workload import is_workload
from stoker.report.inputs import ReportInputs
from stoker.report.unit_report import UnitReport

__all__ = ["cold_starts", "drift_hours"]

MS_PER_HOUR = 3_600_000


def cold_starts(inputs: ReportInputs) -> int:
    """Replicas that this pass started on nodes without their weights."""
    if inputs.plan is None or inputs.outcome is None:
        return 0
    created = {
        (outcome.unit, entry.ref.name)
        for outcome in inputs.outcome.units
        for entry in outcome.objects
        if entry.result is Result.CREATED and is_workload(entry.ref)
    }
    return sum(
        place.count
        for decision in inputs.plan.decisions
        for place in decision.placements
        if (decision.ref, place.name) in created
        and place.readiness is not None
        and place.readiness.warmth is WarmthClass.COLD
    )


def drift_hours(
    inputs: ReportInputs, units: Mapping[UnitRef, UnitReport]
) -> tuple[tuple[int, int], ...]:
    """Objects put right although neither Git nor the plan had changed, by hour, 24 hours."""
    hour = inputs.now_ms // MS_PER_HOUR
    counts = {h: n for h, n in inputs.previous.drift_hours if h > hour - 24}
    specs = {u.ref: u for u in inputs.desired.units} if inputs.desired is not None else {}
    for outcome in inputs.outcome.units if inputs.outcome is not None else ():
        before, now = inputs.previous.units.get(outcome.unit), units.get(outcome.unit)
        spec = specs.get(outcome.unit)
        written = sum(1 for entry in outcome.objects if entry.result in _WRITTEN)
        if before and now and spec and written and not _was_changed(spec, before, now):
            counts[hour] = counts.get(hour, 0) + written
    return tuple(sorted(counts.items()))


_WRITTEN = {Result.CREATED, Result.CHANGED}


def _was_changed(spec: Unit, before: UnitReport, now: UnitReport) -> bool:
    """Whether Git or the plan moved since the unit last stood as wanted."""
    if before.sync is not Sync.SYNCED or before.digest != spec.digest[:12]:
        return True
    return isinstance(spec.spec, ModelService) and _places(before) != _places(now)


def _places(unit: UnitReport) -> list[tuple[str, int]]:
    return [(p.name, p.replicas) for p in unit.service.placements] if unit.service else []
