"""The ModelService file: its schema. service.py converts it and checks across fields.

Fields of the design that are not obeyed yet are not here; refused.py names them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from stoker.source.schema import (
    ApiVersion,
    Cpu,
    Duration,
    LabelName,
    Line,
    SizeBytes,
    SizeText,
    Strict,
    UnitMetadata,
)
from stoker.source.schema_flow import FlowSpec
from stoker.source.schema_groups import GroupTopologyBlock, ParallelismBlock
from stoker.source.schema_moves import UpdateBlock
from stoker.source.schema_scaling import ScalingBlock

__all__ = ["ModelServiceFile", "ModelServiceSpec"]

_RESOURCE_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_TEMPLATE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$"
_ABSOLUTE_PATH = r"^/[^\x00-\x1f]*$"
_SECRET_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"  # noqa: S105 - a pattern
_POOL_NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
_SECRET_KEY = r"^[-._a-zA-Z0-9]+$"  # noqa: S105 - a pattern

Positive = Annotated[int, Field(ge=1)]


class TokenBlock(Strict):
    """One key of a Secret in the service's namespace."""

    name: Annotated[str, Field(pattern=_SECRET_NAME, max_length=253)]
    """Name of the Secret."""
    key: Annotated[str, Field(pattern=_SECRET_KEY, max_length=253)]
    """Key in it."""


class ModelBlock(Strict):
    """Which weights are served."""

    uri: str
    """Where the weights come from, with scheme: hf://organisation/name."""
    revision: Line
    """Exact revision of the weights; for hf:// a commit of 40 hex digits."""
    size: SizeBytes | None = None
    """Size of the weights; estimates of cold starts use it."""
    served_names: list[Line] = Field(default_factory=list)
    """Names that clients ask for; without it the name of the service."""
    token_secret_ref: TokenBlock | None = None
    """Token for downloading the weights."""


class EngineBlock(Strict):
    """The inference engine."""

    type: Literal["vllm"] = "vllm"
    """Which engine."""
    version: Line | None = None
    """Version of the engine, as text: "0.28"."""
    image: Line
    """Container image, best with a digest."""
    args: list[str] = Field(default_factory=list)
    """Further arguments of the engine, each as text."""
    cuda_graphs: Literal["Skip", "Capture"] = "Skip"
    """Skip starts faster, Capture serves faster."""


class GpuBlock(Strict):
    """The GPUs of one replica."""

    count: Positive
    """How many GPUs one replica takes; of a group each of its pods."""
    resource_name: Annotated[str, Field(pattern=_RESOURCE_NAME)] = "nvidia.com/gpu"
    """Extended resource that counts them."""
    min_memory: SizeBytes | None = None
    """Least memory of one GPU."""
    products: list[Line] = Field(default_factory=list)
    """GPU products that will do (label nvidia.com/gpu.product); without it any."""


class RequestsBlock(Strict):
    """What one replica asks of its node beside GPUs."""

    cpu: Cpu | None = None
    """Cores."""
    memory: SizeText | None = None
    """Memory."""


class ResourcesBlock(Strict):
    """Cores, memory and shared memory of one replica."""

    requests: RequestsBlock = Field(default_factory=RequestsBlock)
    """What one replica asks of its node beside GPUs."""
    shm: SizeBytes | None = None
    """Size of /dev/shm, which counts as memory."""


class PoolRefBlock(Strict):
    """A pool of the Fleet."""

    name: LabelName
    """Name of the pool."""
    base: Annotated[int, Field(ge=0)] = 0
    """So many replicas belong there before any other pool is used."""


class SpotBlock(Strict):
    """Bounds on replicas in pools of capacityType Spot."""

    max_percent: Annotated[int, Field(ge=0, le=100)]
    """Most of the wanted replicas that may stand on spot, rounded down; held during moves."""


class SpreadBlock(Strict):
    """How evenly replicas are spread over the values of a node label."""

    key: Annotated[str, Field(pattern=_LABEL_KEY, max_length=317)]
    """Label of nodes; a node without it takes no replica."""
    max_skew: Positive = 1
    """Most replicas that one value may have more than the emptiest."""


class PlacementBlock(Strict):
    """Where replicas run."""

    mode: Literal["Nodes", "Scheduler"] = "Nodes"
    """Nodes: one Deployment a node. Scheduler: one Deployment, only the count is decided."""
    order: Literal["ReadyPoolPack", "BinPack", "Spread", "WarmthFirst", "EfficiencyAware"] = (
        "ReadyPoolPack"
    )
    """Which of the nodes that fit is best, in mode Nodes."""
    signal_max_age: Duration | None = None
    """Older hit rates and tokens per joule of nodes count as absent, for EfficiencyAware."""
    pools: list[PoolRefBlock] = Field(default_factory=list)
    """Pools that may be used, best first; without it all of the Fleet's, in their order."""
    spot: SpotBlock | None = None
    """Bounds on replicas in pools of capacityType Spot; without it any number."""
    topology_spread: SpreadBlock | None = None
    """How evenly replicas are spread over the values of a node label."""
    group_topology: GroupTopologyBlock = Field(default_factory=GroupTopologyBlock)
    """What the nodes of a group have in common, for parallelism.nodes above 1."""
    reclaim: Literal["Never", "LowerPriority"] = "Never"
    """LowerPriority: where no place is free, services of lower priority give room, down to minReady."""
    when_full: Literal["Hold", "Unpinned"] = "Hold"
    """What happens to a replica that fits nowhere: it waits, or starts on any node of a pool, so that a
    node autoscaler adds one."""


class PrefetchBlock(Strict):
    """Fetching image and weights before a replica starts."""

    nodes: Annotated[int, Field(ge=0, le=64)] = 0
    """On how many of the next-best nodes; 0 fetches nothing ahead."""


class CacheBlock(Strict):
    """Where weights are kept between starts."""

    type: Literal["None", "HostPath", "PVC", "Stream", "Image"] = "None"
    """None downloads at each start, HostPath keeps per node, PVC shares one claim, Stream reads
    from object storage at each start, Image has them in an image."""
    path: Annotated[str | None, Field(pattern=_ABSOLUTE_PATH)] = None
    """Folder of the node, for HostPath."""
    claim: Annotated[str | None, Field(pattern=_SECRET_NAME, max_length=253)] = None
    """Name of the PersistentVolumeClaim, for PVC."""
    image: Line | None = None
    """Image or OCI artifact with the weights, mounted at the folder of model.uri, for Image;
    without it they are in the engine's image."""
    max_size: SizeBytes | None = None
    """Most that all weights in the folder may take, for HostPath; kept by the node reporter."""
    root_disk: Literal["Refuse", "Allow"] | None = None
    """Whether the folder may lie on the node's root disk, for HostPath; Refuse where `maxSize` is
    given or vllm/v2 renders it, else nobody looks."""
    prefetch: PrefetchBlock = Field(default_factory=PrefetchBlock)
    """Fetching image and weights before a replica starts, in mode Nodes."""


class ColdStartBlock(Strict):
    """What a start may take."""

    deadline: Duration = 1_200_000
    """Time from Pending to Ready after which a start counts as stuck."""


class DrainBlock(Strict):
    """How a replica leaves."""

    endpoint_sync: Duration = 15_000
    """Wait after it was taken out of the Service, until proxies have noticed."""
    max: Duration = 600_000
    """Longest wait for running requests."""
    shutdown: Duration = 60_000
    """Time the engine gets to stop."""


class DisruptionBlock(Strict):
    """What voluntary changes may cost."""

    min_ready: Annotated[int, Field(ge=0)] | None = None
    """Least Ready replicas; without it replicas - 1, at least 1."""
    max_concurrent_moves: Positive = 1
    """Most replicas in motion at once."""
    on_notice: Literal["FinishInFlight", "HardKill"] = "FinishInFlight"
    """On a node that goes away: take no more requests in time to finish those in flight, or serve
    to the end and lose them."""


class ServicePortBlock(Strict):
    """The Kubernetes Service."""

    port: Annotated[int, Field(ge=1, le=65535)] = 8000
    """Its port."""


class EndpointPickerBlock(Strict):
    """Who chooses a pod of the InferencePool for each request."""

    service: Annotated[str, Field(pattern=_POOL_NAME, max_length=63)] | None = None
    """Its Service; without it the name of the pool with -epp."""
    port: Annotated[int, Field(ge=1, le=65535)] = 9002
    """Its port."""
    failure_mode: Literal["FailClose", "FailOpen"] = "FailClose"
    """Refuse requests while it is away, or send them to any pod."""


class ExposeBlock(Strict):
    """How clients reach the replicas."""

    service: ServicePortBlock = Field(default_factory=ServicePortBlock)
    """The Kubernetes Service."""
    inference_pool: Annotated[str, Field(pattern=_POOL_NAME, max_length=63)] | None = None
    """Name of an InferencePool (inference.networking.k8s.io/v1) with the same pods."""
    endpoint_picker: EndpointPickerBlock = Field(default_factory=EndpointPickerBlock)
    """Who chooses a pod of the InferencePool for each request."""


class RenderBlock(Strict):
    """What manifests are made from."""

    template: Annotated[str, Field(pattern=_TEMPLATE_NAME)] = "vllm/v1"
    """Name of a shipped or own template."""


class PodTemplateBlock(Strict):
    """A strategic merge patch on the pod template; the main container is `engine`."""

    metadata: dict[str, Any] | None = None
    """Labels and annotations."""
    spec: dict[str, Any] | None = None
    """Pod spec."""


class AdoptBlock(Strict):
    """An existing workload that becomes the service's own; only in placement.mode Scheduler."""

    kind: Literal["Deployment"] = "Deployment"
    """Kind of the workload."""
    name: Annotated[str, Field(pattern=_SECRET_NAME, max_length=253)]
    """Its name, in the service's namespace. Name, selector and pod template stay as they are."""


class ModelServiceSpec(FlowSpec):
    """What the service is."""

    model: ModelBlock
    """Which weights are served."""
    engine: EngineBlock
    """The inference engine."""
    gpu: GpuBlock
    """The GPUs of one replica."""
    parallelism: ParallelismBlock | None = None
    """How one replica is spread over its GPUs; without it tensor parallel over all."""
    resources: ResourcesBlock = Field(default_factory=ResourcesBlock)
    """Cores, memory and shared memory of one replica."""
    priority: Annotated[int, Field(ge=-1_000_000_000, le=1_000_000_000)] = 0
    """Services of higher priority are placed first; `placement.reclaim` says whether they take room."""
    replicas: Annotated[int, Field(ge=0)] | None = None
    """How many replicas; 1 without this and `scaling`."""
    scaling: ScalingBlock | None = None
    """Who decides the count of replicas, and by what; instead of `replicas`."""
    placement: PlacementBlock = Field(default_factory=PlacementBlock)
    """Where replicas run."""
    cache: CacheBlock = Field(default_factory=CacheBlock)
    """Where weights are kept between starts."""
    cold_start: ColdStartBlock = Field(default_factory=ColdStartBlock)
    """What a start may take."""
    drain: DrainBlock = Field(default_factory=DrainBlock)
    """How a replica leaves."""
    disruption: DisruptionBlock = Field(default_factory=DisruptionBlock)
    """What voluntary changes may cost."""
    update: UpdateBlock = Field(default_factory=UpdateBlock)
    """How a new rev comes, in placement.mode Nodes."""
    expose: ExposeBlock = Field(default_factory=ExposeBlock)
    """How clients reach the replicas."""
    render: RenderBlock = Field(default_factory=RenderBlock)
    """What manifests are made from."""
    pod_template: PodTemplateBlock = Field(default_factory=PodTemplateBlock)
    """A strategic merge patch on the pod template."""
    adopt: AdoptBlock | None = None
    """An existing workload that becomes the service's own, without a restart."""


class ModelServiceFile(Strict):
    """One model, served by replicas."""

    api_version: ApiVersion
    """Always stoker.dev/v1alpha1."""
    kind: Literal["ModelService"]
    """Always ModelService."""
    metadata: UnitMetadata
    """Name and namespace."""
    spec: ModelServiceSpec
    """What the service is."""
