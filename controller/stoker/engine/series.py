"""Sums over the series of one metric of an engine's page, between two looks at it.

In: series by their labels, as engine.page gives them. Out: sums, growth and percentiles, or None
where they are not known. Pure. Used by engine.counters, node.engine_scrape and signals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

__all__ = [
    "Series",
    "bucket_percentile",
    "grown",
    "is_sane",
    "mean",
    "percentile",
    "total",
    "went_back",
]

Series: TypeAlias = Mapping[str, float]
"""Labels, as they are written, to a value; several engines behind a page are several series."""

_BOUND = re.compile(r'(?:^|,)\s*le="([^"]*)"')


def is_sane(series: Series) -> bool:
    """Whether every value is finite and at least 0."""
    return all(math.isfinite(value) and value >= 0 for value in series.values())


def total(series: Series | None) -> float | None:
    """The sum of all series; None when there is none, or one is not sane."""
    return _sum(series.values()) if series and is_sane(series) else None


def mean(series: Series | None) -> float | None:
    """The mean of all series: what a share of several engines comes to."""
    found = total(series)
    return None if found is None or not series else found / len(series)


def grown(before: Series | None, after: Series | None) -> float | None:
    """By how much counters grew, all together; at least 0.

    None where a series came, went or went back: an engine started anew, and what it counted
    until then is lost, though the sum of several may still be larger.
    """
    if not before or not after or before.keys() != after.keys():
        return None
    if not (is_sane(before) and is_sane(after)) or went_back(before, after):
        return None
    return _sum(after[labels] - before[labels] for labels in before)


def went_back(before: Series, after: Series) -> bool:
    """Whether a counter is lower than it was, which only a new start explains."""
    return any(after[labels] < before[labels] for labels in before if labels in after)


def percentile(before: Series | None, after: Series | None, share: float) -> float | None:
    """That share (0 to 1) of what was observed between two looks at a histogram's buckets was
    at most this, in the histogram's unit; None when nothing was observed or buckets make no sense.

    Linear within a bucket, and the largest finite bound for what is above it, as Prometheus'
    histogram_quantile: then the truth is more.
    """
    if before is None or after is None or grown(before, after) is None:
        return None
    counts: dict[float, list[float]] = {}
    for labels in after:
        bound = _bound(labels)
        if bound is None:
            return None
        counts.setdefault(bound, []).append(after[labels] - before[labels])
    bounds = sorted(counts)
    if not bounds or bounds[-1] != math.inf:
        return None
    heights = [math.fsum(counts[bound]) for bound in bounds]  # no more than `grown` could sum
    if heights[-1] <= 0:
        return None
    if any(low > high for low, high in pairwise(heights)):
        return None
    return bucket_percentile(bounds, heights, share)


def bucket_percentile(
    bounds: Sequence[float], heights: Sequence[float], share: float
) -> float | None:
    """The same of buckets whose bounds rise to infinity; `heights` are cumulative, the last above 0."""
    rank = share * heights[-1]
    place = next(index for index, height in enumerate(heights) if height >= rank)
    if bounds[place] == math.inf:
        return bounds[place - 1] if place else None
    low, under = (bounds[place - 1], heights[place - 1]) if place else (0.0, 0.0)
    within = heights[place] - under
    part = (rank - under) / within if within > 0 else 1.0
    return max(0.0, low + (bounds[place] - low) * part)


def _bound(labels: str) -> float | None:
    """The upper bound of a bucket; None where the label is missing or no bound."""
    match = _BOUND.search(labels)
    if match is None:
        return None
    try:
        bound = float(match[1])
    except ValueError:
        return None
    return None if math.isnan(bound) or bound == -math.inf else bound


def _sum(values: Iterable[float]) -> float | None:
    try:
        return math.fsum(values)
    except OverflowError:  # each is finite, and all together are not
        return None
