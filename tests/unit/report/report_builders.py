"""Builders for tests of report: a pass in which everything stands, unless told otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stoker.errors import Finding, Severity, SourceLocation
from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.codec import digest
from stoker.model.fleet import (
    Bundle,
    Desired,
    Fleet,
    FleetMode,
    ModelService,
    PlacementMode,
    Pool,
    Unit,
)
from stoker.model.live import LiveObject
from stoker.model.outcome import ObjectOutcome, PassOutcome, Result, UnitOutcome
from stoker.model.plan import CountReason, Hold, Placement, Plan, ServiceDecision
from stoker.model.refs import ObjectRef, SourceRevision, UnitRef
from stoker.model.shape import Resources
from stoker.model.snapshot import LivePlacement, Node, Replica, ReplicaPhase, ServiceState, Snapshot
from stoker.report.inputs import Identity, ReportInputs

NOW = 1_795_921_502_000
"""2026-11-29T03:05:02Z."""
COMMIT = "9be0a17c5d2e8f4016ab73d90c1e5f2b48a6d7e3"
LATER_COMMIT = "4f1c2d9aa0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5"
QWEN = UnitRef("ModelService", "llm", "qwen-7b")
GATEWAY = UnitRef("Bundle", "llm", "gateway")

IDENTITY = Identity(
    version="0.1.0",
    fleet_id="c0ffee01",
    cluster_uid="6a0c1f0e-5c0b-4a57-9a53-0d7c1f6f22e1",
    source_ref="main",
    source_path="clusters/prod-eu/fleet.yaml",
    fleet_name="prod-eu",
)


def revision(commit: str = COMMIT) -> SourceRevision:
    return SourceRevision("main", commit)


def fleet(**changes: Any) -> Fleet:
    return Fleet(
        **{
            "name": "prod-eu",
            "cluster_uid": IDENTITY.cluster_uid,
            "mode": FleetMode.CORRECT,
            "location": SourceLocation("clusters/prod-eu/fleet.yaml", 1, 1),
            "pools": (Pool("l4-od", (("pool", "l4"),)),),
            **changes,
        }
    )


def service(ref: UnitRef = QWEN, *, replicas: int | None = 4, digest: str = "d1", line: int = 21):
    spec = ModelService(
        model_uri="hf://Qwen/Qwen2.5-7B-Instruct",
        model_revision="bb46c15f0000000000000000000000000000abcd",
        served_names=(ref.name,),
        engine_image="registry.invalid/vllm@sha256:00",
        gpu_count=1,
        replicas=replicas,
    )
    path = f"models/{ref.name}.yaml"
    lines = (("spec.replicas", SourceLocation(path, line, 3)),)
    return Unit(ref, spec, SourceLocation(path, 1, 1), digest * 32, lines)


def bundle(ref: UnitRef = GATEWAY, digest: str = "b1"):
    return Unit(ref, Bundle(), SourceLocation("bundles/gateway/bundle.yaml", 1, 1), digest * 32)


def desired(*units: Unit, commit: str = COMMIT, **changes: Any) -> Desired:
    ordered = tuple(sorted(units, key=lambda unit: unit.ref))
    return Desired(revision(commit), changes.pop("fleet", fleet()), ordered, **changes)


def pod(node: str, phase: ReplicaPhase = ReplicaPhase.READY, reason: str = "") -> Replica:
    return Replica(f"pod-{node}", f"{node}-pod-uid", node, phase, NOW, NOW, reason=reason)


def placed(ref: UnitRef, node: str, phase: ReplicaPhase = ReplicaPhase.READY, reason: str = ""):
    name = f"{ref.name}-{node}"
    return LivePlacement(name, f"uid-{name}", "rev1", node, "", 1, (pod(node, phase, reason),))


def state(ref: UnitRef, **nodes: ReplicaPhase) -> ServiceState:
    """`l4_od_1=READY`: one replica on node l4-od-1."""
    places = [placed(ref, node.replace("_", "-"), phase) for node, phase in nodes.items()]
    return ServiceState(ref, tuple(sorted(places, key=lambda p: p.name)))


def ready_on(ref: UnitRef, count: int) -> ServiceState:
    return state(ref, **{f"l4_od_{n}": ReplicaPhase.READY for n in range(1, count + 1)})


def node(name: str, **changes: Any) -> Node:
    one = Resources(extended=(("nvidia.com/gpu", 1),))
    settings = {"labels": (("pool", "l4"),), "allocatable": one, "used": one, **changes}
    return Node(name, f"uid-{name}", **settings)


def snapshot(*services: ServiceState, nodes: tuple[Node, ...] = (), **changes: Any) -> Snapshot:
    return Snapshot(NOW, IDENTITY.cluster_uid, nodes, services, **changes)


def decision(ref: UnitRef = QWEN, *, want: int | None = 4, ready: int = 4, **changes: Any):
    places = tuple(
        Placement(f"{ref.name}-l4-od-{n}", "rev1", f"l4-od-{n}", "", "l4-od", 1)
        for n in range(1, ready + changes.get("warming", 0) + 1)
    )
    settings: dict[str, Any] = {
        "mode": PlacementMode.NODES,
        "rev": "rev1",
        "replicas": want,
        "count": CountReason("Git", "spec.replicas"),
        "ready": ready,
        "floor": max(0, (want or 0) - 1),
        "placements": places,
        **changes,
    }
    return ServiceDecision(ref, **settings)


def plan(*decisions: ServiceDecision) -> Plan:
    return Plan(NOW, tuple(sorted(decisions, key=lambda d: d.ref)))


def object_ref(name: str = "gateway", kind: str = "ConfigMap") -> ObjectRef:
    return ObjectRef("apps" if kind in {"Deployment", "StatefulSet"} else "", kind, "llm", name)


def changes_of(ref: UnitRef, *changes: Change, **settings: Any) -> UnitChanges:
    return UnitChanges(
        ref, changes or (Change(object_ref(ref.name), Action.UNCHANGED),), **settings
    )


def change_set(*units: UnitChanges, prune_hold: str = "") -> ChangeSet:
    return ChangeSet(tuple(sorted(units, key=lambda unit: unit.unit)), prune_hold)


def outcome(ref: UnitRef, *objects: ObjectOutcome, **settings: Any) -> PassOutcome:
    return PassOutcome((UnitOutcome(ref, objects, **settings),))


def failed(ref: ObjectRef, code: str = "invalid-object", message: str = "is wrong"):
    return ObjectOutcome(ref, Result.FAILED, code, message)


def finding(code: str, unit: UnitRef | None = None, **changes: Any) -> Finding:
    settings: dict[str, Any] = {
        "location": SourceLocation("models/qwen-7b.yaml", 9, 5),
        "message": "is wrong",
        "severity": Severity.ERROR,
        "unit": str(unit) if unit else "",
        **changes,
    }
    return Finding(code=code, **settings)


class Live:
    """A LiveView of a few objects; everything else is known to be absent, or unknown."""

    def __init__(self, *bodies: dict[str, Any], unknown: tuple[ObjectRef, ...] = ()) -> None:
        self._bodies = {(b["kind"], b["metadata"]["name"]): b for b in bodies}
        self._unknown = unknown

    def get(self, ref: ObjectRef) -> LiveObject | None:
        body = self._bodies.get((ref.kind, ref.name))
        if body is None:
            return None
        return LiveObject(ref, f"uid-{ref.key}", digest(body)[:8], "", body)

    def known(self, ref: ObjectRef) -> bool:
        return ref not in self._unknown

    def owned(self, fleet_id: str) -> tuple[LiveObject, ...]:
        return ()

    def why_unknown(self, ref: ObjectRef) -> str:
        return "forbidden"

    def has_kind(self, ref: ObjectRef) -> bool | None:
        return True

    def is_namespaced(self, ref: ObjectRef) -> bool:
        return True

    def namespace_phase(self, name: str) -> str:
        return "Active"


def live_object(name: str = "gateway", kind: str = "ConfigMap", **parts: Any) -> dict[str, Any]:
    api_version = "apps/v1" if kind in {"Deployment", "StatefulSet"} else "v1"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **parts}


def inputs(**changes: Any) -> ReportInputs:
    """A pass over one ModelService with 4 of 4 replicas Ready."""
    settings: dict[str, Any] = {
        "identity": IDENTITY,
        "now_ms": NOW,
        "desired": desired(service()),
        "snapshot": snapshot(ready_on(QWEN, 4)),
        "plan": plan(decision()),
        "changes": change_set(changes_of(QWEN)),
        "live": Live(live_object("qwen-7b")),
        **changes,
    }
    return ReportInputs(**settings)


def next_pass(report_inputs: ReportInputs, memory: Any, *, after_ms: int = 10_000, **changes: Any):
    """The pass after one: later, with its memory, and what changed since."""
    later = report_inputs.now_ms + after_ms
    return replace(report_inputs, now_ms=later, previous=memory, **changes)


HELD = Hold("held-no-capacity", "no node has a free GPU", "first free GPU on l4-od")


def said(result, kind, ref=None):
    """Status and reason of a condition of the fleet or of a unit."""
    if ref is None:
        conditions = result.conditions
    else:
        conditions = result.memory.units[ref].conditions
    condition = next(c for c in conditions if c.type == kind)
    return condition.status, condition.reason


def counts(result, ref=QWEN):
    service_report = result.memory.units[ref].service
    assert service_report is not None
    return service_report.counts


def message(result, kind, ref=QWEN):
    condition = result.memory.units[ref].condition(kind)
    assert condition is not None
    return condition.message


def words(result, ref=QWEN):
    return result.memory.units[ref].sync, result.memory.units[ref].health


def status(result):
    return result.documents[0].data


def three_of_four(**changes):
    return inputs(
        snapshot=snapshot(ready_on(QWEN, 3)),
        plan=plan(decision(ready=3, holds=(HELD,))),
        **changes,
    )


def bundle_pass(*changes, live=None, **settings):
    return inputs(
        desired=desired(bundle()),
        plan=plan(),
        changes=change_set(changes_of(GATEWAY, *changes)),
        live=live or Live(live_object("gateway")),
        **settings,
    )
