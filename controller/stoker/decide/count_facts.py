"""What a scaling rule may know of a service beside its readings.

Made by decide from the snapshot, and by the simulator; read by scale and its rules.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CountFacts", "ReadyPod"]


@dataclass(frozen=True, slots=True)
class ReadyPod:
    """A Ready replica: its pod (of a group the leader's), what it runs and since when.

    `accelerator` is the GPU product of its node; empty where that is not known.
    """

    name: str
    uid: str
    rev: str
    ready_since_ms: int
    accelerator: str = ""


@dataclass(frozen=True, slots=True)
class CountFacts:
    """Counts of replicas, in groups where a replica has several nodes.

    `wanted` is the count decided last, None when that is not known; `standing` is what live
    workloads ask for. `warming` is capacity bought that cannot serve yet; `stuck` is none, and
    whoever places replicas substitutes it: no rule adds to the count for it. `rolling`: replicas
    of an older rev stand. `price_per_hour` is of one replica, None when not known.
    """

    wanted: int | None
    standing: int
    ready: int
    warming: int = 0
    stuck: int = 0
    rolling: bool = False
    cold_start_p90_ms: int = 0
    price_per_hour: float | None = None
    rev: str = ""
    pods: tuple[ReadyPod, ...] = ()
    """The Ready ones, sorted by name. Empty while some are Ready: every engine read is one."""

    @property
    def count(self) -> int:
        """The count now: what was decided last, else what stands."""
        return self.standing if self.wanted is None else self.wanted
