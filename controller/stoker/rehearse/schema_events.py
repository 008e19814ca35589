"""What may happen in a scenario: one block an event. Part of schema.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from stoker.source.schema import Duration, LabelName, Line, Strict

__all__ = [
    "BreakBlock",
    "ChangeBlock",
    "EventBlock",
    "EvictBlock",
    "FlapBlock",
    "KillBlock",
    "LoseBlock",
    "NodesBlock",
    "NoticeBlock",
    "TaintBlock",
]

Nodes = Annotated[list[LabelName], Field(min_length=1)]


class NodesBlock(Strict):
    """Something done to nodes."""

    nodes: Nodes
    """The nodes, in this order."""


class NoticeBlock(NodesBlock):
    """A cloud says in the NodeState that nodes go away, and takes them at the deadline."""

    lead: Duration = 120_000
    """From the notice to the end of the node."""
    within: Duration = 0
    """The notices are spread evenly over this time."""
    notice: Line = "spot-interruption"
    """The kind that the NodeState says."""


class LoseBlock(NodesBlock):
    """Nodes die at once, without a word."""

    known_after: Duration = 40_000
    """When the cluster learns of it: the Node is deleted then."""


class EvictBlock(NodesBlock):
    """As Karpenter ends a spot node: its taint, evictions at once, the machine at the deadline."""

    lead: Duration = 120_000
    """From the taint to the end of the node."""


class TaintBlock(NodesBlock):
    """Nodes get a taint, and lose it again."""

    key: Line
    """Key of the taint."""
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"] = "NoSchedule"
    """Its effect."""
    lasts: Duration | None = None
    """When it is taken off again; never without it."""


class FlapBlock(NodesBlock):
    """Nodes fall silent and come back: NotReady and Ready in turns, their engines at work."""

    times: Annotated[int, Field(ge=1)] = 3
    """How often."""
    silent: Duration = 20_000
    """How long NotReady."""
    well: Duration = 20_000
    """How long Ready in between."""


class BreakBlock(NodesBlock):
    """Every engine that starts on these nodes crashes; the nodes say that they are Ready."""

    engines: Literal["Starting", "All"] = "Starting"
    """Which crash: those that start from then on, or those that run as well."""


class ChangeBlock(Strict):
    """A commit that changes a service."""

    service: LabelName
    """The service."""
    patch: dict[str, Any]
    """Merge patch on its spec."""
    engines: Literal["Fine", "Crash"] = "Fine"
    """Whether engines of the image in `patch` crash whenever they start."""


class KillBlock(Strict):
    """The controller is killed, and another one starts."""

    down: Duration = 15_000
    """How long none is there."""


class EventBlock(Strict):
    """One thing that happens: exactly one field beside `at`."""

    at: Duration
    """When, counted from the end of the warm-up."""
    notice: NoticeBlock | None = None
    """Nodes get notice and go at the deadline."""
    lose: LoseBlock | None = None
    """Nodes die without a word."""
    drain: NodesBlock | None = None
    """`kubectl drain`: cordon, then evictions until the node is empty."""
    evict: EvictBlock | None = None
    """Karpenter's way: taint, evictions at once, the end at a deadline."""
    taint: TaintBlock | None = None
    """Nodes get a taint."""
    flap: FlapBlock | None = None
    """Nodes are NotReady and Ready in turns."""
    break_nodes: BreakBlock | None = Field(default=None, alias="break")
    """Nodes on which every start crashes."""
    change: ChangeBlock | None = None
    """A commit."""
    kill_controller: KillBlock | None = None
    """The controller dies."""

    @property
    def what(self) -> str:
        """The field that is filled, as it is written."""
        said = [type(self).model_fields[f].alias or f for f in self._filled()]
        return str(said[0])

    @property
    def nodes_named(self) -> tuple[str, ...]:
        """The nodes that it happens to, in order."""
        filled = getattr(self, self._filled()[0])
        return tuple(filled.nodes) if isinstance(filled, NodesBlock) else ()

    def _filled(self) -> list[str]:
        names = [name for name in type(self).model_fields if name != "at"]
        return [name for name in names if getattr(self, name) is not None]

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if len(self._filled()) != 1:
            raise PydanticCustomError(
                "invalid-value", "has exactly one of notice, lose, drain and so on beside at", {}
            )
        return self
