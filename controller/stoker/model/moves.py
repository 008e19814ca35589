"""What the files say about moves: how updates go on, and what voluntary changes may cost.

Made by source, read by decide. Durations are integer milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stoker.model.prune import MaxUnits

__all__ = ["FleetDisruption", "OnFailure", "OnNotice", "Pause", "Update"]


class OnFailure(StrEnum):
    """What happens to a new rev that fails: it stays to be looked at, or it is taken away."""

    HOLD = "Hold"
    REVERT = "Revert"


@dataclass(frozen=True, slots=True)
class Pause:
    """An update waits `duration_ms` from when so many new replicas are Ready."""

    after_replicas: int = 1
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class Update:
    """How a new rev comes. `max_concurrent` None: as many at once as other moves."""

    max_concurrent: int | None = None
    pause: Pause = field(default_factory=Pause)
    on_failure: OnFailure = OnFailure.HOLD


class OnNotice(StrEnum):
    """What becomes of requests on a node that goes away: they are finished as far as the time

    allows, or the replica serves to the end and they die with it.
    """

    FINISH_IN_FLIGHT = "FinishInFlight"
    HARD_KILL = "HardKill"


@dataclass(frozen=True, slots=True)
class FleetDisruption:
    """What voluntary moves of all services may cost at once; None for no limit.

    `max_unavailable_gpus` is a count, or a percentage of the GPUs of the fleet's pools.
    """

    max_concurrent_moves: int | None = None
    max_unavailable_gpus: MaxUnits | None = None
