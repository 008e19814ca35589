"""What would change the count of a service that follows load, for people. Called by scale."""

from __future__ import annotations

from stoker.decide.capacity import Sight
from stoker.decide.finding import Finding, number
from stoker.model.readings import Sample
from stoker.model.scaling import Algorithm, Scaling

__all__ = ["changes"]


def changes(spec: Scaling, sight: Sight, finding: Finding, replicas: int) -> tuple[str, ...]:
    """One line each, the nearest thresholds first."""
    lines = list(_thresholds(spec, sight, replicas))
    if spec.algorithm is Algorithm.CAPACITY and sight.capacity is None:
        lines.append("a replica that serves, so that its capacity is known")
    lines += [f"{name} measured again ({why})" for name, why in finding.unmeasurable]
    return tuple(lines)


def _thresholds(spec: Scaling, sight: Sight, replicas: int) -> list[str]:
    if spec.algorithm is Algorithm.RATIO:
        if not replicas or not sight.facts.ready:
            return []
        share = replicas / sight.facts.ready
        return [
            f"metric {m.name} above {number(m.target * share)} in the mean of its replicas"
            for m in spec.metrics
            if m.target is not None
        ]
    if sight.capacity is None or not isinstance(sight.arrivals, Sample):
        return []
    each = sight.capacity * 100 / (100 + spec.headroom_percent / 2)  # half of it is for noise
    now = f"now {number(sight.arrivals.value)}/s"
    lines = []
    if replicas < spec.max_replicas:
        lines.append(f"more than {number(each * replicas)} requests a second ({now})")
    if replicas > max(1, spec.min_replicas):
        lines.append(f"less than {number(each * (replicas - 1))} requests a second ({now})")
    return lines
