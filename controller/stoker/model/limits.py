"""How replicas of one service are shared out between pools and domains, and what happens to one
that fits nowhere: what Git says of it.

Made by source as part of a ModelService, read by decide and by those who tell about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["NO_LIMITS", "PlacementLimits", "Reclaim", "WhenFull"]


class Reclaim(StrEnum):
    """Whether a service without a place takes room from services of lower priority."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class WhenFull(StrEnum):
    """What happens to a replica that fits nowhere."""

    HOLD = "Hold"
    UNPINNED = "Unpinned"


@dataclass(frozen=True, slots=True)
class PlacementLimits:
    """Bounds on where replicas stand, beside the order in which nodes are preferred.

    `bases` are pools with the count that belongs there before others are used, in the order
    of the service's pools, without zeros. `spread_key` is a node label, empty for no spread.
    """

    bases: tuple[tuple[str, int], ...] = ()
    spot_max_percent: int | None = None
    spread_key: str = ""
    max_skew: int = 1

    def base(self, pool: str) -> int:
        """How many replicas belong in that pool before others are used."""
        return next((count for name, count in self.bases if name == pool), 0)

    def most_on_spot(self, replicas: int) -> int:
        """How many of that many replicas may stand on spot: rounded down (decision note 24)."""
        if self.spot_max_percent is None:
            return replicas
        return replicas * self.spot_max_percent // 100


NO_LIMITS = PlacementLimits()
