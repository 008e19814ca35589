"""How warm the cache of each replica is, so that the coldest leave first (seed 001, design 5).

In: the scaling block and the readings. Out: a heat for each pod, the lowest leaves first. Called
by decide for services whose count follows load; read by fate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stoker.model.readings import ServiceReadings
from stoker.model.scaling import Algorithm, ScaleDownBehavior, Scaling

__all__ = ["heats", "is_cache_aware"]


def is_cache_aware(scaling: Scaling | None) -> bool:
    """Whether caches have a say in who leaves."""
    return scaling is not None and scaling.scale_down.behavior is ScaleDownBehavior.CACHE_AWARE


def heats(scaling: Scaling | None, readings: ServiceReadings | None) -> Mapping[str, float]:
    """By pod: what `deletionCost` answers for it, else, with Capacity, its share of KV blocks in
    use. Empty where nothing says so: then the newest is taken to be the coldest.
    """
    if scaling is None or readings is None or not is_cache_aware(scaling):
        return {}
    if scaling.scale_down.deletion_cost is not None:
        return {pod: cost for pod, cost in readings.deletion_costs if math.isfinite(cost)}
    if scaling.algorithm is Algorithm.RATIO:
        return {}
    known = ((each.pod, each.kv_usage) for each in readings.engines)
    return {pod: usage for pod, usage in known if usage is not None and math.isfinite(usage)}
