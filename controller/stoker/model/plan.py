"""What decide answers: placements, counts, the transition to them, and why.

Everything is sorted, so that plans compare, hash and print the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stoker.model.fleet import PlacementMode
from stoker.model.prefetch import Prefetch
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.scale_verdict import ScaleVerdict
from stoker.model.start_samples import NO_STARTS, Starts
from stoker.model.workload import workload_ref

__all__ = [
    "Attempt",
    "CountReason",
    "Hold",
    "Plan",
    "Placement",
    "Readiness",
    "RetireStage",
    "Retirement",
    "ServiceDecision",
    "SlowStart",
    "WarmthClass",
]


class WarmthClass(StrEnum):
    """Warmth in a word, for people; decide ranks by estimated time to Ready."""

    SERVING = "Serving"
    WARM = "Warm"
    WARMING = "Warming"
    COLD = "Cold"


@dataclass(frozen=True, slots=True)
class Readiness:
    """Estimated time to Ready at one place, in ms; `prior` says it is not yet learned."""

    warmth: WarmthClass
    p50_ms: int
    p90_ms: int
    prior: bool = True
    facts: str = ""
    samples: int = 0
    """Starts of this fleet that it is learned from; 0 for a prior."""

    queued_ms: int = 0
    """Part of p50_ms: behind other starts that fetch from the same registry, hub or volume."""

    @property
    def told(self) -> str:
        """What the place holds and what the start waits for, for people."""
        if not self.queued_ms:
            return self.facts
        return f"{self.facts}, {-(-self.queued_ms // 1_000)}s behind other starts"

    @property
    def origin(self) -> str:
        """`prior` or `12 starts`, for people."""
        return "prior" if self.prior else f"{self.samples} starts"


@dataclass(frozen=True, slots=True)
class Placement:
    """`count` replicas of one rev on one node, as one Deployment called `name`.

    In mode Scheduler there is one, with empty node, node_uid and pool list `pool`.
    `exists` says that it already stands (its template is then frozen).
    """

    name: str
    rev: str
    node: str
    node_uid: str
    pool: str
    count: int
    exists: bool = False
    replaces: str = ""
    """Name of the Deployment it takes over from, when that one is retired for it."""
    readiness: Readiness | None = None
    size: int = 1
    """Pods of one replica; above 1 each is a group, and this a LeaderWorkerSet."""
    nodes: tuple[str, ...] = ()
    """Of a group: its nodes, the leader's (`node`) first; empty in mode Scheduler."""
    domain: str = ""
    """Of a group: the value of its topology label on all of them."""


class RetireStage(StrEnum):
    """The next thing to do with a leaving Deployment; each acts once, then is read back."""

    STOP_TRAFFIC = "StopTraffic"
    DRAIN = "Drain"
    SCALE_TO_ZERO = "ScaleToZero"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class Retirement:
    """A Deployment that leaves, and which of its pods this concerns now (sorted).

    `keep` is the count it keeps (0 = leaves whole; more when only surplus goes).
    STOP_TRAFFIC takes the traffic label off `pods`; DRAIN waits; SCALE_TO_ZERO sets
    replicas to `keep`; DELETE removes the Deployment (only when keep is 0 and no pod is left).
    """

    name: str
    uid: str
    stage: RetireStage
    reason: str
    pods: tuple[str, ...] = ()
    keep: int = 0
    grouped: bool = False
    """It is a LeaderWorkerSet; `pods` are its leaders."""

    def ref_in(self, namespace: str) -> ObjectRef:
        """The Deployment or LeaderWorkerSet that leaves."""
        return workload_ref(namespace, self.name, grouped=self.grouped)


@dataclass(frozen=True, slots=True)
class Hold:
    """Something wanted that does not happen now. `code` is from the published list."""

    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One node looked at: chosen, kept or rejected, and by which rule."""

    node: str
    pool: str
    verdict: str
    rule: str = ""
    readiness: Readiness | None = None


@dataclass(frozen=True, slots=True)
class CountReason:
    """Where the wanted count comes from: `Git`, `Capacity` or `Ratio` where it follows load, or an
    external owner by name.

    `refused` is an override that is not obeyed, with the reason; empty for none.
    """

    source: str
    detail: str = ""
    refused: str = ""


@dataclass(frozen=True, slots=True)
class SlowStart:
    """A kind of start of the service that takes longer than its coldStart.deadline allows.

    `p90_ms` is what nine of ten of its `samples` stayed within; `where` is the class of nodes
    (instance type or GPU), `told` what they held.
    """

    where: str
    told: str
    p90_ms: int
    samples: int


@dataclass(frozen=True, slots=True)
class ServiceDecision:
    """Everything decided about one ModelService.

    `replicas` is the wanted count, None when unknown (then nothing changes). The
    Deployments of the service after this pass are `placements` (written) and the names
    in `retirements` (leaving) and `untouched` (left exactly as they are). `rejected`
    counts nodes by rule, most first.
    """

    ref: UnitRef
    mode: PlacementMode
    rev: str
    replicas: int | None
    count: CountReason
    ready: int = 0
    warming: int = 0
    floor: int = 0
    placements: tuple[Placement, ...] = ()
    retirements: tuple[Retirement, ...] = ()
    untouched: tuple[str, ...] = ()
    holds: tuple[Hold, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    rejected: tuple[tuple[str, int], ...] = ()
    updating: bool = False
    """Replicas of an older rev still stand: the service is on its way to `rev`."""
    slow_start: SlowStart | None = None
    """The slowest kind that was found to take longer than the deadline; None for none."""
    prefetches: tuple[Prefetch, ...] = ()
    """Fetches ahead of a start on further nodes, by name: to make, standing, and over."""
    groups: tuple[str, ...] = ()
    """Which of the names are LeaderWorkerSets, sorted; the others are Deployments."""
    size: int = 1
    """Pods of one replica."""
    scale: ScaleVerdict | None = None
    """What measured load asks for; None where the count does not follow it."""
    coldest: tuple[str, ...] = ()
    """Mode Scheduler: pods that the lower count should take, the coldest first."""

    def workload_ref(self, name: str) -> ObjectRef:
        """The object of that name."""
        return workload_ref(self.ref.namespace, name, grouped=name in self.groups)

    @property
    def deployment_names(self) -> tuple[str, ...]:
        """Every Deployment name that must not be pruned, sorted."""
        return tuple(
            sorted(
                {p.name for p in self.placements}
                | {r.name for r in self.retirements}
                | set(self.untouched)
            )
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """One answer of decide, sorted by unit. `wake_at_ms` is the next instant at which
    the answer may change although nothing else does; None = never.
    """

    now_ms: int
    decisions: tuple[ServiceDecision, ...] = ()
    wake_at_ms: int | None = None
    history: tuple[tuple[UnitRef, str], ...] = field(default=())
    starts: Starts = NO_STARTS

    @property
    def prefetches(self) -> tuple[Prefetch, ...]:
        """All fetches ahead of starts, service by service."""
        return tuple(each for decision in self.decisions for each in decision.prefetches)

    def decision(self, ref: UnitRef) -> ServiceDecision | None:
        """The decision about that unit, if it is a ModelService that could be decided."""
        return next((d for d in self.decisions if d.ref == ref), None)
