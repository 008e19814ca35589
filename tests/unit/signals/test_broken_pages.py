"""No page and no answer, however broken, raises or becomes a sample that is not sane."""

from __future__ import annotations

import json
import math
from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import NOW_MS
from stoker.engine.counters import counters_from_metrics
from stoker.engine.load import in_flight_from_metrics
from stoker.model.readings import EngineReading, Reading, Sample, Unmeasurable
from stoker.model.scaling import Aggregate, DecisionQuery, ScrapeQuery
from stoker.signals.aggregate import aggregated
from stoker.signals.decision import API_VERSION, count_of
from stoker.signals.engine_reading import engine_reading
from stoker.signals.offered import offered
from stoker.signals.prometheus import _results, _sample
from stoker.signals.scrape import ENGINE_METRICS
from stoker.signals.transport import Whole
from unit.signals.signal_builders import VALID_MS, a_look, a_pod

CODES = {
    "missing",
    "not-a-number",
    "negative",
    "stale",
    "many-values",
    "unreachable",
    "refused",
    "no-match",
}

values = st.one_of(
    st.sampled_from(
        ["0", "1", "NaN", "+Inf", "-Inf", "-1", "1.7e308", "1e999", "", "x", "0x1", "1_0"]
    ),
    st.floats(0, 1e6).map(repr),
)
labels = st.sampled_from(
    [
        "",
        "{}",
        '{engine="0"}',
        '{engine="1",le="0.1"}',
        '{le="+Inf",engine="0"}',
        '{le="NaN"}',
        '{le="-Inf"}',
        '{le=""}',
        '{handler="/v1/completions",status="503"}',
        '{a="}',
        '{a="\\',
        "{{",
    ]
)
names = st.sampled_from(
    [*ENGINE_METRICS, "vllm_num_requests_waiting", "vllm:gpu_cache_usage_perc", "#", "# TYPE"]
)
lines = st.one_of(
    st.builds(lambda name, label, value: f"{name}{label} {value}", names, labels, values),
    st.builds(
        lambda name, kind: f"# TYPE {name} {kind}",
        names,
        st.sampled_from(["counter", "gauge", "histogram", "summary", "", "x y"]),
    ),
    st.text(max_size=40),
)
pages = st.lists(lines, max_size=40).map("\n".join)
queries = st.builds(
    ScrapeQuery,
    st.sampled_from([*ENGINE_METRICS, "vllm:time_to_first_token_seconds", "nothing"]),
    st.sampled_from(Aggregate),
)


def assert_sane(reading: Reading) -> None:
    if isinstance(reading, Sample):
        assert math.isfinite(reading.value)
        assert reading.value >= 0
    else:
        assert isinstance(reading, Unmeasurable)
        assert reading.code in CODES
        assert reading.why


@settings(max_examples=600)
@given(before=st.none() | pages, after=pages, other=pages, query=queries)
def test_no_page_gives_anything_but_sane_readings(before, after, other, query):
    looks = [
        a_look(before, after, query.metric),
        a_look(other, after, query.metric, pod=a_pod("qwen-1")),
    ]
    assert_sane(aggregated(query, looks, NOW_MS, VALID_MS))
    load = offered(None, looks, NOW_MS, VALID_MS)
    assert_sane(load.arrivals)
    for amount in (load.prefill_tokens, load.output_tokens):
        assert amount is None or (math.isfinite(amount) and amount >= 0)
    for look in looks:
        reading = engine_reading(look)
        assert reading is not None
        for field in fields(EngineReading):
            value = getattr(reading, field.name)
            if isinstance(value, float):
                assert math.isfinite(value), field.name
                assert value >= 0, field.name


@settings(max_examples=300)
@given(page=pages)
def test_no_page_breaks_who_asks_for_five_metrics(page):
    counters_from_metrics(page)
    found = in_flight_from_metrics(page)

    assert found is None or found >= 0


documents = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(
            ["success", "vector", "scalar", "1", "NaN", "-1", "+Inf", API_VERSION, "qwen", ""]
        ),
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "status",
                    "data",
                    "resultType",
                    "result",
                    "metric",
                    "value",
                    "warnings",
                    "isPartial",
                    "apiVersion",
                    "decisions",
                    "serviceId",
                    "namespace",
                    "replicas",
                    "active",
                ]
            ),
            children,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=600)
@given(data=documents, wrap=st.booleans())
def test_no_answer_of_prometheus_gives_anything_but_sane_readings(data, wrap):
    document = {"status": "success", "data": {"resultType": "vector", "result": data}}
    found = _results(200, document if wrap else data, NOW_MS)
    if isinstance(found, Unmeasurable):
        assert_sane(found)
    else:
        for series in found:
            assert_sane(_sample(series, NOW_MS, VALID_MS))


@settings(max_examples=600)
@given(data=documents, wrap=st.booleans())
def test_no_decision_gives_anything_but_a_count_or_a_reason(data, wrap):
    decision = {"serviceId": "qwen", "replicas": {"active": data}}
    document = {"apiVersion": API_VERSION, "decisions": [decision]} if wrap else data
    whole = Whole(200, json.dumps(document).encode())
    found = count_of(whole, DecisionQuery("main", "qwen"), NOW_MS, VALID_MS)

    assert_sane(found)
    if isinstance(found, Sample):
        assert found.value == int(found.value) < 1e9
