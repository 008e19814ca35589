"""What bounds one service's step beside its own spec. Made by decide, read by work.

What is known of its updates, what the fleet's budget leaves it, whether a notice was withdrawn a
moment ago, which pools gave no node, and which cool down.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.decide.disruption import NO_LIMIT, Allowance
from stoker.model.history import PoolHint, PoolWait
from stoker.model.update_history import NO_UPDATE, UpdateHistory

__all__ = ["FREE", "Bounds"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Nothing but its spec bounds a service by default.

    `calm`: replicas started for a notice that is withdrawn are not given up yet, for such
    notices come back.
    """

    past: UpdateHistory = NO_UPDATE
    allowance: Allowance = NO_LIMIT
    calm: bool = False
    pool_waits: tuple[PoolWait, ...] = ()
    """Pools that gave no node lately."""
    cooling: tuple[PoolHint, ...] = ()
    """Pools that come last for a start, after a hint."""


FREE = Bounds()
