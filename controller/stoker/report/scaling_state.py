"""What is true of a count that follows load, as conditions beside the four of every unit.

In: what decide found. Out: conditions without times. Their messages say what lasts, not this
instant's numbers, which `stoker explain` has: a status that changes with every reading would be
written with every reading. Called by conditions.
"""

from __future__ import annotations

from stoker.model.outcome import Condition
from stoker.model.scale_verdict import ScaleVerdict

__all__ = ["scaling_conditions"]


def scaling_conditions(verdict: ScaleVerdict) -> tuple[Condition, ...]:
    """ScalingActive, MetricsAvailable, ScalingLimited and Held, in this order.

    The names are those of HorizontalPodAutoscaler where it has them.
    """
    lacking = ", ".join(name for name, _ in verdict.unmeasurable)
    return (
        _condition(
            "ScalingActive",
            "ValidMetricFound" if verdict.active else "NoValidMetric",
            "" if verdict.active else "nothing can be measured: the count stays as it is",
            true=verdict.active,
        ),
        _condition(
            "MetricsAvailable",
            "Unmeasurable" if lacking else "Measured",
            f"cannot be measured: {lacking}" if lacking else "",
            true=not lacking,
        ),
        _condition(
            "ScalingLimited",
            "Limited" if verdict.limited else "DesiredWithinRange",
            verdict.limited,
            true=bool(verdict.limited),
        ),
        _condition(
            "Held",
            "ScaleDownHeld" if verdict.held else "NotHeld",
            "fewer would do, and are not asked for yet" if verdict.held else "",
            true=bool(verdict.held),
        ),
    )


def _condition(kind: str, reason: str, message: str, *, true: bool) -> Condition:
    return Condition(kind, "True" if true else "False", reason, message, "")
