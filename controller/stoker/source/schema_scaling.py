"""What files may say about a count that follows load: schema blocks of `spec.scaling`.

Used by the schemas of ModelService and ScalePolicy; scaling.py checks across fields and converts.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from stoker.source.schema import Duration, LabelName, Line, Strict

__all__ = [
    "DecisionBlock",
    "MetricBlock",
    "Query",
    "ScalingBlock",
    "ScheduledBlock",
    "SourceQueryBlock",
    "WakeBlock",
]

_METRIC_NAME = r"^[A-Za-z_:][A-Za-z0-9_:]*$"
"""As the exposition format of Prometheus has them."""
_PATH = r"^/[^\s?#]*$"
NUMBER_PATTERN = r"^[0-9]+(\.[0-9]+)?$"
MOST_REPLICAS = 100_000
"""Above what one cluster holds (Kubernetes is tested with 5,000 nodes): a slip of the pen."""
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")


def _target(value: Any) -> float:
    """A number above zero. Never a percentage: of what is not said (seed 001, spec.metrics)."""
    if isinstance(value, str) and value.strip().endswith("%"):
        raise PydanticCustomError(
            "invalid-target",
            'is {value}, and not said of what: write "0.8" where the query gives 0 to 1, "80" '
            "where it gives 0 to 100",
            {"value": repr(value[:40])},
        )
    number = _number(value)
    if number <= 0:
        raise PydanticCustomError(
            "invalid-target",
            "is {value}; a replica's share of the load is a number above zero",
            {"value": repr(str(value)[:40])},
        )
    return number


def _number(value: Any) -> float:
    """A decimal in quotes; -1 for text that is a number below zero or none that is finite."""
    if isinstance(value, bool) or not isinstance(value, str):
        raise PydanticCustomError(
            "invalid-type",
            "is no text; a number in quotes is wanted, for instance {example}",
            {"example": f'"{value}"' if isinstance(value, int | float) else '"0.8"'},
        )
    return float(value) if _NUMBER.fullmatch(value) else -1


def _cost(value: Any) -> float:
    number = _number(value)
    if number < 0 or not math.isfinite(number):
        raise PydanticCustomError(
            "invalid-value",
            'is {value}; an amount is wanted, in quotes and without a currency: "0.50"',
            {"value": repr(str(value)[:40])},
        )
    return number


def _query(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PydanticCustomError("invalid-value", "is empty; PromQL is wanted", {})
    return value.strip()


_NUMBER_SCHEMA = {"type": "string", "pattern": NUMBER_PATTERN}

Target = Annotated[float, BeforeValidator(_target), WithJsonSchema(_NUMBER_SCHEMA)]
"""A finite number above zero, from quoted text."""

Cost = Annotated[float, BeforeValidator(_cost), WithJsonSchema(_NUMBER_SCHEMA)]
"""A finite number of at least zero, from quoted text."""

Query = Annotated[str, BeforeValidator(_query), WithJsonSchema({"type": "string", "minLength": 1})]
"""PromQL, without blanks at its ends; it may have several lines."""

Replicas = Annotated[int, Field(ge=0, le=MOST_REPLICAS)]
Rate = Annotated[int, Field(ge=1, le=10**9)]


class SourceQueryBlock(Strict):
    """A question to a Prometheus of the Fleet."""

    source: LabelName
    """Name in the Fleet's `metricSources`."""
    query: Query
    """PromQL; `$pods` inside a selector stands for the service's own pods."""


class ScrapeBlock(Strict):
    """A metric of the replicas themselves, or of a page that is a metric source."""

    metric: Annotated[str, Field(pattern=_METRIC_NAME, max_length=200)]
    """Its name, for instance vllm:num_requests_waiting. Of a counter the growth a second, of a
    histogram the 95th percentile."""
    aggregate: Literal["avg", "sum", "max", "min"] = "avg"
    """How one value is made of those of the pods."""
    source: LabelName | None = None
    """Name of a page in the Fleet's `metricSources`; without it the replicas' own."""


class LoadBlock(Strict):
    """Where arrivals are counted: `source` and `query`, or `scrape`."""

    source: LabelName | None = None
    """Name in the Fleet's `metricSources`."""
    query: Query | None = None
    """PromQL that gives requests a second, those that were turned away too."""
    scrape: ScrapeBlock | None = None
    """A counter of requests, best that of the gateway; pods are summed."""


class DecisionBlock(Strict):
    """The count of a decision server: absolute, clamped to the bounds, never multiplied."""

    source: LabelName
    """Name in the Fleet's `metricSources`."""
    service_id: Annotated[Line, Field(max_length=253)]
    """The service whose decision is read."""
    namespace: LabelName | None = None
    """Namespace of the decision, where the server has the service in several."""
    path: Annotated[str, Field(pattern=_PATH, max_length=500)] = "/decisions"
    """Path of the request."""


class MetricBlock(Strict):
    """One thing the count follows: exactly one of scrape, prometheus and decision."""

    name: LabelName
    """Name, for status."""
    scrape: ScrapeBlock | None = None
    """A metric of the replicas themselves."""
    prometheus: SourceQueryBlock | None = None
    """A query that gives one value."""
    decision: DecisionBlock | None = None
    """The count of a decision server."""
    target_per_replica: Target | None = None
    """What one replica should have, as text: "0.8"; not for `decision`, which counts replicas."""
    value: Literal["PerReplica", "Total"] = "PerReplica"
    """What the metric gives: the share of one replica, or that of all together."""


class SloBlock(Strict):
    """What clients are promised."""

    ttft_p95: Duration | None = None
    """Time to the first token that 95 of 100 requests keep."""
    itl_p95: Duration | None = None
    """Time between tokens that 95 of 100 keep."""


class CapacityBlock(Strict):
    """What one replica can do; what is learned stays within half and double of it."""

    prefill_tokens_per_second: Rate
    """Prompt tokens a second that no cache holds."""
    decode_tokens_per_second: Rate
    """Tokens a second that it writes, over all its requests."""


class ScaleDownBlock(Strict):
    """How the count falls."""

    stabilization_window: Duration | None = None
    """The highest count asked for within it holds; 0s for none, without it what `algorithm` takes."""
    max_step: Replicas = 0
    """Most replicas that leave at once; 0 is no bound."""
    behavior: Literal["CacheAware", "None"] = "CacheAware"
    """CacheAware: those go first whose caches are worth least."""
    deletion_cost: SourceQueryBlock | None = None
    """A value for each pod (label `pod`), for CacheAware: the lowest goes first."""


class WakeBlock(Strict):
    """What tells that somebody waits while no replica stands: exactly one of the four."""

    name: LabelName
    """Name, for status."""
    scrape: ScrapeBlock | None = None
    """A metric of the router or endpoint picker (with a `source`); above zero wakes."""
    prometheus: SourceQueryBlock | None = None
    """A query that gives one value; above zero wakes."""
    decision: DecisionBlock | None = None
    """The count of a decision server; above zero wakes."""
    scheduled: LabelName | None = None
    """Name of an entry of `scheduled` with minReplicas of at least 1."""
    hold: Duration | None = None
    """How long a request waits there by itself; 0s where nothing holds it. Not for `scheduled`."""


class ScaleToZeroBlock(Strict):
    """When the last replica may leave; needs minReplicas 0 and something that wakes."""

    policy: Literal["Never", "BreakEven", "AfterIdle"] = "Never"
    """AfterIdle: after `idle`. BreakEven: once waiting costs less than standing, by prices,
    `breachCost` and the gaps seen."""
    idle: Duration = 600_000
    """How long nothing must be asked of the service, for AfterIdle."""
    breach_cost: Cost | None = None
    """What one client that had to wait costs, in the currency of the prices, for BreakEven: "2"."""
    wake: list[WakeBlock] = Field(default_factory=list)
    """What wakes; any one is enough."""


class ScheduledBlock(Strict):
    """Other bounds for a recurring time."""

    name: LabelName
    """Name, for status."""
    schedule: Annotated[Line, Field(max_length=200)]
    """When they begin: five cron fields, for instance "0 8 * * 1-5"."""
    duration: Duration
    """How long they hold, at most 31 days."""
    time_zone: Line = "UTC"
    """Zone of the schedule, an IANA name."""
    min_replicas: Replicas | None = None
    """Least replicas meanwhile."""
    max_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] | None = None
    """Most replicas meanwhile."""


class ScalingBlock(Strict):
    """Who decides the count of replicas, and by what; instead of `replicas`."""

    mode: Literal["Stoker", "External"] = "Stoker"
    """Stoker: the count follows load. External: somebody else (an HPA, a person) owns it."""
    min_replicas: Replicas = 1
    """Least replicas; 0 only with scaleToZero."""
    max_replicas: Annotated[int, Field(ge=1, le=MOST_REPLICAS)] | None = None
    """Most replicas; required for mode Stoker."""
    max_gpus: Annotated[int | None, Field(alias="maxGPUs", ge=1)] = None
    """Most GPUs of all replicas together, whatever maxReplicas says."""
    interval: Duration = 15_000
    """How often is measured and decided."""
    algorithm: Literal["Capacity", "Ratio"] = "Capacity"
    """Capacity: by what a replica was seen to do. Ratio: LLMScaler's rule, value by target."""
    load: LoadBlock | None = None
    """Requests a second that arrive; without it estimated from the replicas' own counters."""
    slo: SloBlock = Field(default_factory=SloBlock)
    """What clients are promised; for Capacity."""
    metrics: list[MetricBlock] = Field(default_factory=list)
    """What the count follows; the highest count wins. Required for Ratio."""
    capacity: CapacityBlock | None = None
    """What one replica can do, until and as far as it is measured; for Capacity."""
    headroom_percent: Annotated[int, Field(ge=0, le=1000)] = 20
    """Capacity kept free above the load; for Capacity."""
    drain_window: Duration = 30_000
    """Time in which waiting requests should be served; for Capacity."""
    blind_for: Duration | None = None
    """At zero: one replica is started after nothing could be measured for so long."""
    scale_down: ScaleDownBlock = Field(default_factory=ScaleDownBlock)
    """How the count falls."""
    scale_to_zero: ScaleToZeroBlock = Field(default_factory=ScaleToZeroBlock)
    """When the last replica may leave."""
    scheduled: list[ScheduledBlock] = Field(default_factory=list)
    """Other bounds for recurring times."""
