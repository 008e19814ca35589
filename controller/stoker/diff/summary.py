"""The last line of a diff: how many objects, how many GPUs, how many cold starts.

A ChangeSet, the plan behind it and the live view come in; a `Summary` goes out. Called by
the command line for `diff` and `apply`, and by report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.diff.classes import is_updating
from stoker.model.change import Action, Change, ChangeSet, Impact, UnitChanges
from stoker.model.live import LiveView
from stoker.model.plan import Placement, Plan, WarmthClass
from stoker.model.refs import ObjectRef, ref_from_manifest
from stoker.model.workload import LWS_KIND, is_workload, pods_each
from stoker.objects import names
from stoker.objects.kinds import pod_specs_of

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of objects by what happens to them, and GPUs of all services of the fleet.

    A replace is one placement that takes over from another and counts neither as a create
    nor as a delete. `gpus_peak` is held while new and leaving replicas both stand.
    `pods_restarted` are pods that run now and are made anew, in place or elsewhere;
    `cold_start_ms` is the likely time of all cold starts, one after another.
    """

    create: int = 0
    change: int = 0
    recreate: int = 0
    replace: int = 0
    delete: int = 0
    unchanged: int = 0
    kept: int = 0
    wait: int = 0
    error: int = 0
    gpus_before: int = 0
    gpus_after: int = 0
    gpus_peak: int = 0
    cold_starts: int = 0
    cold_start_ms: int = 0
    pods_restarted: int = 0

    @property
    def differs(self) -> bool:
        """Whether anything would be written or is in the way (exit code 1 of `diff`)."""
        written = (self.create, self.change, self.recreate, self.replace, self.delete)
        return any((*written, self.wait, self.error))

    def __str__(self) -> str:
        """Lay it out as ux.md has it."""
        parts = [
            f"{self.create} to create",
            f"{self.change} to change",
            f"{self.replace} to replace",
            f"{self.delete} to delete",
            f"{self.unchanged} unchanged",
        ]
        rare = (
            ("to recreate", self.recreate),
            ("kept", self.kept),
            ("waiting", self.wait),
            ("in error", self.error),
        )
        parts += [f"{count} {word}" for word, count in rare if count]
        gpus = f"GPUs {self.gpus_before} -> {self.gpus_after}"
        if self.gpus_peak > max(self.gpus_before, self.gpus_after):
            gpus += f" (peak {self.gpus_peak})"
        cold = f"cold starts {self.cold_starts}"
        if self.cold_start_ms:
            cold += f" ({-(-self.cold_start_ms // 1000)} s)"
        if self.pods_restarted:
            cold += f"; pods restarted {self.pods_restarted}"
        return f"Plan: {', '.join(parts)}; {gpus}; {cold}"


def summarise(changes: ChangeSet, plan: Plan | None, live: LiveView, fleet_id: str) -> Summary:
    """Count a ChangeSet. Without a plan every new replica counts as a cold start."""
    placements = _placements(plan)
    counts: Counter[str] = Counter()
    for unit in changes.units:
        counts.update(_kind_of(change) for change in unit.changes)
        counts.update(_retired(unit, placements))
    standing = {
        item.ref: item.body
        for item in live.owned(fleet_id)
        if is_workload(item.ref) and _is_service(item.body)
    }
    before = sum(_gpus(body) for body in standing.values())
    added, removed, cold = _moves(changes, standing, placements)
    return Summary(
        create=counts["create"],
        change=counts["change"],
        recreate=counts["recreate"],
        replace=counts["replace"],
        delete=counts["delete"],
        unchanged=counts["unchanged"],
        kept=counts["keep"],
        wait=counts["wait"],
        error=counts["error"],
        gpus_before=before,
        gpus_after=before + added - removed,
        gpus_peak=before + added,
        cold_starts=cold,
        cold_start_ms=sum(
            _cold_ms(placements.get(change.ref))
            for unit in changes.units
            for change in unit.changes
            if change.action is Action.CREATE
        ),
        pods_restarted=sum(_restarted_of(unit, plan, live) for unit in changes.units),
    )


def _placements(plan: Plan | None) -> dict[ObjectRef, Placement]:
    """Every placement of the plan, by its Deployment."""
    return {
        decision.workload_ref(placement.name): placement
        for decision in (plan.decisions if plan is not None else ())
        for placement in decision.placements
    }


def _kind_of(change: Change) -> str:
    if change.action is Action.CREATE and change.replaces is not None:
        return "replace"
    return str(change.action)


def _retired(unit: UnitChanges, placements: dict[ObjectRef, Placement]) -> Iterable[str]:
    """How leaving Deployments count beside the changes of their unit."""
    written = {c.ref.name: c for c in unit.changes if is_workload(c.ref)}
    taken_over = {c.replaces.name for c in unit.changes if c.replaces is not None}
    replaced = {
        placement.replaces
        for ref, placement in placements.items()
        if ref.namespace == unit.unit.namespace and placement.replaces
    }
    for retirement in unit.retirements:
        if retirement.name in taken_over:
            continue
        if retirement.keep:
            change = written.get(retirement.name)
            if change is None or change.action is Action.UNCHANGED:
                yield "change"
        else:
            yield "replace" if retirement.name in replaced else "delete"


def _moves(
    changes: ChangeSet,
    standing: dict[ObjectRef, dict[str, Any]],
    placements: dict[ObjectRef, Placement],
) -> tuple[int, int, int]:
    """GPUs that come, GPUs that go, and replicas that start cold."""
    added = removed = cold = 0
    for unit in changes.units:
        leaving = {r.ref_in(unit.unit.namespace): r.keep for r in unit.retirements}
        surged = {
            change.replaces
            for change in unit.changes
            if change.action is Action.CREATE and change.replaces is not None
        } - set(leaving)
        for ref in sorted(surged & set(standing)):
            removed += _gpus(standing[ref])  # it leaves once its successor is Ready
        for change in unit.changes:
            body = standing.get(change.ref)
            written = {Action.CREATE, Action.CHANGE, Action.RECREATE}
            if change.action in written and change.payload is not None:
                leaving.pop(change.ref, None)
                more = _replicas(change.payload) - (_replicas(body) if body is not None else 0)
                if not is_workload(change.ref) or not _is_service(change.payload):
                    continue
                each = _gpus_each(change.payload)
                added += max(0, more) * each
                removed += max(0, -more) * each
                more += _replicas(body) if body and change.action is Action.RECREATE else 0
                cold += max(0, more) if _is_cold(placements.get(change.ref)) else 0
            elif change.action is Action.DELETE and body is not None:
                removed += _gpus(body)
        for ref, keep in leaving.items():
            body = standing.get(ref)
            if body is not None:
                removed += max(0, _replicas(body) - keep) * _gpus_each(body)
    return added, removed, cold


def _cold_ms(placement: Placement | None) -> int:
    if placement is None or placement.readiness is None or not _is_cold(placement):
        return 0
    return placement.readiness.p50_ms * placement.count


def _restarted_of(unit: UnitChanges, plan: Plan | None, live: LiveView) -> int:
    """Pods of one unit, those included that an update ends first and starts again later."""
    taken_over = {c.replaces.name for c in unit.changes if c.replaces is not None}
    leaving = [r for r in unit.retirements if r.name not in taken_over]
    found = sum(_restarted(change, live) for change in unit.changes)
    return found + (sum(max(1, len(r.pods)) for r in leaving) if is_updating(unit, plan) else 0)


def _restarted(change: Change, live: LiveView) -> int:
    """Pods of one object that end and come back; of DaemonSets the count is not known here."""
    if change.action is Action.CREATE and change.replaces is not None:
        old = live.get(change.replaces) if live.known(change.replaces) else None
        return _replicas(old.body) * pods_each(old.body) if old is not None else 1
    if change.action is not Action.CHANGE:
        return 0
    if change.impact not in {Impact.RESTART, Impact.PLACEMENT}:
        return 0
    if change.ref.kind not in {"Deployment", "StatefulSet", "Pod", LWS_KIND}:
        return 0
    standing = live.get(change.ref) if live.known(change.ref) else None
    return _replicas(standing.body) * pods_each(standing.body) if standing is not None else 0


def _is_cold(placement: Placement | None) -> bool:
    if placement is None or placement.readiness is None:
        return True
    return placement.readiness.warmth is WarmthClass.COLD


def _is_service(body: dict[str, Any]) -> bool:
    return names.SERVICE_LABEL in ((body.get("metadata") or {}).get("labels") or {})


def _replicas(body: dict[str, Any]) -> int:
    count = (body.get("spec") or {}).get("replicas", 1)
    return count if isinstance(count, int) else 1


def _gpus(body: dict[str, Any]) -> int:
    return _replicas(body) * _gpus_each(body)


def _gpus_each(body: dict[str, Any]) -> int:
    """Whole devices of one replica: every limit named `…/gpu`, as device plugins name them."""
    ref = ref_from_manifest(body)
    first, *rest = pod_specs_of(body, ref.group, ref.kind) or [{}]
    workers = pods_each(body) - 1
    return _gpus_of_pod(first) + sum(workers * _gpus_of_pod(spec) for spec in rest)


def _gpus_of_pod(spec: dict[str, Any]) -> int:
    total = 0
    for container in spec.get("containers") or ():
        limits = (container.get("resources") or {}).get("limits") or {}
        for name, amount in limits.items():
            if name.endswith("/gpu") and str(amount).isdigit():
                total += int(amount)
    return total
