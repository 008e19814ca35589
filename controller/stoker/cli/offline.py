"""Source, shape, decide, render and check without a cluster: for validate, render, offline diff.

Without a snapshot the neutral manifests are checked as if one replica stood anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.check import check
from stoker.decide import decide
from stoker.decide.gates import gates
from stoker.errors import Finding
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.history import History
from stoker.model.manifest import ManifestSet
from stoker.model.plan import CountReason, Placement, Plan, ServiceDecision
from stoker.model.ports import Repo
from stoker.model.refs import SourceRevision
from stoker.model.shape import UnitShape
from stoker.model.snapshot import Snapshot
from stoker.objects.names import fleet_id_of, workload_name
from stoker.render import Renderer, render, shape
from stoker.source import SourceMemo, source

__all__ = ["Offline", "offline"]

NO_HISTORY = History()
"""Every estimate is a prior."""


@dataclass(frozen=True, slots=True)
class Offline:
    """What the files alone (and a snapshot, if given) come to."""

    desired: Desired
    plan: Plan
    sets: tuple[ManifestSet, ...]
    shapes: tuple[UnitShape, ...]
    findings: tuple[Finding, ...]
    fleet_id: str


def offline(
    repo: Repo,
    revision: SourceRevision,
    fleet_path: str,
    *,
    snapshot: Snapshot | None = None,
    now_ms: int = 0,
    node: str = "any-node",
    renderer: Renderer | None = None,
    history: History = NO_HISTORY,
) -> Offline:
    """Everything up to check; raises BadInput when the fleet itself is unusable.

    `node` is where replicas are shown to run when there is no snapshot to decide by.
    """
    desired = source(repo, fleet_path, SourceMemo(), revision=revision)
    fleet_id = fleet_id_of(desired.fleet.cluster_uid, desired.fleet.name)
    if renderer is not None:
        return _checked(repo, desired, fleet_id, snapshot, now_ms, node, renderer, history)
    with Renderer(2 if len(desired.units) > 8 else 1) as own:
        return _checked(repo, desired, fleet_id, snapshot, now_ms, node, own, history)


def _checked(
    repo: Repo,
    desired: Desired,
    fleet_id: str,
    snapshot: Snapshot | None,
    now_ms: int,
    node: str,
    renderer: Renderer,
    history: History,
) -> Offline:
    shapes = shape(desired, repo, renderer, fleet_id)
    if snapshot is None:
        plan = _imagined(desired, shapes.shapes, now_ms, node)
    else:
        desired = gates(desired, snapshot, {}, {}, now_ms, waits=False).desired
        plan = decide(desired, shapes.shapes, snapshot, history, now_ms)
    rendered = render(desired, shapes, plan, repo, renderer, fleet_id)
    sets = check(desired, rendered, plan=plan)
    findings = {*desired.findings, *shapes.findings, *(f for s in sets for f in s.findings)}
    return Offline(desired, plan, sets, shapes.shapes, tuple(sorted(findings)), fleet_id)


def _imagined(desired: Desired, shapes: tuple[UnitShape, ...], now_ms: int, node: str) -> Plan:
    """A plan that puts every replica on one node; for looking at manifests only."""
    revs = {item.ref: item.rev for item in shapes}
    decisions = [
        _one_decision(unit, unit.spec, revs[unit.ref], node)
        for unit in desired.units
        if isinstance(unit.spec, ModelService) and unit.ref in revs
    ]
    return Plan(now_ms, tuple(decisions))


def _one_decision(unit: Unit, service: ModelService, rev: str, node: str) -> ServiceDecision:
    scheduler = service.placement_mode == "Scheduler"
    where = "" if scheduler else node
    count = 1 if service.replicas is None else service.replicas
    pools = service.pools or ("",)
    groups = service.nodes > 1
    others = tuple(f"{node}-{number}" for number in range(2, service.nodes + 1))
    placement = Placement(
        name=service.adopt or workload_name(unit.ref.name, where, rev, grouped=groups),
        rev=rev,
        node=where,
        node_uid="",
        pool=pools[0],
        count=count,
        size=service.nodes,
        nodes=(node, *others) if groups and where else (),
        domain="zone" if groups and where else "",
    )
    return ServiceDecision(
        ref=unit.ref,
        mode=service.placement_mode,
        rev=rev,
        replicas=count,
        count=CountReason("Git", "spec.replicas"),
        floor=service.floor(count),
        placements=(placement,),
        groups=(placement.name,) if groups else (),
        size=service.nodes,
    )
