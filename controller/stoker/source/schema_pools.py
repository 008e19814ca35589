"""What a Fleet file says about its pools of nodes: schema blocks, checks and conversion.

Used by the schema of Fleet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from stoker.model.fleet import CapacityType, Pin, Pool, Requirement
from stoker.source.places import Field as FieldPath
from stoker.source.schema import LabelName, Line, Strict

__all__ = ["PoolBlock", "pool_problems", "pools_of"]

_PRICE = r"^[0-9]+(\.[0-9]+)?$"


class ExpressionBlock(Strict):
    """One requirement on a node label."""

    key: Line
    """Label key."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How `values` are compared."""
    values: list[str] = Field(default_factory=list)
    """Values for In and NotIn; empty for the others."""


class NodeSelectorBlock(Strict):
    """Which nodes belong to a pool; all labels and expressions must match."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    """Labels and their values."""
    match_expressions: list[ExpressionBlock] = Field(default_factory=list)
    """Requirements on labels."""


class PoolBlock(Strict):
    """A class of nodes."""

    name: LabelName
    """Name that services use in `placement.pools`."""
    node_selector: NodeSelectorBlock = Field(default_factory=NodeSelectorBlock)
    """Which nodes belong to the pool; without it all do."""
    capacity_type: Literal["OnDemand", "Spot"] = "OnDemand"
    """What the nodes are: Spot nodes may be taken back at any time."""
    price_per_gpu_hour: Annotated[str | None, Field(alias="pricePerGPUHour", pattern=_PRICE)] = None
    """Price of one GPU for an hour, as text: "0.80"."""
    pin: Literal["Preferred", "Required"] = "Preferred"
    """Whether a replica may also start on another node of the pool (Preferred) or not."""
    max_gpus: Annotated[int | None, Field(alias="maxGPUs", ge=1)] = None
    """Most GPUs of all replicas in the pool; without it those that its nodes have."""


def pool_problems(blocks: Sequence[PoolBlock]) -> Iterator[tuple[FieldPath, str, str, str]]:
    """Field, code, message and hint of what single fields cannot show."""
    seen: set[str] = set()
    for index, pool in enumerate(blocks):
        at: FieldPath = ("spec", "pools", index)
        if pool.name in seen:
            yield (*at, "name"), "duplicate-pool", f"two pools are named {pool.name!r}", ""
        seen.add(pool.name)
        for number, expression in enumerate(pool.node_selector.match_expressions):
            listing = expression.operator in {"In", "NotIn"}
            if listing != bool(expression.values):
                where = (*at, "nodeSelector", "matchExpressions", number)
                need = "at least one value" if listing else "no values"
                yield where, "invalid-value", f"{expression.operator} takes {need}", ""


def pools_of(blocks: Sequence[PoolBlock]) -> tuple[Pool, ...]:
    """The pools of a Fleet file, in its order."""
    return tuple(_pool(block) for block in blocks)


def _pool(block: PoolBlock) -> Pool:
    selector = block.node_selector
    return Pool(
        name=block.name,
        match_labels=tuple(sorted(selector.match_labels.items())),
        match_expressions=tuple(
            sorted(
                Requirement(e.key, e.operator, tuple(sorted(e.values)))
                for e in selector.match_expressions
            )
        ),
        capacity_type=CapacityType(block.capacity_type),
        price_per_gpu_hour=block.price_per_gpu_hour,
        pin=Pin(block.pin),
        max_gpus=block.max_gpus,
    )
