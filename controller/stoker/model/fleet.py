"""Desired state: what the fleet files say, after includes, defaults and patches.

Made by source, read by shape, decide, render and report. Enum values are spelled
as in the files. All durations are integer milliseconds, sizes integer bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stoker.errors import Finding, SourceLocation
from stoker.model.cache import Cache, CacheType
from stoker.model.flow import ChangeWindow, Flow, Held
from stoker.model.health_file import HealthCheck
from stoker.model.ignore_rule import IgnoreRule
from stoker.model.inference_pool import InferencePool
from stoker.model.limits import NO_LIMITS, PlacementLimits, Reclaim, WhenFull
from stoker.model.moves import FleetDisruption, OnNotice, Update
from stoker.model.prune import PruneSettings
from stoker.model.refs import SourceRevision, UnitRef
from stoker.model.scaling import MetricSource, Scaling, ScalingMode

__all__ = [
    "Blob",
    "Bundle",
    "Cache",
    "CacheType",
    "CapacityType",
    "CudaGraphs",
    "DeletionPolicy",
    "Desired",
    "Drain",
    "Fleet",
    "FleetMode",
    "ModelService",
    "Pin",
    "PlacementMode",
    "PlacementOrder",
    "Pool",
    "Requirement",
    "SecretKey",
    "SnapshotDetail",
    "StatusSettings",
    "Unit",
    "WhenFull",
]


class FleetMode(StrEnum):
    """Observe computes and reports everything and writes nothing but status."""

    OBSERVE = "Observe"
    CORRECT = "Correct"


class CapacityType(StrEnum):
    """What the nodes of a pool are."""

    ON_DEMAND = "OnDemand"
    SPOT = "Spot"


class Pin(StrEnum):
    """Whether the decided node is preferred (pods heal alone) or required (static pools)."""

    PREFERRED = "Preferred"
    REQUIRED = "Required"


class PlacementMode(StrEnum):
    """Nodes: one Deployment a node. Scheduler: one Deployment, only the count decided."""

    NODES = "Nodes"
    SCHEDULER = "Scheduler"


class PlacementOrder(StrEnum):
    """Which of the nodes that fit is best."""

    READY_POOL_PACK = "ReadyPoolPack"
    BIN_PACK = "BinPack"
    SPREAD = "Spread"
    WARMTH_FIRST = "WarmthFirst"
    EFFICIENCY_AWARE = "EfficiencyAware"

    @property
    def reads_signals(self) -> bool:
        """Whether it ranks nodes by what reporters measured."""
        return self in {PlacementOrder.WARMTH_FIRST, PlacementOrder.EFFICIENCY_AWARE}


class DeletionPolicy(StrEnum):
    """What happens to workloads when the fleet itself is removed."""

    ORPHAN = "Orphan"
    DELETE = "Delete"


class SnapshotDetail(StrEnum):
    """How much of the cluster the data ref records."""

    FULL = "Full"
    HASHED = "Hashed"
    NONE = "None"


class CudaGraphs(StrEnum):
    """Skip starts faster (vLLM's --enforce-eager), Capture serves faster."""

    SKIP = "Skip"
    CAPTURE = "Capture"


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One matchExpressions entry: operator In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """A class of nodes. A node belongs if all labels and expressions match."""

    name: str
    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[Requirement, ...] = ()
    capacity_type: CapacityType = CapacityType.ON_DEMAND
    price_per_gpu_hour: str | None = None
    pin: Pin = Pin.PREFERRED
    max_gpus: int | None = None
    """Most GPUs of all replicas in it; None: those that its nodes have."""


@dataclass(frozen=True, slots=True)
class StatusSettings:
    """Where and how often status goes back to Git. An empty branch means the default."""

    branch: str = ""
    flush_interval_ms: int = 60_000
    heartbeat_ms: int = 3_600_000
    snapshot: SnapshotDetail = SnapshotDetail.FULL


@dataclass(frozen=True, slots=True)
class Fleet:
    """The Fleet file."""

    name: str
    cluster_uid: str
    mode: FleetMode
    location: SourceLocation
    pools: tuple[Pool, ...] = ()
    prune: PruneSettings = field(default_factory=PruneSettings)
    status: StatusSettings = field(default_factory=StatusSettings)
    template_paths: tuple[str, ...] = ()
    ignore: tuple[IgnoreRule, ...] = ()
    deletion_policy: DeletionPolicy = DeletionPolicy.ORPHAN
    suspend: bool = False
    change_windows: tuple[ChangeWindow, ...] = ()
    disruption: FleetDisruption = field(default_factory=FleetDisruption)
    most_prefetches: int = 2
    """Prefetches under way at once, of all services."""
    metric_sources: tuple[MetricSource, ...] = ()
    max_gpus: int | None = None
    """Most GPUs of all replicas of the fleet; None: no bound."""

    @property
    def status_branch(self) -> str:
        """The branch that status is committed to, without refs/heads/."""
        return self.status.branch or f"stoker-status/{self.name}"


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One key of a Secret in the service's namespace."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Drain:
    """How a replica leaves: endpoints settle, requests finish, the engine stops."""

    endpoint_sync_ms: int = 15_000
    max_ms: int = 600_000
    shutdown_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class ModelService:
    """One model, served by replicas. Everything the file says, with defaults filled in.

    `replicas` is None exactly when `scaling_mode` is set. `pod_template` is a raw
    strategic-merge patch on the pod template.
    """

    model_uri: str
    model_revision: str
    served_names: tuple[str, ...]
    engine_image: str
    gpu_count: int
    model_size_bytes: int | None = None
    token_secret: SecretKey | None = None
    engine_type: str = "vllm"
    engine_version: str = ""
    engine_args: tuple[str, ...] = ()
    cuda_graphs: CudaGraphs = CudaGraphs.SKIP
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    nodes: int = 1
    """Nodes of one replica; above 1 it is a group, with a pod on each."""
    group_key: str = "topology.kubernetes.io/zone"
    """The node label that has one value on all nodes of a group."""
    gpu_resource: str = "nvidia.com/gpu"
    gpu_min_memory_bytes: int | None = None
    gpu_products: tuple[str, ...] = ()
    cpu_request: str = ""
    memory_request: str = ""
    shm_bytes: int | None = None
    replicas: int | None = 1
    scaling_mode: ScalingMode | None = None
    scaling: Scaling | None = None
    """Set exactly when the mode is Stoker."""
    placement_mode: PlacementMode = PlacementMode.NODES
    placement_order: PlacementOrder = PlacementOrder.READY_POOL_PACK
    signal_max_age_ms: int | None = None
    """Older hit rates and tokens per joule count as absent; None: of any age."""
    pools: tuple[str, ...] = ()
    limits: PlacementLimits = NO_LIMITS
    priority: int = 0
    reclaim: Reclaim = Reclaim.NEVER
    when_full: WhenFull = WhenFull.HOLD
    cache: Cache = field(default_factory=Cache)
    cold_start_deadline_ms: int = 1_200_000
    drain: Drain = field(default_factory=Drain)
    min_ready: int | None = None
    max_concurrent_moves: int = 1
    on_notice: OnNotice = OnNotice.FINISH_IN_FLIGHT
    update: Update = field(default_factory=Update)
    service_port: int = 8000
    inference_pool: InferencePool | None = None
    template: str = "vllm/v1"
    adopt: str = ""
    """Name of a Deployment that becomes the service's own; empty for one made for it."""
    pod_template: dict[str, Any] = field(default_factory=dict)

    def floor(self, replicas: int) -> int:
        """The least Ready replicas that any voluntary change may leave.

        Unset: replicas - 1, at least 1, and 0 only when replicas is 0.
        """
        if replicas == 0:
            return 0
        if self.min_ready is not None:
            return min(self.min_ready, replicas)
        return max(1, replicas - 1)


@dataclass(frozen=True, slots=True, order=True)
class Blob:
    """A file of the pinned commit: path from the repository root and Git object id."""

    path: str
    oid: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """Any other manifests as one unit.

    Exactly one of `manifests` (plain YAML files, in order) and `jinja` is filled;
    `values` go to the Jinja files.
    """

    manifests: tuple[Blob, ...] = ()
    jinja: tuple[Blob, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is applied, pruned, waited for and reported by itself.

    `digest` changes when anything the files say about this unit changes: its spec
    after defaults and patches, the ids of the blobs it names, and those of the fleet's own
    templates where it may use them. `lines` maps a dotted field path (`spec.replicas`) to
    its place in the file.
    """

    ref: UnitRef
    spec: ModelService | Bundle
    location: SourceLocation
    digest: str
    lines: tuple[tuple[str, SourceLocation], ...] = ()
    flow: Flow = field(default_factory=Flow)

    def line_of(self, path: str) -> SourceLocation:
        """Where a field stands, or the closest parent that has a place."""
        table = dict(self.lines)
        while path:
            if path in table:
                return table[path]
            path = path.rpartition(".")[0]
        return self.location


@dataclass(frozen=True, slots=True)
class Desired:
    """Everything one source revision wants. `units` are sorted by ref.

    `broken` names units whose files are wrong (as far as their names could be read):
    they are neither changed nor pruned. `unit_set_known` is False when some file could
    not be read well enough to know which units it holds: then nothing is pruned at all.
    `templates` are the user's template files, found before the shipped ones.
    """

    revision: SourceRevision
    fleet: Fleet
    units: tuple[Unit, ...]
    findings: tuple[Finding, ...] = ()
    broken: tuple[UnitRef, ...] = ()
    unit_set_known: bool = True
    templates: tuple[Blob, ...] = ()
    health: tuple[HealthCheck, ...] = ()
    """What the fleet's own health files say, one check a kind, by file and place in it."""
    allow_delete: tuple[str, ...] = ()
    """Arguments of `Stoker-Allow-Delete:` trailers of the commit: unit refs or `all`."""
    held: tuple[Held, ...] = ()
    """Units held in this pass, sorted by ref, each once; decided before everything else."""

    def unit(self, ref: UnitRef) -> Unit | None:
        """The unit of that name, if the files have one."""
        return next((unit for unit in self.units if unit.ref == ref), None)
