"""One value of a service from the pages of its pods. Pure.

In: a ScrapeQuery and a Look a pod. Out: a Reading. Used by signals.reader.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from stoker.engine.series import Series, is_sane, mean, percentile, total
from stoker.model.readings import Reading, Sample, Unmeasurable
from stoker.model.scaling import Aggregate, ScrapeQuery
from stoker.signals.engine_reading import growth, rate
from stoker.signals.scrape import Look, Scraped

__all__ = ["aggregated", "names_wanted", "page_value"]

_P95 = 0.95
_SHARES = ("_usage_perc",)
"""Endings of metrics that are shares of one engine: several engines in a pod are averaged, for
their sum is no share (note 41)."""


@dataclass(frozen=True, slots=True)
class NoValue:
    """A page without a usable value; `code` as in model.readings.Unmeasurable."""

    code: str
    why: str


def names_wanted(query: ScrapeQuery) -> tuple[str, ...]:
    """What has to be read of a page for a query: the metric, or its buckets."""
    return query.metric, f"{query.metric}_bucket"


def aggregated(query: ScrapeQuery, looks: Sequence[Look], now_ms: int, valid_ms: int) -> Reading:
    """The value over all Ready pods; Unmeasurable when one of them gave none.

    A scrape that misses one replica would lower a sum, and may lower any other aggregate
    (cases.md row 115). Pods that are not Ready are left out.
    """
    ready = [look for look in looks if look.pod.ready]
    if not ready:
        return Unmeasurable("missing", "no pod is Ready", now_ms)
    values = []
    for look in ready:
        value = page_value(query.metric, look)
        if isinstance(value, NoValue):
            return Unmeasurable(value.code, f"pod {look.pod.name}: {value.why}", now_ms)
        values.append(value)
    value = _over_pods(values, query.aggregate)
    if not math.isfinite(value):
        return Unmeasurable("not-a-number", "the pods' values have no finite sum", now_ms)
    at_ms = min(look.after.at_ms for look in ready if look.after is not None)
    return Sample(value, at_ms, valid_ms)


def page_value(metric: str, look: Look) -> float | NoValue:
    """A metric of one pod (note 41): what counters grew by a second, the 95th percentile of a
    histogram since the last look, and else the sum over its engines, the mean of shares.
    """
    if look.after is None:
        return NoValue("unreachable", look.why)
    name = look.after.name_of(metric)
    if not name:
        return _of_histogram(f"{metric}_bucket", look, look.after)
    series = look.after.samples[name]
    if not is_sane(series):
        return _not_sane(series)
    if name in look.after.counters:
        return _grown(metric, look)
    value = mean(series) if name.endswith(_SHARES) else total(series)
    return NoValue("not-a-number", "its engines have no finite sum") if value is None else value


def _grown(metric: str, look: Look) -> float | NoValue:
    if look.before is None:
        return NoValue("missing", f"{metric} is a counter, and was seen once so far")
    value = rate(look, growth(look, metric))
    return (
        NoValue("missing", f"{metric} went back, or is of other engines")
        if value is None
        else value
    )


def _of_histogram(metric: str, look: Look, after: Scraped) -> float | NoValue:
    name = after.name_of(metric)
    if not name:
        return NoValue("missing", f"its page has no {metric.removesuffix('_bucket')}")
    if look.before is None:
        return NoValue("missing", f"{name} is a histogram, and was seen once so far")
    value = percentile(look.before.samples.get(name), after.samples[name], _P95)
    return NoValue("missing", f"nothing was observed in {name}") if value is None else value


def _not_sane(series: Series) -> NoValue:
    values = series.values()
    if all(math.isfinite(value) for value in values):
        return NoValue("negative", f"a value of {min(values):g}")
    return NoValue("not-a-number", "a value that is no finite number")


def _over_pods(values: Sequence[float], aggregate: Aggregate) -> float:
    match aggregate:
        case Aggregate.AVG:
            return _sum(values) / len(values)
        case Aggregate.SUM:
            return _sum(values)
        case Aggregate.MAX:
            return max(values)
        case Aggregate.MIN:
            return min(values)
        case _:
            assert_never(aggregate)


def _sum(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf
