"""What decide found about a count that follows load, for explain, status and its conditions.

Part of a service's decision. Nothing here is read back by decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.scaling import Algorithm

__all__ = ["Said", "ScaleVerdict"]


@dataclass(frozen=True, slots=True)
class Said:
    """What one rule would have, before bounds; `replicas` is None where it could not say."""

    rule: str
    replicas: int | None
    why: str


@dataclass(frozen=True, slots=True)
class ScaleVerdict:
    """How a count came about.

    `desired` is the count after bounds and the window, before the step cap (LLMScaler's
    desiredReplicas). `rule` is the one that decided, `why` its numbers.
    """

    algorithm: Algorithm
    replicas: int
    desired: int
    rule: str
    why: str
    active: bool = True
    """Condition ScalingActive: something could be measured, or a bound decided."""
    unmeasurable: tuple[tuple[str, str], ...] = ()
    """Condition MetricsAvailable: what could not be measured and why, in the order of the file."""
    limited: str = ""
    """Condition ScalingLimited: which bound or step keeps the count from what is wanted."""
    held: str = ""
    """Condition Held: why the count does not fall although fewer would do."""
    said: tuple[Said, ...] = ()
    """What every rule would have said, those of the other algorithm last."""
    changes: tuple[str, ...] = ()
    """What would change the answer."""
