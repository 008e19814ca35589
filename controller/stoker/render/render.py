"""Stage render: every unit's manifests with the decisions baked in.

`Desired`, `Shapes` and `Plan` come in, one `ManifestSet` per unit goes out, in the order
of the units. Called by reconcile after decide. A unit that cannot be rendered is there
too, incomplete, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from stoker.errors import Finding
from stoker.model.fleet import Desired, ModelService, PlacementMode, Pool, Unit
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.plan import Placement, Plan, ServiceDecision
from stoker.model.ports import Repo
from stoker.model.prefetch import Prefetch
from stoker.model.refs import ObjectRef
from stoker.objects import kinds
from stoker.render.around import Around, around_workloads
from stoker.render.bake import Site, bake, leftover_placeholder, object_labels
from stoker.render.bake_group import bake_group
from stoker.render.manifests import ClusterKinds, cluster_kinds, manifest_of, placed, with_labels
from stoker.render.neutral import NeutralObject, NeutralUnit
from stoker.render.prefetch import job_ref, prefetch_job
from stoker.render.renderer import LastSets, Renderer
from stoker.render.shapes import Shapes
from stoker.render.unit_jobs import Workshop

__all__ = ["render"]

_BROUGHT = frozenset({("", "Service"), ("policy", "PodDisruptionBudget")})
"""An adopted workload has these already, selecting pods by labels that are not ours (note 19)."""


def render(
    desired: Desired,
    shapes: Shapes,
    plan: Plan,
    repo: Repo,
    renderer: Renderer,
    fleet_id: str,
    *,
    checkpoint: Callable[[], None] | None = None,
) -> tuple[ManifestSet, ...]:
    """Bake the plan into the neutral manifests of `shapes`.

    The same set object is given again while nothing about it changed. Raises Unreachable
    when Git cannot be read.
    """
    last = renderer.memo.last_sets
    if last is not None and last.answers(desired, shapes, plan, fleet_id):
        return last.sets
    workshop = shapes.workshop or Workshop(desired, repo, renderer.memo.texts)
    around = around_workloads(desired, shapes.neutral, plan, workshop, renderer, checkpoint)
    scopes = cluster_kinds(shapes.neutral.values())
    decisions = {decision.ref: decision for decision in plan.decisions}
    sets: list[ManifestSet] = []
    for unit in desired.units:
        if checkpoint is not None:
            checkpoint()
        task = _Task(
            unit=unit,
            neutral=shapes.neutral[unit.ref],
            decision=decisions.get(unit.ref),
            around=around.get(unit.ref, Around()),
            pools=_pools(desired, unit),
            fleet=(fleet_id, desired.fleet.name),
            cluster_scoped=scopes,
        )
        known = renderer.memo.sets.get(unit.ref)
        if known is not None and known[0] == task.key:
            sets.append(known[1])
            continue
        made = task.manifest_set()
        renderer.memo.sets[unit.ref] = (task.key, made)
        sets.append(made)
    made_now = LastSets(desired, shapes, plan.decisions, fleet_id, tuple(sets))
    renderer.memo.last_sets = made_now if all(item.complete for item in sets) else None
    return made_now.sets


def _pools(desired: Desired, unit: Unit) -> tuple[Pool, ...]:
    """The pools that the unit lists, in its order; those the fleet lacks are left out."""
    if not isinstance(unit.spec, ModelService):
        return ()
    by_name = {pool.name: pool for pool in desired.fleet.pools}
    return tuple(by_name[name] for name in unit.spec.pools if name in by_name)


@dataclass(frozen=True, slots=True)
class _Task:
    """Everything that one unit's set depends on."""

    unit: Unit
    neutral: NeutralUnit
    decision: ServiceDecision | None
    around: Around
    pools: tuple[Pool, ...]
    fleet: tuple[str, str]
    """Id and name."""
    cluster_scoped: ClusterKinds

    @property
    def key(self) -> object:
        """Equal keys give equal sets. Estimates and reasons of a decision are not part of it."""
        content: object = None
        if self.decision is not None:
            content = (
                self.decision.rev,
                self.decision.mode,
                self.decision.replicas,
                self.decision.floor,
                tuple(
                    (p.name, p.rev, p.node, p.node_uid, p.pool, p.count, p.nodes, p.domain)
                    for p in self.decision.placements
                ),
                self.decision.retirements,
                self.decision.coldest,
                self.decision.untouched,
                self.decision.groups,
                self.decision.prefetches,
            )
        place = (self.unit.location, self.pools, self.fleet, self.cluster_scoped)
        return (self.neutral, content, self.around.findings, *place)

    def manifest_set(self) -> ManifestSet:
        """The set; incomplete with findings where something is wrong."""
        if not self.neutral.usable:
            return self._incomplete(self.neutral.findings)
        if not isinstance(self.unit.spec, ModelService):
            return self._sorted(self._bundle())
        if self.decision is None:
            message = "nothing was decided about this service, so nothing of it is changed"
            return self._incomplete([Finding(self.unit.location, "not-decided", message)])
        if self.around.findings:
            return self._incomplete(self.around.findings)
        manifests, findings = self._service(self.unit.spec, self.decision)
        if findings:
            return self._incomplete(findings)
        return replace(
            self._sorted(manifests),
            kept=self._kept(self.decision),
            retirements=self.decision.retirements,
            coldest=self.decision.coldest,
            over=tuple(self._job_ref(p) for p in self.decision.prefetches if p.over),
        )

    def _bundle(self) -> list[Manifest]:
        owner = (self.fleet[0], self.unit.ref)
        namespace = self.unit.ref.namespace
        items = (placed(item, namespace, self.cluster_scoped) for item in self.neutral.objects)
        return [manifest_of(item.ref, item.body, item.source, owner) for item in items]

    def _service(
        self, spec: ModelService, decision: ServiceDecision
    ) -> tuple[list[Manifest], list[Finding]]:
        findings: list[Finding] = []
        manifests: list[Manifest] = []
        for item in self._beside():
            if leftover_placeholder(item.body):
                message = "placement is only known in the pod template and its Deployment"
                findings.append(Finding(item.source, "template-error", message))
            own = item.body["metadata"].get("labels") or {}
            labels = object_labels(self.fleet[1], self.unit.ref, own)
            manifests.append(self._manifest(replace(item, body=with_labels(item.body, labels))))
        for placement in decision.placements:
            if placement.rev == self.neutral.rev:
                made, problem = self._deployment(spec, decision, placement)
                manifests.append(made)
                findings.extend(problem)
        manifests += [self._job(spec, p) for p in decision.prefetches if p.state is None]
        return manifests, findings

    def _beside(self) -> list[NeutralObject]:
        """Objects beside the workload; without a known count, decided ones stay as they are."""
        fixed = [item for item in self.neutral.objects if not item.decided]
        items = (*fixed, *self.around.objects)
        if isinstance(self.unit.spec, ModelService) and self.unit.spec.adopt:
            items = tuple(item for item in items if (item.ref.group, item.ref.kind) not in _BROUGHT)
        return [placed(item, self.unit.ref.namespace, self.cluster_scoped) for item in items]

    def _deployment(
        self, spec: ModelService, decision: ServiceDecision, placement: Placement
    ) -> tuple[Manifest, list[Finding]]:
        workload = self.neutral.workload
        assert workload is not None
        pools = self.pools
        findings: list[Finding] = []
        if decision.mode is PlacementMode.NODES:
            pools = tuple(pool for pool in self.pools if pool.name == placement.pool)
        if not pools and spec.pools:
            message = f"the fleet has no pool {placement.pool!r} for {placement.name}"
            location = self.unit.line_of("spec.placement.pools")
            findings.append(Finding(location, "pool-not-found", message))
        site = Site(self.fleet[1], self.unit.ref, spec, pools, self.unit.location.path)
        make = bake_group if spec.nodes > 1 else bake
        body = make(workload.body, placement, site)
        if leftover_placeholder(body):
            message = (
                "the template changes the spelling of a placement value, which is filled in later"
            )
            findings.append(Finding(workload.source, "template-error", message))
        ref = replace(
            workload.ref, name=placement.name, namespace=str(body["metadata"]["namespace"])
        )
        item = replace(workload, ref=ref, body=body)
        return self._manifest(item, frozen_template=True), findings

    def _job_ref(self, prefetch: Prefetch) -> ObjectRef:
        assert self.neutral.workload is not None
        return job_ref(
            self.neutral.workload.ref.namespace or self.unit.ref.namespace, prefetch.name
        )

    def _job(self, spec: ModelService, prefetch: Prefetch) -> Manifest:
        """A Job that fetches ahead; those that stand are left as they are."""
        workload = self.neutral.workload
        assert workload is not None
        where = (self.unit.ref, self.fleet[1], self.unit.location.path)
        body = prefetch_job(workload.body, spec, prefetch, *where)
        return self._manifest(replace(workload, ref=self._job_ref(prefetch), body=body))

    def _manifest(self, item: NeutralObject, *, frozen_template: bool = False) -> Manifest:
        """What a person can change about a service is its own file, so that is the source."""
        owner = (self.fleet[0], self.unit.ref)
        return manifest_of(
            item.ref, item.body, self.unit.location, owner, frozen_template=frozen_template
        )

    def _kept(self, decision: ServiceDecision) -> tuple[ObjectRef, ...]:
        """Workloads that leave or are left alone, Jobs that stand, and objects that wait for
        a known count.
        """
        assert self.neutral.workload is not None
        namespace = self.neutral.workload.ref.namespace or self.unit.ref.namespace
        older = {p.name for p in decision.placements if p.rev != self.neutral.rev}
        names = {r.name for r in decision.retirements} | set(decision.untouched) | older
        refs = (decision.workload_ref(name) for name in sorted(names))
        kept = [replace(ref, namespace=namespace) for ref in refs]
        standing = (p for p in decision.prefetches if p.state is not None and not p.over)
        kept += [self._job_ref(prefetch) for prefetch in standing]
        if decision.replicas is None:
            waiting = (item for item in self.neutral.objects if item.decided)
            kept += [
                placed(item, self.unit.ref.namespace, self.cluster_scoped).ref for item in waiting
            ]
        return tuple(sorted(kept))

    def _sorted(self, manifests: Iterable[Manifest]) -> ManifestSet:
        ordered = sorted(manifests, key=lambda manifest: kinds.apply_order(manifest.ref))
        return ManifestSet(self.unit.ref, tuple(ordered))

    def _incomplete(self, findings: Iterable[Finding]) -> ManifestSet:
        marked = tuple(sorted(replace(f, unit=str(self.unit.ref)) for f in findings))
        return ManifestSet(self.unit.ref, complete=False, findings=marked)
