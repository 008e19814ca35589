"""Counters of an engine's page, by old and new names, in both text formats."""

from __future__ import annotations

import pytest

from stoker.engine.counters import EngineCounters, counters_from_metrics, engine_counters
from stoker.fetch import NoAnswer
from stoker.sim.engine import Engine
from stoker.sim.engine_profile import EngineFaults, MetricsFault

LABELS = 'engine="0",model_name="m"'
TEXT = f"""\
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{{LABELS}}} 40.0
vllm:generation_tokens_created{{{LABELS}}} 1.7e+09
vllm:prefix_cache_queries_total{{{LABELS}}} 20.0
vllm:prefix_cache_hits_total{{{LABELS}}} 5.0
vllm:num_requests_running{{{LABELS}}} 2.0
vllm:num_requests_waiting{{{LABELS}}} 1.0
"""
FULL = EngineCounters({LABELS: 40.0}, {LABELS: 20.0}, {LABELS: 5.0}, 2, 1)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(TEXT, id="text 0.0.4"),
        pytest.param(TEXT.replace("vllm:", "vllm_"), id="names without a colon"),
        pytest.param(TEXT + TEXT.replace("vllm:", "vllm_"), id="both names count once"),
        pytest.param(TEXT.replace("_total{", "{"), id="names without _total"),
        pytest.param(TEXT.replace("prefix_cache", "gpu_prefix_cache"), id="names before 0.9"),
        pytest.param(
            TEXT.replace("40.0", '40.0 1795996800.5 # {trace_id="a b} c"} 1.0 1795996800.1')
            + "# EOF\n",
            id="OpenMetrics with an exemplar",
        ),
        pytest.param(TEXT.replace("\n", "\r\n").replace("\r\n", " \r\n"), id="blanks at the end"),
    ],
)
def test_the_counters_of_a_page_are_read(page):
    assert counters_from_metrics(page) == FULL


def test_labels_may_hold_braces_quotes_and_line_separators():
    strange = 'model_name="a } \\" {b\u2028c"'
    page = f"vllm:generation_tokens_total{{{strange}}} 3\n"

    assert counters_from_metrics(page).generation_tokens == {strange: 3.0}


def test_series_are_kept_apart():
    page = TEXT + 'vllm:generation_tokens_total{engine="1",model_name="m"} 7\n'

    assert counters_from_metrics(page).generation_tokens == {
        LABELS: 40.0,
        'engine="1",model_name="m"': 7.0,
    }


@pytest.mark.parametrize("value", ["NaN", "-1", "+Inf", "many", ""])
def test_a_value_that_is_no_count_is_absent_and_spoils_nothing_else(value):
    found = counters_from_metrics(TEXT.replace("40.0", value))

    assert found.generation_tokens is None
    assert found.running == 2


def test_hits_without_queries_are_neither():
    page = TEXT.replace("prefix_cache_queries_total", "prefix_cache_other_total")

    found = counters_from_metrics(page)

    assert (found.cache_queries, found.cache_hits) == (None, None)


def test_two_samples_of_one_series_are_not_believed():
    assert counters_from_metrics(TEXT + TEXT).generation_tokens is None


@pytest.mark.parametrize("page", ["", "<html>Bad gateway</html>", TEXT.replace("vllm:", "tgi_")])
def test_another_page_says_nothing(page):
    assert counters_from_metrics(page) == EngineCounters()


def test_the_engine_stand_in_is_read():
    with Engine() as engine:
        found = engine_counters(engine.address, 5.0)

    assert isinstance(found, EngineCounters)
    assert (found.running, found.waiting) == (0, 0)
    assert found.generation_tokens
    assert list(found.generation_tokens.values()) == [0.0]


@pytest.mark.parametrize("fault", [MetricsFault.HANG, MetricsFault.ERROR])
def test_a_broken_page_is_no_answer(fault):
    with Engine(faults=EngineFaults(metrics=fault)) as engine:
        assert isinstance(engine_counters(engine.address, 0.3), NoAnswer)
