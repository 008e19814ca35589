"""What files may say about moves: schema blocks and their conversion.

Used by the schemas of ModelService and Fleet.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stoker.model.moves import FleetDisruption, OnFailure, Pause, Update
from stoker.model.prune import MaxUnits
from stoker.source.schema import Duration, Percentage, Strict

__all__ = ["FleetDisruptionBlock", "PauseBlock", "UpdateBlock", "disruption_of", "update_of"]

Positive = Annotated[int, Field(ge=1)]


class PauseBlock(Strict):
    """A wait in the middle of an update, to see how the new rev does."""

    after_replicas: Positive = 1
    """How many new replicas must be Ready; no more are started before the wait is over."""
    duration: Duration = 0
    """How long the wait is, from when they are Ready; 0 for none."""


class UpdateBlock(Strict):
    """How a new rev comes, in placement.mode Nodes."""

    max_concurrent: Positive | None = None
    """Most replicas in motion while old ones stand; without it disruption.maxConcurrentMoves."""
    pause: PauseBlock = Field(default_factory=PauseBlock)
    """A wait in the middle of an update, to see how the new rev does."""
    on_failure: Literal["Hold", "Revert"] = "Hold"
    """What happens to a new replica that fails: Hold leaves it to be looked at, Revert removes it.
    Either way the last rev that was Ready is kept up until Git has another one."""


class FleetDisruptionBlock(Strict):
    """What voluntary moves of all services may cost at once; notices are outside."""

    max_concurrent_moves: Positive | None = None
    """Most replicas of the fleet in motion at once; without it each service's own limit."""
    max_unavailable_gpus: Annotated[Percentage | None, Field(alias="maxUnavailableGPUs")] = None
    """Most GPUs of replicas in motion at once: a count, or a percentage of the pools' GPUs."""


def disruption_of(block: FleetDisruptionBlock) -> FleetDisruption:
    """The block as decisions read it."""
    gpus = block.max_unavailable_gpus
    return FleetDisruption(block.max_concurrent_moves, None if gpus is None else MaxUnits(*gpus))


def update_of(block: UpdateBlock) -> Update:
    """The block as decisions read it."""
    pause = Pause(block.pause.after_replicas, block.pause.duration)
    return Update(block.max_concurrent, pause, OnFailure(block.on_failure))
