"""How what left Git is deleted, as the Fleet file says: read by source, obeyed by diff."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["MaxUnits", "PruneMode", "PruneSettings"]


class PruneMode(StrEnum):
    """What happens to objects that left Git."""

    AUTO = "Auto"
    CONFIRM = "Confirm"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class MaxUnits:
    """A cap as a count or a percentage of the fleet's units (rounded up, at least 1)."""

    count: int | None = None
    percent: int | None = 10

    def resolve(self, total: int) -> int:
        """How many units may go at once, of `total`."""
        if self.count is not None:
            return self.count
        percent = self.percent if self.percent is not None else 10
        return max(1, -(-total * percent // 100))


@dataclass(frozen=True, slots=True)
class PruneSettings:
    """How what left Git is deleted."""

    mode: PruneMode = PruneMode.AUTO
    max_units: MaxUnits = field(default_factory=MaxUnits)
