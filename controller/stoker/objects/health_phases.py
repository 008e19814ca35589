"""Health of a model replica by its phase, in the words of design section 6.

In: what observe read of one pod (deadlines already judged). Out: a verdict. Called by
report for the replicas of a ModelService.
"""

from __future__ import annotations

from typing import assert_never

from stoker.model.snapshot import ReplicaPhase
from stoker.objects.health_fields import HealthVerdict, degraded, healthy, progressing

__all__ = ["health_of_phase"]


def health_of_phase(phase: ReplicaPhase, reason: str = "") -> HealthVerdict:
    """Judge one replica; Ready means that it can serve a token (row 91), Stuck is degraded."""
    match phase:
        case ReplicaPhase.READY:
            return healthy("Ready")
        case ReplicaPhase.STUCK:
            return degraded("Stuck", reason)
        case (
            ReplicaPhase.PENDING
            | ReplicaPhase.NODE_PROVISIONING
            | ReplicaPhase.IMAGE_PULL
            | ReplicaPhase.STARTING
            | ReplicaPhase.TERMINATING
        ):
            return progressing(phase.value, reason)
        case _:
            assert_never(phase)
