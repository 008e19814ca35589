"""Signals of a node, from the status of its NodeState: what is not sane counts as absent.

Reporters write what they measured, by merge patch and each its own fields; NaN, a negative
share and a word that nobody knows must never rank a node. Read by observe.nodes.
"""

from __future__ import annotations

import math
from typing import Any

from stoker.model.snapshot import NodeWarmth, Signals
from stoker.model.times import instant_of
from stoker.objects.health_fields import mapping

__all__ = ["signals_of"]

_WARMTH = {each.value: each for each in NodeWarmth}


def signals_of(raw: dict[str, Any]) -> Signals:
    """The signals of a raw NodeState. Rules of semantics 1.1 (EfficiencyAware, sanitise)."""
    status = mapping(raw, "status")
    warmth = status.get("warmth")
    return Signals(
        warmth=_WARMTH.get(warmth) if isinstance(warmth, str) else None,
        active_services=_count(status.get("activeServiceCount")),
        gpu_utilization=_amount(status.get("gpuUtilization")),
        kv_hit_rate=_amount(status.get("kvCacheHitRate"), most=1.0),
        kv_hit_rate_at_ms=instant_of(status.get("kvCacheHitRateObservedAt")),
        tokens_per_joule=_amount(status.get("tokensPerJoule")),
        tokens_per_joule_at_ms=instant_of(status.get("tokensPerJouleObservedAt")),
        reported_at_ms=instant_of(status.get("lastReportTime")),
        requests_running=_count(status.get("requestsRunning")),
    )


def _count(value: Any) -> int | None:
    """A count, never negative; None for anything else."""
    counted = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if counted else None


def _amount(value: Any, *, most: float = math.inf) -> float | None:
    """A finite amount from 0 to `most`; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if math.isfinite(amount) and 0 <= amount <= most else None
