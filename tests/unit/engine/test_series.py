"""Sums of series, what counters grew by, and percentiles of histograms."""

from __future__ import annotations

import math

import pytest

from stoker.engine.series import grown, mean, percentile, total

HUGE = 1.7e308


def buckets(*counts, bounds=("0.1", "1.0", "+Inf"), engine="0"):
    return {
        f'engine="{engine}",le="{bound}"': float(count)
        for bound, count in zip(bounds, counts, strict=True)
    }


ZERO = buckets(0, 0, 0)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        pytest.param({"a": 1.0, "b": 2.0}, 3.0, id="several engines"),
        pytest.param({"a": 0.0}, 0.0, id="zero is known"),
        pytest.param(None, None, id="absent"),
        pytest.param({}, None, id="empty"),
        pytest.param({"a": math.nan}, None, id="NaN"),
        pytest.param({"a": math.inf}, None, id="infinite"),
        pytest.param({"a": 3.0, "b": -1.0}, None, id="one is negative"),
        pytest.param({"a": HUGE, "b": HUGE}, None, id="no finite sum"),
    ],
)
def test_a_sum_is_known_only_when_every_series_is_sane(series, expected):
    assert total(series) == expected


def test_shares_of_several_engines_are_averaged():
    assert mean({"a": 0.5, "b": 1.0}) == 0.75


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": 1.0, "b": 2.0}, {"a": 4.0, "b": 2.0}, 3.0, id="grown"),
        pytest.param({"a": 1.0}, {"a": 1.0}, 0.0, id="stands"),
        pytest.param({"a": 5.0, "b": 0.0}, {"a": 1.0, "b": 9.0}, None, id="one engine anew"),
        pytest.param({"a": 1.0}, {"a": 1.0, "b": 9.0}, None, id="an engine more"),
        pytest.param({"a": 1.0, "b": 9.0}, {"a": 1.0}, None, id="an engine less"),
        pytest.param(None, {"a": 1.0}, None, id="first look"),
        pytest.param({"a": 1.0}, {"a": math.nan}, None, id="not a number"),
        pytest.param({"a": 0.0, "b": 0.0}, {"a": HUGE, "b": HUGE}, None, id="no finite sum"),
    ],
)
def test_growth_is_known_only_within_one_run_of_the_same_engines(before, after, expected):
    assert grown(before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(ZERO, buckets(100, 100, 100), 0.095, id="within the first bucket"),
        pytest.param(ZERO, buckets(90, 100, 100), 0.55, id="within the second"),
        pytest.param(ZERO, buckets(50, 90, 100), 1.0, id="above: the largest bound"),
        pytest.param(buckets(90, 90, 90), buckets(90, 190, 190), 0.955, id="since the last look"),
        pytest.param(ZERO, ZERO, None, id="nothing was observed"),
        pytest.param(None, ZERO, None, id="first look"),
        pytest.param(buckets(1, 1, 1), ZERO, None, id="the engine began anew"),
        pytest.param(ZERO, buckets(5, 4, 6), None, id="buckets that fall"),
        pytest.param(
            buckets(0, 0, bounds=("0.1", "1.0")),
            buckets(5, 5, bounds=("0.1", "1.0")),
            None,
            id="without the last bucket",
        ),
        pytest.param({"a": 0.0}, {"a": 5.0}, None, id="without bounds"),
        pytest.param({'le="x"': 0.0}, {'le="x"': 5.0}, None, id="a bound that is none"),
        pytest.param({'le="NaN"': 0.0}, {'le="NaN"': 5.0}, None, id="a bound that is NaN"),
        pytest.param({'le="+Inf"': 0.0}, {'le="+Inf"': 5.0}, None, id="one bucket for all"),
    ],
)
def test_percentiles_are_those_of_what_was_observed_between_two_looks(before, after, expected):
    found = percentile(before, after, 0.95)

    assert found == (expected if expected is None else pytest.approx(expected))


def test_buckets_of_several_engines_are_summed():
    """One engine is slow: the 95th percentile of both together is between them."""
    zero = {**buckets(0, 0, 0), **buckets(0, 0, 0, engine="1")}
    after = {**buckets(100, 100, 100), **buckets(0, 100, 100, engine="1")}

    assert percentile(zero, after, 0.95) == pytest.approx(0.91)


def test_bounds_are_numbers_not_texts():
    """OpenMetrics writes 1.0 where text 0.0.4 may write 1."""
    zero = {'le="1"': 0.0, 'le="+Inf"': 0.0, 'engine="1",le="1.0"': 0.0, 'engine="1",le="inf"': 0.0}
    after = {**zero, 'le="1"': 10.0, 'le="+Inf"': 10.0}

    assert percentile(zero, after, 0.5) == pytest.approx(0.5)
