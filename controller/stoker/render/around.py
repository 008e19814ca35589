"""Objects beside the workload that follow the decided counts (the PodDisruptionBudget).

Only templates that looked at `decision` are rendered again, and only when the counts
changed. Called by render.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from stoker.errors import Finding
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.plan import Plan
from stoker.model.refs import UnitRef
from stoker.render.neutral import NeutralObject, NeutralUnit, objects_from
from stoker.render.pool import Job
from stoker.render.renderer import Renderer
from stoker.render.service import decision_data
from stoker.render.unit_jobs import Workshop

__all__ = ["Around", "around_workloads"]


@dataclass(frozen=True, slots=True)
class Around:
    """Decided objects of one service, or why they cannot be rendered."""

    objects: tuple[NeutralObject, ...] = ()
    findings: tuple[Finding, ...] = ()


def around_workloads(
    desired: Desired,
    neutral: Mapping[UnitRef, NeutralUnit],
    plan: Plan,
    workshop: Workshop,
    renderer: Renderer,
    checkpoint: Callable[[], None] | None = None,
) -> dict[UnitRef, Around]:
    """The decided objects of every service that has some and whose count is known."""
    decisions = {decision.ref: decision for decision in plan.decisions}
    found: dict[UnitRef, Around] = {}
    jobs: list[tuple[Unit, object, Job]] = []
    for unit in desired.units:
        item = neutral[unit.ref]
        decision = decisions.get(unit.ref)
        paths = {part.source.path for part in item.objects if part.decided}
        if not paths or decision is None or decision.replicas is None:
            continue
        key: object = (item, decision.replicas, decision.floor)
        known = renderer.memo.around.get(unit.ref)
        if known is not None and known[0] == key:
            found[unit.ref] = Around(known[1])
            continue
        assert isinstance(unit.spec, ModelService)
        counts = decision_data(decision.replicas, decision.floor)
        mains = workshop.names_of(paths)
        jobs.append((unit, key, workshop.service_job(unit, unit.spec, mains, counts)))
    results = renderer.run([job for *_, job in jobs], checkpoint)
    for (unit, key, _), result in zip(jobs, results, strict=True):
        objects, findings = objects_from(unit, result)
        if findings:
            marked = tuple(sorted(replace(f, unit=str(unit.ref)) for f in findings))
            found[unit.ref] = Around(findings=marked)
            continue
        workload = neutral[unit.ref].workload
        beside = tuple(
            part for part in objects if part.decided and workload and part.ref != workload.ref
        )
        renderer.memo.around[unit.ref] = (key, beside)
        found[unit.ref] = Around(beside)
    return found
