"""The objects that show the fleet and its services in the cluster.

In: unit reports and the fleet's facts. Out: manifests for Fleet and ModelService, without
owner references or finalizers: deleting one never touches a workload. `spec.replicas` is
always present and `status.selector` a string, or autoscalers fail [tried].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stoker.model.codec import digest
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.live import LiveView
from stoker.model.outcome import Condition
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.workload import WORKER_INDEX
from stoker.objects.health_fields import mapping
from stoker.objects.names import (
    API_VERSION,
    FLEET_ID,
    FLEET_LABEL,
    MANAGED_BY,
    SERVICE_LABEL,
    SOURCE,
)
from stoker.objects.selectors import selector_text
from stoker.report.documents import FleetFacts
from stoker.report.inputs import Identity
from stoker.report.mirror import Mirror
from stoker.report.previous import PreviousStatus
from stoker.report.unit_report import ServiceReport, UnitReport
from stoker.report.units import conditions_to_data

__all__ = ["fleet_mirror", "service_mirrors"]


def service_mirrors(
    identity: Identity,
    desired: Desired,
    units: Iterable[UnitReport],
    before: PreviousStatus,
    live: LiveView | None = None,
) -> dict[UnitRef, Mirror]:
    """One mirror for each ModelService that Git has; of an unchanged service, the same one."""
    specs = {unit.ref: unit for unit in desired.units}
    found = {}
    for report in units:
        unit = specs.get(report.ref)
        if unit is None or report.service is None or not isinstance(unit.spec, ModelService):
            continue
        selector = _selector(unit, unit.spec, live)
        old = before.mirrors.get(report.ref)
        if (
            old is not None
            and old.made_from == unit.digest
            and old.status["status"]["selector"] == selector
            and before.units.get(report.ref) is report
        ):
            found[report.ref] = old
        else:
            found[report.ref] = _service_mirror(
                identity, desired, unit, unit.spec, report, selector
            )
    return found


def _selector(unit: Unit, spec: ModelService, live: LiveView | None) -> str:
    """What selects the pods: our label, or as long as it stands the adopted workload's own.

    Of groups only leaders: whoever scales counts one pod a replica.
    """
    own = f"{SERVICE_LABEL}={unit.ref.name}"
    if spec.nodes > 1:
        own += f",{WORKER_INDEX}=0"
    if not spec.adopt or live is None:
        return own
    ref = ObjectRef("apps", "Deployment", unit.ref.namespace, spec.adopt, "v1")
    held = live.get(ref) if live.known(ref) else None
    if held is None:
        return own
    return selector_text(mapping(mapping(held.body, "spec"), "selector")) or own


def fleet_mirror(
    identity: Identity,
    desired: Desired,
    fleet: FleetFacts,
    units: Iterable[UnitReport],
    written: tuple[Condition, ...] = (),
    handled: str = "",
) -> Mirror:
    """Show the fleet: `kubectl get fleets -A`. `written` is what no branch can say of itself,
    `handled` the newest request for a pass that was answered.
    """
    units = tuple(units)
    spec = {
        "mode": desired.fleet.mode.value,
        "source": {"ref": identity.source_ref, "path": identity.source_path},
        "statusBranch": desired.fleet.status_branch,
    }
    status = {
        "sync": {"status": fleet.sync.value},
        "health": {"status": fleet.health.value},
        "revision": _short(fleet.last_attempted),
        "lastAttemptedRevision": fleet.last_attempted,
        "lastAppliedRevision": fleet.last_applied,
        "units": len(units),
        "readyUnits": sum(1 for unit in units if unit.ready),
        "conditions": _conditions(fleet.conditions),
    }
    if handled:
        status["lastHandledReconcileAt"] = handled
    name = desired.fleet.name
    mirror = _mirror(identity, desired, "Fleet", identity.namespace, name, "", spec, status)
    return _with_written(mirror, written)


def _with_written(mirror: Mirror, written: tuple[Condition, ...]) -> Mirror:
    """Show also how the branch takes commits: news when it changes, not with each commit.

    A process that has not pushed yet does not know it, and leaves what stands as it is.
    """
    known = [[c.type, c.status, c.reason] for c in written if c.status != "Unknown"]
    mark = f"{mirror.digest}-{digest(known)[:8]}" if known else mirror.digest
    status = mirror.status["status"]
    conditions = [*status["conditions"], *_conditions(written)]
    shown = {**status, "conditions": conditions, "observedDigest": mark}
    return replace(
        mirror,
        digest=mark,
        status={**mirror.status, "status": shown},
        provisional=not known,
    )


def _service_mirror(
    identity: Identity,
    desired: Desired,
    unit: Unit,
    spec: ModelService,
    report: UnitReport,
    selector: str,
) -> Mirror:
    service = report.service
    assert service is not None
    count = service.counts.desired
    shown: dict[str, Any] = {
        "model": {"uri": spec.model_uri, "revision": spec.model_revision},
        "placement": {"mode": spec.placement_mode.value},
    }
    if count is not None:
        shown["replicas"] = count
    return _mirror(
        identity,
        desired,
        "ModelService",
        unit.ref.namespace,
        unit.ref.name,
        unit.location.path,
        shown,
        _service_status(unit, report, service, selector),
        count_known=count is not None,
        count_external=service.count_source not in {"Git", "Override"},
        made_from=unit.digest,
    )


def _service_status(
    unit: Unit, report: UnitReport, service: ServiceReport, selector: str
) -> dict[str, Any]:
    """`replicas` are Ready and warming ones up to the wanted count: no surge copies.

    A warming replica is capacity already bought; an autoscaler that saw only Ready ones
    would buy it again (seed 000).
    """
    counts = service.counts
    present = counts.ready + counts.warming
    starting = [
        {"node": place.node, "seconds": place.ready_in}
        for place in service.placements
        if place.node and place.ready_in is not None
    ]
    return {
        "replicas": present if counts.desired is None else min(present, counts.desired),
        "readyReplicas": counts.ready,
        "warmingReplicas": counts.warming,
        "selector": selector,
        "modelRevision": service.model_revision[:7],
        "nodes": [node for place in service.placements for node in place.nodes][:100],
        **({"starting": starting[:100]} if starting else {}),
        "sync": {"status": report.sync.value},
        "health": {"status": report.health.value},
        "lastAppliedRevision": report.applied_revision,
        "digest": report.digest,
        "countSource": service.count_source,
        "floor": _floor(unit, service),
        "conditions": _conditions(report.conditions),
    }


def _floor(unit: Unit, service: ServiceReport) -> int:
    """The least Ready replicas at Git's own count, whatever an override says."""
    spec = unit.spec
    if isinstance(spec, ModelService) and spec.replicas is not None:
        return spec.floor(spec.replicas)
    return service.counts.floor


def _conditions(conditions: Iterable[Condition]) -> list[dict[str, Any]]:
    return conditions_to_data(conditions)


def _short(revision: str) -> str:
    """`main@9be0a17` of `main@sha1:9be0a17c…`."""
    ref, _, commit = revision.partition("@sha1:")
    return f"{ref}@{commit[:7]}" if commit else revision


def _mirror(
    identity: Identity,
    desired: Desired,
    kind: str,
    namespace: str,
    name: str,
    source: str,
    spec: dict[str, Any],
    status: dict[str, Any],
    *,
    count_known: bool = True,
    count_external: bool = False,
    made_from: str = "",
) -> Mirror:
    annotations = {FLEET_ID: identity.fleet_id}
    if source:
        annotations[SOURCE] = source
    head = {"apiVersion": API_VERSION, "kind": kind}
    place = {"name": name, "namespace": namespace}
    manifest = {
        **head,
        "metadata": {
            **place,
            "labels": {FLEET_LABEL: desired.fleet.name, MANAGED_BY: "stoker"},
            "annotations": annotations,
        },
        "spec": spec,
    }
    mark = digest([manifest, status])[:16]
    return Mirror(
        kind=kind,
        namespace=namespace,
        name=name,
        digest=mark,
        manifest=manifest,
        status={**head, "metadata": place, "status": {**status, "observedDigest": mark}},
        count_known=count_known,
        count_external=count_external,
        made_from=made_from,
    )
