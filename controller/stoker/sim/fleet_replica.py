"""One replica of a simulated service. Used by `sim.fleet_run` and `sim.fleet_readings`."""

from __future__ import annotations

from enum import StrEnum

from stoker.sim.engine_batch import BatchProfile
from stoker.sim.jumping import Counters, JumpingEngine

__all__ = ["Replica", "ReplicaState"]


class ReplicaState(StrEnum):
    """PENDING has no instance and costs nothing; STUCK costs and never serves."""

    PENDING = "pending"
    STARTING = "starting"
    READY = "ready"
    STUCK = "stuck"
    LEAVING = "leaving"


class Replica:
    """Its engine, and when what happened to it; seconds from the begin."""

    __slots__ = (
        "asked_s",
        "crashes",
        "engine",
        "number",
        "ready_s",
        "seen",
        "seen_s",
        "started_s",
        "state",
        "waited",
    )

    def __init__(self, number: int, asked_s: float, profile: BatchProfile) -> None:
        self.number = number
        self.asked_s = asked_s
        self.started_s = asked_s
        self.ready_s = 0.0
        self.state = ReplicaState.PENDING
        self.crashes = False
        self.engine = JumpingEngine(profile)
        self.seen: Counters | None = None
        """The counters of the last scrape, made at `seen_s`; `waited`: requests waited then."""
        self.seen_s = 0.0
        self.waited = False

    @property
    def name(self) -> str:
        """Sorts as its number."""
        return f"replica-{self.number:05}"

    @property
    def load(self) -> int:
        """Requests running and waiting in it."""
        return self.engine.load
