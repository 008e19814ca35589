"""What the files say about moves: how updates go on, and what voluntary changes may cost.

Made by source, read by decide. Durations are integer milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["OnFailure", "Pause", "Update"]


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
