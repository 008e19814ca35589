"""The scenario file: its schema. scenario.py reads it.

Pydantic classes only; times are milliseconds once read. Field docstrings are published by
`stoker schema Scenario` and stand in docs/rehearsals.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from stoker.rehearse.schema_events import EventBlock
from stoker.source.schema import ApiVersion, Duration, LabelName, Line, Strict

__all__ = [
    "BarsBlock",
    "FleetBars",
    "LoadBlock",
    "NodeBlock",
    "ScenarioFile",
    "ScenarioSpec",
    "ServiceBars",
    "StartsBlock",
]

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


class ScenarioMetadata(Strict):
    """How the scenario is called."""

    name: LabelName
    """Name of the scenario."""


class NodeBlock(Strict):
    """One node with GPUs."""

    name: LabelName
    """Name of the node."""
    pool: LabelName = "gpu"
    """Its pool: the value of its label `pool`, and a pool of the fleet."""
    gpus: Positive = 1
    """Its GPUs."""
    capacity_type: Literal["OnDemand", "Spot"] = "OnDemand"
    """Whether it is a spot node."""
    holds: list[LabelName] = Field(default_factory=list)
    """Services whose image and weights it holds at the start."""
    joins: Duration | None = None
    """When it joins, counted as events are; without it, it is there from the start."""


class ServiceBlock(Strict):
    """One ModelService of the fleet."""

    name: LabelName
    """Name of the service."""
    spec: dict[str, Any] = Field(default_factory=dict)
    """Its spec, merged over `defaults`; what it may say is what a ModelService may."""


class StartsBlock(Strict):
    """How long a start takes, phase by phase, on simulated nodes."""

    pull: Duration = 60_000
    """Pulling an image that the node lacks."""
    download: Duration = 60_000
    """Fetching weights that the node lacks."""
    disk: Duration = 10_000
    """Loading weights that the node holds."""
    init: Duration = 15_000
    """From loaded weights to the first token."""
    around: Duration = 1_000
    """Seeing, deciding, scheduling and probing; only tells what no start could have saved."""


class TailBlock(Strict):
    """The few very long answers."""

    per_mille: Count = 1
    """How many in a thousand."""
    over: Duration = 300_000
    """They take longer than this, up to half as long again."""


class OutputBlock(Strict):
    """How long answers take, from the first token to the last: log-normal with a tail."""

    p50: Duration = 8_000
    """The median."""
    p99: Duration = 90_000
    """99 in a hundred take no longer."""
    tail: TailBlock = Field(default_factory=TailBlock)
    """The few very long ones."""


class LoadBlock(Strict):
    """Requests to each service: an open loop, streamed answers, no retries."""

    rate_per_second: Positive = 10
    """Requests a second to each service, evenly spaced, shared by the clients of `lags`."""
    output: OutputBlock = Field(default_factory=OutputBlock)
    """How long answers take."""
    ttft: Duration = 200
    """Time to the first token of an engine with a seat free, where engines are simulated."""
    seats: Positive = 256
    """Requests that an engine answers at a time."""
    lags: Annotated[list[Duration], Field(min_length=1)] = Field(
        default_factory=lambda: [0, 2_000, 10_000]
    )
    """A client each: how old the endpoint list is that it chooses from."""
    sticky: Count = 1
    """Clients beside it that keep one connection, with one request after the other on it."""
    late: Duration = 2_000
    """A first token that takes longer than this is late."""


class ServiceBars(Strict):
    """What may happen to a service at most, or must at least. What is not said is not judged."""

    refused: Count | None = None
    """Requests of the open loop without a byte of an answer."""
    truncated: Count | None = None
    """Answers that broke off, without the unavoidable ones."""
    unavoidable: Count | None = None
    """Answers that broke off, outlasted their node, and had nowhere else to go in time."""
    sticky: Count | None = None
    """Failed requests of clients that keep their connection, whatever endpoints say."""
    late: Count | None = None
    """Answers whose first token came late."""
    gap: Duration | None = None
    """Longest time between first tokens beyond the spacing of requests and the median TTFT."""
    lowest_ready: Count | None = None
    """Replicas Ready and with traffic, at least, at all times."""
    ready_at_end: Count | None = None
    """Replicas Ready and with traffic at the end, at least."""
    starts: Count | None = None
    """Pods that a node took after the load began, at most."""
    starts_wasted: Count | None = None
    """Of those, pods that never became Ready and are not on their way either."""


class NamedBars(ServiceBars):
    """The bars of one service."""

    name: LabelName
    """Name of the service."""


class FleetBars(Strict):
    """What may happen in the whole fleet at most."""

    double_booked: Count = Field(default=0, alias="doubleBookedGPUs")
    """GPUs that pods on a node asked for beyond what it has, at any time."""
    starts_wasted: Count | None = None
    """Starts of all services that never became Ready."""


class BarsBlock(Strict):
    """What the run is judged against."""

    fleet: FleetBars = Field(default_factory=FleetBars)
    """For the whole fleet."""
    unaffected: ServiceBars = Field(
        default_factory=lambda: ServiceBars(refused=0, truncated=0, unavoidable=0, sticky=0)
    )
    """For each service that `services` does not name."""
    services: list[NamedBars] = Field(default_factory=list)
    """For services by name."""


class ScenarioSpec(Strict):
    """What is there, what happens, and what must come of it."""

    about: Line
    """One line for people."""
    nodes: Annotated[list[NodeBlock], Field(min_length=1)]
    """The nodes."""
    fleet: dict[str, Any] = Field(default_factory=dict)
    """Merged over the spec of the fleet that is made for the scenario."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Merged over the spec that every service begins with."""
    services: Annotated[list[ServiceBlock], Field(min_length=1)]
    """The services."""
    starts: StartsBlock = Field(default_factory=StartsBlock)
    """How long starts take."""
    load: LoadBlock = Field(default_factory=LoadBlock)
    """The requests."""
    warm_up: Duration = 60_000
    """Load before events: their times are counted from its end. Its requests count as well."""
    events: list[EventBlock] = Field(default_factory=list)
    """What happens."""
    lasts: Duration
    """How long after the warm-up new requests and the look at the cluster end."""
    bars: BarsBlock = Field(default_factory=BarsBlock)
    """What must come of it."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        nodes = [node.name for node in self.nodes]
        services = [service.name for service in self.services]
        for what, names in (("node", nodes), ("service", services)):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                _refuse(f"has two {what}s called {twice[0]}")
        for event in self.events:
            for node in event.nodes_named:
                if node not in nodes:
                    _refuse(f"events name the node {node}, which is not among nodes")
            if event.change is not None and event.change.service not in services:
                _refuse(f"events name the service {event.change.service}, which is not there")
        held = [name for node in self.nodes for name in node.holds]
        for name in (*held, *(bars.name for bars in self.bars.services)):
            if name not in services:
                _refuse(f"names the service {name}, which is not among services")
        return self


class ScenarioFile(Strict):
    """A rehearsal: nodes, services, load, what happens, and the bars it is judged against."""

    api_version: ApiVersion
    """Always stoker.dev/v1alpha1."""
    kind: Literal["Scenario"]
    """Always Scenario."""
    metadata: ScenarioMetadata
    """How the scenario is called."""
    spec: ScenarioSpec
    """What it says."""


def _refuse(message: str) -> None:
    raise PydanticCustomError("invalid-value", "{message}", {"message": message})
