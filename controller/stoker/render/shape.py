"""Stage shape: per unit the neutral manifests, and per ModelService its shape and rev.

`Desired` comes in, `Shapes` goes out: decide reads `shapes`, render the neutral manifests
inside. Called by reconcile before decide; free where nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from stoker.errors import BadInput, Finding, Severity, Stalled
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.ports import Repo
from stoker.model.refs import UnitRef
from stoker.model.shape import UnitShape
from stoker.render.neutral import NeutralUnit, bundle_from, service_from
from stoker.render.pool import Job, JobResult
from stoker.render.renderer import Renderer
from stoker.render.service import PROBE_DECISION
from stoker.render.shapes import Shapes
from stoker.render.unit_jobs import Workshop, key_of

__all__ = ["Shapes", "shape", "shape_ahead"]


def shape(
    desired: Desired,
    repo: Repo,
    renderer: Renderer,
    fleet_id: str,  # noqa: ARG001 - part of every stage's signature
    *,
    checkpoint: Callable[[], None] | None = None,
) -> Shapes:
    """Render every unit without decisions.

    What is wrong with a unit is a finding; raises Unreachable when Git cannot be read.
    """
    renderer.finish()
    return _shapes(desired, repo, renderer, checkpoint)


def shape_ahead(desired: Desired, repo: Repo, renderer: Renderer) -> None:
    """Begin with what `shape` will be asked for soon, while its caller asks the cluster."""
    renderer.begin(lambda checkpoint: _shapes(desired, repo, renderer, checkpoint))


def _shapes(
    desired: Desired,
    repo: Repo,
    renderer: Renderer,
    checkpoint: Callable[[], None] | None,
) -> Shapes:
    if (last := renderer.memo.last_shapes.to(desired)) is not None:
        return last
    workshop = Workshop(desired, repo, renderer.memo.texts)
    renderer.memo.keep_only(unit.ref for unit in desired.units)
    neutral: dict[UnitRef, NeutralUnit] = {}
    changed: list[Unit] = []
    for unit in desired.units:
        known = renderer.recall(unit.ref, key_of(unit, desired, workshop.index))
        if known is None:
            changed.append(unit)
        else:
            neutral[unit.ref] = known
    workshop.fetch(changed)
    for made in _made(changed, workshop, renderer, checkpoint):
        renderer.remember(made)
        neutral[made.ref] = made
    workshop.release()
    ordered = [neutral[unit.ref] for unit in desired.units]
    found = Shapes(
        shapes=tuple(
            UnitShape(item.ref, item.rev, item.shape) for item in ordered if item.shape is not None
        ),
        findings=tuple(finding for item in ordered for finding in item.findings),
        neutral=neutral,
        workshop=workshop,
    )
    renderer.memo.last_shapes.keep(None if found.findings else found, desired)
    return found


def _made(
    units: list[Unit],
    workshop: Workshop,
    renderer: Renderer,
    checkpoint: Callable[[], None] | None,
) -> list[NeutralUnit]:
    made: list[NeutralUnit] = []
    jobs: list[tuple[Unit, Job]] = []
    for unit in units:
        try:
            jobs.append((unit, workshop.job(unit)))
        except BadInput as error:
            made.append(_failed(unit, workshop, error.findings))
        except Stalled as error:
            finding = Finding(unit.location, error.code, error.message, hint=error.hint)
            made.append(_failed(unit, workshop, (finding,)))
    results = renderer.run([job for _, job in jobs], checkpoint)
    for (unit, _), result in zip(jobs, results, strict=True):
        if checkpoint is not None:
            checkpoint()
        made.append(_neutral(unit, workshop, result))
    return _steady(made, {unit.ref: unit for unit in units}, workshop, renderer)


def _neutral(unit: Unit, workshop: Workshop, result: JobResult) -> NeutralUnit:
    key = key_of(unit, workshop.desired, workshop.index)
    if isinstance(unit.spec, ModelService):
        return service_from(unit, unit.spec, key, result)
    return bundle_from(unit, key, result)


def _failed(unit: Unit, workshop: Workshop, findings: tuple[Finding, ...]) -> NeutralUnit:
    key = key_of(unit, workshop.desired, workshop.index)
    marked = tuple(
        sorted(replace(f, unit=str(unit.ref), severity=Severity.ERROR) for f in findings)
    )
    return NeutralUnit(unit.ref, key, findings=marked)


def _steady(
    made: list[NeutralUnit], units: Mapping[UnitRef, Unit], workshop: Workshop, renderer: Renderer
) -> list[NeutralUnit]:
    """Refuse pod templates that change with the count: scaling must never restart a pod.

    Only templates that looked at a decision are rendered again, with another one.
    """
    suspects = [item for item in made if item.workload is not None and item.workload.decided]
    jobs: list[Job] = []
    for item in suspects:
        unit = units[item.ref]
        assert isinstance(unit.spec, ModelService)
        mains = workshop.service_mains(unit, unit.spec)
        jobs.append(workshop.service_job(unit, unit.spec, mains, PROBE_DECISION))
    unsteady: dict[UnitRef, NeutralUnit] = {}
    for item, result in zip(suspects, renderer.run(jobs), strict=True):
        unit = units[item.ref]
        if _neutral(unit, workshop, result).rev != item.rev:
            assert item.workload is not None
            message = "the pod template depends on decision: a new count would restart every pod"
            finding = Finding(item.workload.source, "template-error", message)
            unsteady[item.ref] = _failed(unit, workshop, (finding,))
    return [unsteady.get(item.ref, item) for item in made]
