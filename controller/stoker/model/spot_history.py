"""How often a service lost replicas to spot interruptions; part of its history.

Replica-time is added up only when the number of replicas changes or one is lost, so that a
steady fleet writes nothing. An entry that cannot be read is an empty one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

__all__ = ["NO_SPOT", "SpotHistory", "spot_history_from"]


@dataclass(frozen=True, slots=True)
class SpotHistory:
    """`lost` replicas in `replica_ms` of replica-time up to `at_ms`; `replicas` stand since then.

    `noticed` are UIDs of nodes that are counted and still there, sorted.
    """

    lost: int = 0
    replica_ms: int = 0
    replicas: int = 0
    at_ms: int = 0
    noticed: tuple[str, ...] = ()

    def replica_hours(self, now_ms: int) -> float:
        """Replica-time until now, in hours."""
        return (self.replica_ms + self.replicas * max(0, now_ms - self.at_ms)) / 3_600_000


NO_SPOT = SpotHistory()


def spot_history_from(data: Any) -> SpotHistory:
    """Read what `to_data` gave; raises ValueError for anything else."""
    known = {each.name for each in fields(SpotHistory)}
    if not isinstance(data, dict) or not set(data) <= known:
        raise ValueError
    noticed = data.get("noticed", [])
    counts = {name: value for name, value in data.items() if name != "noticed"}
    if not all(type(value) is int and value >= 0 for value in counts.values()):
        raise ValueError
    if not isinstance(noticed, list) or not all(isinstance(uid, str) for uid in noticed):
        raise ValueError
    return SpotHistory(**counts, noticed=tuple(noticed))
