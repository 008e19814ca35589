"""Build stage inputs that show only what a test is about; everything else has a plain default.

`from builders import a_node, a_service, a_unit, a_desired, a_snapshot, a_placement, a_replica`
The default world: one pool `l4` (label pool=l4), services of one GPU in namespace `llm`, rev
`aaaaaaaa`, nodes of 8 GPUs, the instant NOW_MS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from stoker.errors import Finding, SourceLocation
from stoker.model.fleet import (
    CapacityType,
    Desired,
    Fleet,
    FleetMode,
    ModelService,
    Pool,
    Unit,
)
from stoker.model.refs import SourceRevision, UnitRef
from stoker.model.shape import PodShape, Resources, Toleration, UnitShape
from stoker.model.snapshot import (
    DrainState,
    LivePlacement,
    Node,
    Notice,
    Replica,
    ReplicaPhase,
    ServiceState,
    Snapshot,
    Taint,
    WeightCopy,
)
from stoker.objects.names import deployment_name

NOW_MS = 1_764_000_000_000
GPU = "nvidia.com/gpu"
GIB = 1024**3
REV = "aaaaaaaa"
IMAGE = "registry.example/vllm@sha256:" + "0" * 64
MODEL = "hf://example/qwen-7b"
MODEL_REVISION = "a" * 40
CLUSTER_UID = "6a0c1f0e-0000-4000-8000-000000000000"
COMMIT = "9be0a17c5d2e8f4016ab73d90c1e5f2b48a6d7e3"


def a_ref(name: str = "qwen", namespace: str = "llm", kind: str = "ModelService") -> UnitRef:
    return UnitRef(kind, namespace, name)


def some_resources(
    gpus: int = 1, *, cpu: int = 1_000, memory: int = GIB, pods: int = 1
) -> Resources:
    extended = ((GPU, gpus),) if gpus else ()
    return Resources(cpu_millis=cpu, memory_bytes=memory, pods=pods, extended=extended)


def a_pool(name: str = "l4", **fields: Any) -> Pool:
    fields.setdefault("match_labels", (("pool", name),))
    return Pool(name=name, **fields)


def a_spot_pool(name: str = "spot", price: str = "0.30") -> Pool:
    return a_pool(name, capacity_type=CapacityType.SPOT, price_per_gpu_hour=price)


def a_node(
    name: str = "n1",
    *,
    gpus: int = 8,
    used: int = 0,
    pool: str = "l4",
    labels: Mapping[str, str] | None = None,
    cpu: int = 64_000,
    memory: int = 512 * GIB,
    pods: int = 110,
    weights: Iterable[str] = (),
    images: Iterable[str] = (),
    **fields: Any,
) -> Node:
    """A node; `used` GPUs are bound, each by a pod of the plainest shape.

    `weights` are model revisions of MODEL that it holds in full.
    """
    return Node(
        name=name,
        uid=fields.pop("uid", f"uid-{name}"),
        labels=tuple(sorted({"pool": pool, **(labels or {})}.items())),
        allocatable=Resources(cpu, memory, pods, ((GPU, gpus),)),
        used=fields.pop("in_use", Resources().plus(some_resources(), used)),
        weights=tuple(WeightCopy(MODEL, revision) for revision in weights),
        images=tuple(images),
        **fields,
    )


def a_taint(key: str, effect: str = "NoSchedule", value: str = "") -> Taint:
    return Taint(key, value, effect)


def a_toleration(key: str = "", operator: str = "Exists", **fields: str) -> Toleration:
    return Toleration(key=key, operator=operator, **fields)


def a_notice(seconds: int | None = 120, kind: str = "SpotNotice") -> Notice:
    """A notice given NOW_MS that leaves that many seconds; None: no deadline."""
    return Notice(kind, NOW_MS, None if seconds is None else NOW_MS + seconds * 1_000)


def a_service(**fields: Any) -> ModelService:
    defaults: dict[str, Any] = {
        "model_uri": MODEL,
        "model_revision": MODEL_REVISION,
        "served_names": ("qwen",),
        "engine_image": IMAGE,
        "gpu_count": 1,
        "pools": ("l4",),
        "model_size_bytes": 3_000_000_000,
    }
    return ModelService(**{**defaults, **fields})


def a_unit(name: str = "qwen", *, namespace: str = "llm", spec: Any = None, **fields: Any) -> Unit:
    """A ModelService unit; further fields are those of the service."""
    path = f"models/{name}.yaml"
    return Unit(
        ref=a_ref(name, namespace),
        spec=spec if spec is not None else a_service(**fields),
        location=SourceLocation(path, 1, 1),
        digest=f"digest-{name}",
        lines=(("spec.replicas", SourceLocation(path, 21, 3)),),
    )


def a_shape(
    unit: Unit | None = None, *, rev: str = REV, gpus: int | None = None, **fields: Any
) -> UnitShape:
    """The shape of a unit: as many GPUs as its spec says unless told otherwise."""
    unit = unit if unit is not None else a_unit()
    if "requests" not in fields:
        count = gpus if gpus is not None else getattr(unit.spec, "gpu_count", 1)
        fields["requests"] = some_resources(count)
    fields.setdefault("image", getattr(unit.spec, "engine_image", IMAGE))
    return UnitShape(unit.ref, rev, PodShape(**fields))


def some_shapes(desired: Desired, rev: str = REV) -> tuple[UnitShape, ...]:
    """A shape for each ModelService."""
    return tuple(
        a_shape(unit, rev=rev) for unit in desired.units if isinstance(unit.spec, ModelService)
    )


def a_fleet(*pools: Pool, name: str = "prod-eu", **fields: Any) -> Fleet:
    return Fleet(
        name=name,
        cluster_uid=CLUSTER_UID,
        mode=fields.pop("mode", FleetMode.CORRECT),
        location=SourceLocation(f"clusters/{name}/fleet.yaml", 1, 1),
        pools=pools or (a_pool(),),
        **fields,
    )


def a_desired(
    *units: Unit,
    pools: Iterable[Pool] = (),
    fleet: Fleet | None = None,
    broken: Iterable[UnitRef] = (),
    findings: Iterable[Finding] = (),
    **fields: Any,
) -> Desired:
    return Desired(
        revision=SourceRevision("main", COMMIT),
        fleet=fleet if fleet is not None else a_fleet(*pools),
        units=tuple(sorted(units, key=lambda unit: unit.ref)),
        broken=tuple(sorted(broken)),
        findings=tuple(findings),
        **fields,
    )


def a_replica(
    name: str = "pod-1",
    node: str = "n1",
    phase: ReplicaPhase | str = ReplicaPhase.READY,
    *,
    draining_for: int | None = None,
    in_flight: int | None = 0,
    age: int = 3_600,
    **fields: Any,
) -> Replica:
    """A pod, Ready unless told otherwise; ages and drains are in seconds before NOW_MS."""
    draining = draining_for is not None
    return Replica(
        name=name,
        uid=f"uid-{name}",
        node=node,
        phase=ReplicaPhase(phase),
        since_ms=NOW_MS - age * 1_000,
        created_ms=fields.pop("created_ms", NOW_MS - age * 1_000),
        traffic=fields.pop("traffic", not draining),
        drain=DrainState(NOW_MS - (draining_for or 0) * 1_000, in_flight) if draining else None,
        **fields,
    )


def a_placement(
    node: str = "n1",
    *pods: Replica,
    service: str = "qwen",
    rev: str = REV,
    replicas: int | None = None,
    **fields: Any,
) -> LivePlacement:
    """A live Deployment of a service on a node (mode Scheduler: an empty node).

    Without pods: one Ready pod on that node, or none if `replicas` is 0.
    """
    name = fields.pop("name", deployment_name(service, node, rev))
    if not pods and replicas is None:
        pods = (a_replica(f"{name}-x", node or "n1"),)
    return LivePlacement(
        name=name,
        uid=f"uid-{name}",
        rev=rev,
        node=node,
        node_uid=f"uid-{node}" if node else "",
        replicas=len(pods) if replicas is None else replicas,
        pods=tuple(sorted(pods, key=lambda pod: pod.name)),
        **fields,
    )


def a_state(*placements: LivePlacement, name: str = "qwen", namespace: str = "llm") -> ServiceState:
    return ServiceState(
        a_ref(name, namespace), tuple(sorted(placements, key=lambda placement: placement.name))
    )


def a_snapshot(
    *nodes: Node,
    services: Iterable[ServiceState] = (),
    unknown: Mapping[str, str] | None = None,
    count_pods: bool = True,
) -> Snapshot:
    """A snapshot. Bound pods of `services` are added to the use of their nodes, one GPU

    each (or what their Deployment's `requests` say), unless `count_pods` is off.
    """
    states = tuple(sorted(services, key=lambda state: state.ref))
    taken: dict[str, Resources] = {}
    for state in states if count_pods else ():
        for placement in state.placements:
            for pod in placement.pods:
                requests = placement.requests or some_resources()
                taken[pod.node] = taken.get(pod.node, Resources()).plus(requests)
    return Snapshot(
        taken_at_ms=NOW_MS,
        cluster_uid=CLUSTER_UID,
        nodes=tuple(
            sorted(
                (_with_use(node, taken.get(node.name, Resources())) for node in nodes),
                key=lambda node: node.name,
            )
        ),
        services=states,
        unknown=tuple(sorted((unknown or {}).items())),
    )


def _with_use(node: Node, more: Resources) -> Node:
    return replace(node, used=node.used.plus(more))
