"""Observed state at one instant, made by observe and read by decide and report.

What could not be read is absent and named in `unknown`; it is never empty or zero.
Times are integer milliseconds since the epoch. Collections are sorted by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stoker.model.flow import Override, Suspension, UnreadOverride, WhenFullOverride
from stoker.model.prefetch import LivePrefetch
from stoker.model.readings import ServiceReadings
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources
from stoker.model.workload import nodes_told

__all__ = [
    "DrainState",
    "LivePlacement",
    "Node",
    "NodeWarmth",
    "Notice",
    "Refusal",
    "Replica",
    "ReplicaPhase",
    "ServiceState",
    "Signals",
    "Snapshot",
    "Taint",
    "WeightCopy",
    "Worker",
]


@dataclass(frozen=True, slots=True, order=True)
class Taint:
    """A node taint."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True, order=True)
class WeightCopy:
    """Weights that a node holds. Only a `complete` copy of the right revision is warm."""

    uri: str
    revision: str
    complete: bool = True


class NodeWarmth(StrEnum):
    """How ready a node says it is for a start, whatever the model (semantics 1.1)."""

    COLD = "Cold"
    WARMING = "Warming"
    WARM = "Warm"


@dataclass(frozen=True, slots=True)
class Signals:
    """What a reporter measured on a node. None is absent, which is neither zero nor Cold.

    Values are sane: finite, not negative, the hit rate at most 1. Instants are when hit rate
    and tokens per joule were observed; without one they have no age. `reported_at_ms` is when
    the reporter wrote last, the instant of the others.
    """

    warmth: NodeWarmth | None = None
    active_services: int | None = None
    gpu_utilization: float | None = None
    kv_hit_rate: float | None = None
    kv_hit_rate_at_ms: int | None = None
    tokens_per_joule: float | None = None
    tokens_per_joule_at_ms: int | None = None
    reported_at_ms: int | None = None
    requests_running: int | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """The node will go away. `deadline_ms` is None where the cloud names none.

    `vacates`: whoever drains it asks the disruption budgets and waits for them, so its replicas
    move as those of a cordoned node do.
    """

    kind: str
    at_ms: int
    deadline_ms: int | None = None
    vacates: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `used` sums the requests of every pod bound to it, terminating ones too.

    `gpu_unknown` says why its GPUs cannot be counted (DRA, MIG names, no device
    plugin yet); empty means they can. `images` are references and digests it holds.
    """

    name: str
    uid: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    cordoned: bool = False
    allocatable: Resources = field(default_factory=Resources)
    used: Resources = field(default_factory=Resources)
    gpu_unknown: str = ""
    images: tuple[str, ...] = ()
    weights: tuple[WeightCopy, ...] = ()
    notice: Notice | None = None
    signals: Signals = Signals()
    hint: str = ""
    """What says that the node may be taken back soon (`rebalance`); it may never come true."""

    @property
    def zone(self) -> str:
        """The node's zone label, or empty."""
        return dict(self.labels).get("topology.kubernetes.io/zone", "")


class ReplicaPhase(StrEnum):
    """Where a replica is on its way to Ready. Stuck counts as no capacity."""

    PENDING = "Pending"
    NODE_PROVISIONING = "NodeProvisioning"
    IMAGE_PULL = "ImagePull"
    STARTING = "Starting"
    READY = "Ready"
    STUCK = "Stuck"
    TERMINATING = "Terminating"

    @property
    def warming(self) -> bool:
        """Capacity bought that cannot serve yet."""
        return self in {
            ReplicaPhase.PENDING,
            ReplicaPhase.NODE_PROVISIONING,
            ReplicaPhase.IMAGE_PULL,
            ReplicaPhase.STARTING,
        }


@dataclass(frozen=True, slots=True)
class DrainState:
    """How far a leaving replica is, all of it read from the pod.

    `since_ms` is when its traffic label was taken off (our annotation); `in_flight` is
    running plus waiting requests, None when the engine did not answer (counts as busy).
    """

    since_ms: int
    in_flight: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Worker:
    """A pod of a group beside its leader. `node` is empty until it is bound."""

    name: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Replica:
    """One pod of a service, or one group: then the leader's, with the phase of the whole."""

    name: str
    uid: str
    node: str
    phase: ReplicaPhase
    since_ms: int
    created_ms: int
    restarts: int = 0
    reason: str = ""
    traffic: bool = True
    drain: DrainState | None = None
    scheduled_ms: int = 0
    """When it was bound; 0 for not yet, or not known."""
    started_ms: int = 0
    """When the present run of its engine began; 0 for not yet, or not known."""
    workers: tuple[Worker, ...] = ()
    """Of a group: those that stand, by name."""
    failed_node: str = ""
    """Of a stuck group: the node of the pod that is stuck."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes it is on, its leader's first; none before it is bound."""
        if not self.workers:
            return (self.node,) if self.node else ()
        return tuple(node for node in (self.node, *(w.node for w in self.workers)) if node)

    @property
    def blamed_node(self) -> str:
        """Where what is stuck runs."""
        return self.failed_node or self.node


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """The newest pod of a Deployment that a node refused or threw out, soon after it was made.

    The pod is over and its ReplicaSet has made the next one (kubernetes#108152).
    """

    node: str
    reason: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class LivePlacement:
    """One live Deployment of a service, with its pods sorted by name.

    In mode Nodes `node` and `node_uid` are the decided place; in mode Scheduler both
    are empty. `replicas` is spec.replicas. `externally_scaled` names whoever else owns
    the count (`HorizontalPodAutoscaler/x`), empty for nobody.
    """

    name: str
    uid: str
    rev: str
    node: str
    node_uid: str
    replicas: int
    pods: tuple[Replica, ...] = ()
    terminating: bool = False
    externally_scaled: str = ""
    requests: Resources | None = None
    """What one pod of its live template asks for; None when that was not read."""
    unsettled: bool = False
    """Its controller has not acted on the last write (status.observedGeneration behind), or
    counts pods (status.replicas + status.terminatingReplicas) that are not in `pods` yet."""
    refusals: tuple[Refusal, ...] = ()
    """One a node, sorted by node."""
    size: int = 1
    """Pods of one replica; above 1 each is a group, and this a LeaderWorkerSet."""
    nodes: tuple[str, ...] = ()
    """Of a group: the decided nodes, the leader's (`node`) first; empty in mode Scheduler."""
    domain: str = ""
    """Of a group: the value of its topology label on all of them."""

    @property
    def told(self) -> str:
        """Its decided node or nodes in one word; empty in mode Scheduler."""
        return nodes_told(self.nodes) or self.node

    def refusal_by(self, node: str) -> Refusal | None:
        """How that node refused a pod of it lately; None when it did not."""
        return next((each for each in self.refusals if each.node == node), None)

    @property
    def ready(self) -> int:
        """Ready pods that still take traffic."""
        return sum(1 for pod in self.pods if pod.phase is ReplicaPhase.READY and pod.traffic)

    @property
    def warming(self) -> int:
        """Pods on their way."""
        return sum(1 for pod in self.pods if pod.phase.warming)


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What stands of one ModelService, sorted by Deployment name."""

    ref: UnitRef
    placements: tuple[LivePlacement, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster as decide sees it.

    `unknown` maps what could not be read (`nodes`, `pods`, `deployments/llm`, …) to
    why. A service is absent from `services` when nothing of it stands.
    """

    taken_at_ms: int
    cluster_uid: str
    nodes: tuple[Node, ...] = ()
    services: tuple[ServiceState, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    suspensions: tuple[Suspension, ...] = ()
    """What people asked for by annotations on mirrors; lapsed ones may be among them."""
    overrides: tuple[Override, ...] = ()
    unread_overrides: tuple[UnreadOverride, ...] = ()
    prefetches: tuple[LivePrefetch, ...] = ()
    """Sorted by unit and name."""
    readings: tuple[ServiceReadings, ...] = ()
    """What was measured of services that scale, sorted by ref; one without is not measured."""
    when_full_overrides: tuple[WhenFullOverride, ...] = ()
    """Sorted by ref, as `overrides` are; lapsed ones may be among them."""

    def service(self, ref: UnitRef) -> ServiceState:
        """What stands of that service; an empty state when nothing does."""
        return next((s for s in self.services if s.ref == ref), ServiceState(ref))
