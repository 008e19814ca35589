"""`algorithm: Ratio`: LLMScaler's rule to the letter (seed 001, semantics 1.2).

In: the metrics of the spec, how many replicas are Ready, the readings. Out: the highest of
ceil(ready x value / target); a decision server's count as it is. Called by scale, and by
capacity for metrics with targets.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from stoker.decide.count_facts import CountFacts
from stoker.decide.finding import MOST_REPLICAS, Finding, highest, number
from stoker.decide.measured import named
from stoker.model.readings import Sample, ServiceReadings, Unmeasurable
from stoker.model.scale_verdict import Said
from stoker.model.scaling import Metric, Scaling

__all__ = ["asked", "by_ratio"]

NOTHING_TO_MEASURE = "not-a-number"
"""A source that answers NaN was reached and has nothing to report (a percentile of no request)."""


def by_ratio(
    spec: Scaling, facts: CountFacts, readings: ServiceReadings | None, now_ms: int
) -> Finding:
    """The highest recommendation of all metrics that can be measured.

    One that cannot is skipped, never read as zero. Beside one that a failed read keeps from
    us the others may raise the count, not lower it (decision 44).
    """
    if facts.rolling:
        why = "a rollout is under way: cold replicas distort every average"
        return Finding(None, "rollout", why, keeps=why)
    given = readings.metrics if readings is not None else ()
    found = named(given, (metric.name for metric in spec.metrics), now_ms)
    said = tuple(
        asked(metric, reading, facts.ready)
        for metric, (_, reading) in zip(spec.metrics, found, strict=True)
    )
    lacking = tuple((each.rule, each.why) for each in said if each.replicas is None)
    top = highest(said)
    if top is None or top.replicas is None:
        return Finding(None, "", "no metric can be measured", said, lacking, _failed(found))
    return Finding(top.replicas, top.rule, top.why, said, lacking, _failed(found))


def asked(metric: Metric, reading: Sample | Unmeasurable, ready: int) -> Said:
    """What one metric asks for."""
    name = f"metric {metric.name}"
    if isinstance(reading, Unmeasurable):
        return Said(name, None, reading.why)
    if metric.target is None:
        return _decided(name, reading)
    share = Fraction(repr(reading.value)) / Fraction(repr(metric.target))
    exact = share * ready if ready else share
    each = f"{ready} Ready x " if ready else "one replica x "
    why = f"{each}{number(reading.value)} / {number(metric.target)}"
    return Said(name, min(MOST_REPLICAS, ceil(exact)), why)


def _decided(name: str, reading: Sample) -> Said:
    """A decision server's count is absolute. Of one that makes no sense nothing is believed."""
    value = reading.value
    if value != int(value) or value > MOST_REPLICAS:
        why = f"the decision is {number(value)}, which is no count from 0 to {MOST_REPLICAS}"
        return Said(name, None, why)
    return Said(name, int(value), f"the server decided {int(value)}")


def _failed(found: Iterable[tuple[str, Sample | Unmeasurable]]) -> str:
    """Which metric a failed read keeps from us; NaN is an answer."""
    for name, reading in found:
        if isinstance(reading, Unmeasurable) and reading.code != NOTHING_TO_MEASURE:
            return f"metric {name} could not be measured: {reading.why}"
    return ""
