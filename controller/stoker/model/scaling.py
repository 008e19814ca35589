"""How many replicas a service may have and what its count follows: `spec.scaling` of its file.

Made by source, read by decide, signals and the simulator; defaults are filled in. Times are
integer milliseconds. A target or rate is finite and above zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

__all__ = [
    "Aggregate",
    "Algorithm",
    "CapacityPrior",
    "DecisionQuery",
    "Metric",
    "MetricQuery",
    "MetricSource",
    "MetricSourceType",
    "PrometheusQuery",
    "ScaleDown",
    "ScaleDownBehavior",
    "ScaleToZero",
    "Scaling",
    "ScalingMode",
    "ScheduledBounds",
    "ScrapeQuery",
    "Slo",
    "WakeSource",
    "ZeroPolicy",
]


class ScalingMode(StrEnum):
    """Stoker: the count follows load. External: somebody else owns the count of replicas."""

    STOKER = "Stoker"
    EXTERNAL = "External"


class Algorithm(StrEnum):
    """Which rule turns readings into a count (design section 5)."""

    CAPACITY = "Capacity"
    RATIO = "Ratio"
    """LLMScaler's rule to the letter (semantics 1.2)."""


class Aggregate(StrEnum):
    """How one value is made of the pods' values."""

    AVG = "avg"
    SUM = "sum"
    MAX = "max"
    MIN = "min"


class ScaleDownBehavior(StrEnum):
    """Which replicas leave first."""

    CACHE_AWARE = "CacheAware"
    NONE = "None"


class ZeroPolicy(StrEnum):
    """Whether a service may have no replica."""

    NEVER = "Never"
    BREAK_EVEN = "BreakEven"
    AFTER_IDLE = "AfterIdle"


class MetricSourceType(StrEnum):
    """What answers at a source's address."""

    PROMETHEUS = "prometheus"
    DECISION = "decision"
    SCRAPE = "scrape"
    """A metrics page that is no engine's: a router's or gateway's own."""


@dataclass(frozen=True, slots=True)
class MetricSource:
    """A server of the Fleet that is asked for readings. `header_secrets` are names of Secrets
    whose keys and values are sent as headers, in the controller's own namespace.
    """

    name: str
    type: MetricSourceType
    url: str
    header_secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScrapeQuery:
    """A metric of the engines themselves, summed over the engines in a pod, then aggregated; of
    a counter what it grows by a second, of a histogram its 95th percentile since the last look.

    With a `source` (of type scrape) it is read from that one page instead.
    """

    metric: str
    aggregate: Aggregate = Aggregate.AVG
    source: str = ""


@dataclass(frozen=True, slots=True)
class PrometheusQuery:
    """PromQL that gives one value; `$pods` in it stands for the service's own pods."""

    source: str
    query: str


@dataclass(frozen=True, slots=True)
class DecisionQuery:
    """The count of a decision server: absolute, never multiplied (semantics 1.2)."""

    source: str
    service_id: str
    namespace: str = ""
    path: str = "/decisions"


MetricQuery: TypeAlias = ScrapeQuery | PrometheusQuery | DecisionQuery


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing a count follows. `target` is the value a replica should have; None exactly for a
    decision server.
    """

    name: str
    query: MetricQuery
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Slo:
    """What clients are promised; None promises nothing."""

    ttft_p95_ms: int | None = None
    itl_p95_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CapacityPrior:
    """What one replica can do, as declared; what is learned stays within half and double of it."""

    prefill_tokens_per_second: float
    decode_tokens_per_second: float


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """How a count falls. `window_ms` None leaves it to the algorithm; `max_step` 0 is no bound.

    `deletion_cost` gives a value for each pod, the lowest leaves first.
    """

    window_ms: int | None = None
    max_step: int = 0
    behavior: ScaleDownBehavior = ScaleDownBehavior.CACHE_AWARE
    deletion_cost: PrometheusQuery | None = None


@dataclass(frozen=True, slots=True)
class WakeSource:
    """What says that somebody waits for a service without replicas.

    Any value above zero wakes. `hold_ms` is how long what it counts waits by itself (a gateway
    that queues); 0 is not known. Without a `query` it is the schedule that wakes.
    """

    name: str
    query: ScrapeQuery | PrometheusQuery | DecisionQuery | None
    hold_ms: int = 0


@dataclass(frozen=True, slots=True)
class ScaleToZero:
    """When the last replica may leave.

    `breach_cost` is what one client that had to wait costs, in the currency of the pools'
    prices; only for BREAK_EVEN.
    """

    policy: ZeroPolicy = ZeroPolicy.NEVER
    idle_ms: int = 600_000
    breach_cost: float = 0.0
    wake: tuple[WakeSource, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduledBounds:
    """Other bounds from each instant of a cron schedule on, for `duration_ms`."""

    name: str
    schedule: str
    duration_ms: int
    time_zone: str
    min_replicas: int | None = None
    max_replicas: int | None = None


@dataclass(frozen=True, slots=True)
class Scaling:
    """`spec.scaling` with mode Stoker. Replicas are groups where a replica has several nodes.

    `load` gives arrivals a second; without it they are estimated. `blind_for_ms` is how long
    nothing may be measurable at zero before one replica is started; None waits for ever with
    RATIO and takes the algorithm's own time with CAPACITY.
    """

    min_replicas: int
    max_replicas: int
    algorithm: Algorithm = Algorithm.CAPACITY
    interval_ms: int = 15_000
    metrics: tuple[Metric, ...] = ()
    load: PrometheusQuery | ScrapeQuery | None = None
    slo: Slo = Slo()
    capacity: CapacityPrior | None = None
    headroom_percent: int = 20
    drain_window_ms: int = 30_000
    blind_for_ms: int | None = None
    scale_down: ScaleDown = ScaleDown()
    scale_to_zero: ScaleToZero = field(default_factory=ScaleToZero)
    scheduled: tuple[ScheduledBounds, ...] = ()
