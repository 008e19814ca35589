"""The names under which a metric may stand, and which of them count."""

from __future__ import annotations

import pytest

from stoker.engine.page import counting_names, samples_of
from stoker.engine.spellings import spellings


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm:num_requests_waiting", "vllm_num_requests_waiting"),
        ("vllm_num_requests_waiting", "vllm:num_requests_waiting"),
        ("vllm:prompt_tokens_total", "vllm:prompt_tokens"),
        ("vllm:prompt_tokens", "vllm:prompt_tokens_total"),
        ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ("vllm:gpu_cache_usage_perc", "vllm_kv_cache_usage_perc"),
        (
            "vllm:inter_token_latency_seconds_bucket",
            "vllm:time_per_output_token_seconds_bucket",
        ),
        ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits"),
        ("router_queue_total", "router_queue"),
    ],
)
def test_a_metric_is_looked_for_under_all_its_names(name, expected):
    found = spellings(name)

    assert found[0] == name
    assert expected in found


def test_names_that_are_not_the_engines_are_not_renamed():
    assert spellings("kv_cache_usage_perc") == (
        "kv_cache_usage_perc",
        "kv_cache_usage_perc_total",
    )


@pytest.mark.parametrize(
    ("lines", "name", "counts"),
    [
        pytest.param("# TYPE a_total counter", "a_total", True, id="text 0.0.4"),
        pytest.param("# TYPE a counter", "a_total", True, id="OpenMetrics"),
        pytest.param("# TYPE a counter", "a", True, id="a counter without _total"),
        pytest.param("# TYPE a_total gauge", "a_total", False, id="a gauge called _total"),
        pytest.param("# TYPE a histogram", "a_sum", True, id="the sum of a histogram"),
        pytest.param("# TYPE a summary", "a_count", True, id="the count of a summary"),
        pytest.param("# TYPE a_count gauge", "a_count", False, id="a gauge called _count"),
        pytest.param("", "a_total", True, id="without a TYPE by the ending"),
        pytest.param("", "a_bucket", True, id="without a TYPE, buckets"),
        pytest.param("", "a_count", False, id="without a TYPE, no counter"),
        pytest.param("# TYPE a untyped", "a", False, id="untyped"),
        pytest.param("# TYPE", "a", False, id="a TYPE of nothing"),
    ],
)
def test_what_only_grows_is_known_by_its_type(lines, name, counts):
    assert counting_names(lines, [name]) == (frozenset({name}) if counts else frozenset())


def test_whole_names_are_read_without_a_prefix():
    page = '# HELP a b\na{x="1"} 2\nvllm:b 3\n'

    assert samples_of(page, {"a", "vllm:b"}) == {"a": {'x="1"': 2.0}, "vllm:b": {"": 3.0}}
