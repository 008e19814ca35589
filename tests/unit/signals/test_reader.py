"""The port: what is asked of several services comes back together, whatever fails of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from stoker.model.readings import Sample, SignalAsk, Unmeasurable
from stoker.model.scaling import (
    DecisionQuery,
    MetricSource,
    MetricSourceType,
    PrometheusQuery,
    ScaleDown,
    ScaleToZero,
    WakeSource,
)
from stoker.signals.decision import API_VERSION
from stoker.signals.reader import SignalReader
from stoker.sim.clock import DEFAULT_START_MS, VirtualClock
from unit.node.metadata_services import Fault, MetadataService, Reply
from unit.signals.fake_prometheus import FakePrometheus, vector
from unit.signals.signal_builders import a_page, a_pod, a_scaling, an_ask, scrape

NOW = DEFAULT_START_MS / 1000
WAITING = "vllm:num_requests_waiting"


class Page(MetadataService):
    """Something with a metrics page."""

    def __init__(self, page: str = "") -> None:
        super().__init__()
        self.page = page

    def reply(self, request):
        return Reply(200, self.page) if request.path == "/metrics" else Reply(404)

    def pod(self, name="qwen-0", **more):
        return a_pod(name, address=self.address, **more)


class Decider(MetadataService):
    """A decision server that wants three."""

    def reply(self, request):
        decision = {"serviceId": request.query["serviceId"], "replicas": {"active": 3}}
        return Reply(200, json.dumps({"apiVersion": API_VERSION, "decisions": [decision]}))


def source(kind, url, name="main"):
    return MetricSource(name, MetricSourceType(kind), url)


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def reader(clock):
    made = SignalReader(clock, lambda _source: {})
    yield made
    made.close()


def one(reader, ask: SignalAsk, seconds=5.0):
    (found,) = reader.read((ask,), seconds)
    return found


def test_metrics_come_by_name_in_the_order_of_the_file(reader):
    scaling = a_scaling({"queue": scrape(WAITING), "kv": scrape("vllm:kv_cache_usage_perc", "max")})
    with Page(a_page(waiting=4, kv=0.5)) as engine:
        found = one(reader, an_ask(scaling, engine.pod()))

    assert [("queue", 4.0), ("kv", 0.5)] == [
        (name, reading.value) for name, reading in found.metrics if isinstance(reading, Sample)
    ]
    assert [(4.0, "qwen-0")] == [(engine.waiting, engine.pod) for engine in found.engines]


def test_the_second_read_knows_rates_and_what_is_offered(reader, clock):
    with Page(a_page()) as engine:
        ask = an_ask(a_scaling(), engine.pod())
        first = one(reader, ask)
        engine.page = a_page(generated=300, finished=20)
        clock.advance(10_000)
        second = one(reader, ask)

    assert isinstance(first.load.arrivals, Unmeasurable)
    assert (30.0, 2.0, True) == (
        second.engines[0].decode_tokens_per_second,
        second.load.arrivals.value,
        second.load.estimated,
    )


def test_a_pod_that_was_replaced_under_its_address_starts_anew(reader, clock):
    with Page(a_page(generated=100)) as engine:
        one(reader, an_ask(a_scaling(), engine.pod(uid="old")))
        engine.page = a_page(generated=400)
        clock.advance(10_000)
        found = one(reader, an_ask(a_scaling(), engine.pod(uid="new")))

    assert [("new", None)] == [
        (each.pod_uid, each.decode_tokens_per_second) for each in found.engines
    ]


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.ERROR, Fault.CUT, Fault.GARBAGE])
def test_a_pod_that_fails_makes_the_service_unmeasurable_and_no_other(reader, fault):
    scaling = a_scaling({"queue": scrape(WAITING)})
    with Page(a_page(waiting=1)) as good, Page(a_page()) as bad:
        bad.fault = fault
        broken = an_ask(scaling, good.pod(), bad.pod("qwen-1"))
        whole = an_ask(scaling, good.pod("llama-0"), name="llama")
        found = reader.read((broken, whole), 1.0)

    assert ["qwen", "llama"] == [each.ref.name for each in found]
    assert isinstance(found[0].metrics[0][1], Unmeasurable)
    assert ["qwen-0"] == [engine.pod for engine in found[0].engines]
    assert isinstance(found[1].metrics[0][1], Sample)


def test_a_ready_pod_without_an_address_is_not_known(reader):
    found = one(reader, an_ask(a_scaling({"queue": scrape(WAITING)}), a_pod()))

    assert found.metrics[0][1] == Unmeasurable(
        "unreachable", "pod qwen-0: its address is not known", DEFAULT_START_MS
    )


def parts(value, *ups):
    """An answer about pods: the value, and which of them are scraped."""
    return vector(
        *(({"stoker_part": "value"}, NOW, text) for text in value),
        *(({"stoker_part": "up", "pod": pod}, NOW, up) for pod, up in ups),
    )


def about_pods(reader, data, *pods, query="sum(x{$pods})"):
    with FakePrometheus(data) as server:
        scaling = a_scaling({"queue": PrometheusQuery("main", query)})
        sources = (source("prometheus", server.url),)
        found = one(reader, an_ask(scaling, *(pods or (a_pod(),)), sources=sources))
        queries = [each.query["query"] for each in server.requests if each.query]
    return found.metrics[0][1], queries


def test_pods_in_promql_stand_for_the_ready_pods(reader):
    """Value and scrapes in one query: between two, a scrape may fail."""
    data = parts(["4"], ("qwen-0", "1"))
    found, queries = about_pods(reader, data, a_pod(), a_pod("qwen-1", ready=False))

    assert found == Sample(4.0, DEFAULT_START_MS, 50_000)
    selector = '{namespace="llm",pod=~"qwen-0"}'
    value = f'label_replace((sum(x{selector})\n), "stoker_part", "value", "", "")'
    ups = f'label_replace((max by (pod) (up{selector})\n), "stoker_part", "up", "", "")'
    assert [f"{value} or {ups}"] == queries


@pytest.mark.parametrize(
    ("ups", "ready_ms", "measured"),
    [
        pytest.param([("qwen-0", "1"), ("qwen-1", "1")], 0, True, id="all are scraped"),
        pytest.param([("qwen-0", "1")], 0, False, id="one is not found"),
        pytest.param([("qwen-0", "1"), ("qwen-1", "0")], 0, False, id="one scrape fails"),
        pytest.param([("qwen-0", "1")], DEFAULT_START_MS - 5_000, True, id="it is new"),
        pytest.param([], 0, True, id="no scrapes are known at all"),
    ],
)
def test_a_sum_about_pods_needs_all_of_them_scraped(reader, ups, ready_ms, measured):
    """A scrape that misses one replica must never lower a count (issue D, figure 3)."""
    found, _ = about_pods(reader, parts(["4"], *ups), a_pod(), a_pod("qwen-1", ready_ms=ready_ms))

    assert isinstance(found, Sample) is measured


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (parts([], ("qwen-0", "1")), "missing"),
        (parts(["1", "2"], ("qwen-0", "1")), "many-values"),
        (parts(["NaN"], ("qwen-0", "1")), "not-a-number"),
        ({"resultType": "matrix", "result": []}, "refused"),
    ],
)
def test_a_value_about_pods_is_as_any_other(reader, data, code):
    found, _ = about_pods(reader, data)

    assert isinstance(found, Unmeasurable)
    assert found.code == code


@pytest.mark.parametrize(
    ("query", "word"),
    [
        (PrometheusQuery("gone", "x"), "no metric source gone"),
        (PrometheusQuery("main", "x{$pods}"), "no pod is Ready"),
        (DecisionQuery("gone", "qwen"), "no metric source gone"),
        (scrape("queue", source="gone"), "no page to scrape called gone"),
    ],
)
def test_what_cannot_be_asked_is_missing(reader, query, word):
    sources = (source("prometheus", "http://127.0.0.1:1"),)
    found = one(reader, an_ask(a_scaling({"queue": query}), sources=sources))
    reading = found.metrics[0][1]

    assert isinstance(reading, Unmeasurable)
    assert (reading.code, word in reading.why) == ("missing", True)


def test_one_query_of_several_metrics_is_asked_once(reader):
    query = PrometheusQuery("main", "avg(x)")
    scaling = a_scaling(
        {"one": query, "two": query},
        load=query,
        scale_to_zero=ScaleToZero(wake=(WakeSource("w", query), WakeSource("cron", None))),
    )
    with FakePrometheus(vector(({}, NOW, "4"))) as server:
        found = one(reader, an_ask(scaling, sources=(source("prometheus", server.url),)))
        asked = [each for each in server.requests if each.query]

    assert len(asked) == 1
    value = Sample(4.0, DEFAULT_START_MS, 50_000)
    assert (("one", value), ("two", value)) == found.metrics
    assert ((("w", value),), value, False) == (
        found.wake,
        found.load.arrivals,
        found.load.estimated,
    )


def test_two_services_with_other_queries_share_no_answer(reader):
    """cases.md row 111."""
    with FakePrometheus() as server:
        server.by_query = {"a": vector(({}, NOW, "2")), "b": vector(({}, NOW, "5"))}
        sources = (source("prometheus", server.url),)
        asks = tuple(
            an_ask(a_scaling({"m": PrometheusQuery("main", text)}), name=text, sources=sources)
            for text in ("a", "b")
        )
        found = reader.read(asks, 5.0)

    assert [2.0, 5.0] == [each.metrics[0][1].value for each in found]


def test_a_decision_is_a_reading_too(reader):
    with Decider() as server:
        scaling = a_scaling({"count": DecisionQuery("main", "qwen")})
        found = one(
            reader, an_ask(scaling, sources=(source("decision", f"http://{server.address}"),))
        )

    assert found.metrics[0][1] == Sample(3.0, DEFAULT_START_MS, 50_000, "replicas")


def test_deletion_costs_are_those_of_own_pods(reader):
    cost = PrometheusQuery("main", "kv * 100")
    data = vector(
        ({"pod": "qwen-1"}, NOW, "7"),
        ({"pod": "qwen-0"}, NOW, "9"),
        ({"pod": "llama-0"}, NOW, "1"),
    )
    with FakePrometheus(data) as server:
        ask = an_ask(
            a_scaling(scale_down=ScaleDown(deletion_cost=cost)),
            a_pod("qwen-1"),
            a_pod(),
            sources=(source("prometheus", server.url),),
        )
        found = one(reader, ask)
        server.status = 500
        failed = one(reader, ask)

    assert (("qwen-0", 9.0), ("qwen-1", 7.0)) == found.deletion_costs
    assert failed.deletion_costs == ()


def test_a_router_that_is_scraped_wakes_by_what_its_counter_grew(reader, clock):
    """Issue D: a request between polls counts, though its queue is empty again at each of them."""
    wake = WakeSource("router", scrape("router_requests_total", source="router"))
    with Page("router_requests_total 7\n") as router:
        ask = an_ask(
            a_scaling(scale_to_zero=ScaleToZero(wake=(wake,))),
            sources=(source("scrape", f"http://{router.address}/metrics", "router"),),
        )
        first = one(reader, ask)
        router.page = "router_requests_total 8\n"
        clock.advance(10_000)
        second = one(reader, ask)

    assert isinstance(first.wake[0][1], Unmeasurable)
    assert second.wake == (("router", Sample(0.1, DEFAULT_START_MS + 10_000, 50_000)),)


def test_what_is_offered_to_all_pods_is_their_sum(reader):
    load = scrape("gateway_rate")
    with Page(a_page(more="gateway_rate 2")) as engine:
        pods = (engine.pod(), engine.pod("qwen-1"))
        found = one(reader, an_ask(a_scaling(load=load), *pods))

    assert (4.0, False) == (found.load.arrivals.value, found.load.estimated)


def test_two_scalers_of_one_pod_look_at_it_once(reader):
    with Page(a_page(waiting=3, kv=0.5)) as engine:
        asks = tuple(
            an_ask(a_scaling({"m": scrape(metric)}), engine.pod(), name=metric[-4:])
            for metric in (WAITING, "vllm:kv_cache_usage_perc")
        )
        found = reader.read(asks, 5.0)
        looks = len(engine.requests)

    assert ([3.0, 0.5], 1) == ([each.metrics[0][1].value for each in found], looks)


def test_what_is_not_asked_in_time_is_unmeasurable(reader):
    with FakePrometheus(vector(({}, NOW, "4"))) as server, Page(a_page()) as engine:
        scaling = a_scaling({"a": PrometheusQuery("main", "x"), "b": scrape(WAITING)})
        ask = an_ask(scaling, engine.pod(), sources=(source("prometheus", server.url),))
        found = one(reader, ask, 0.0)

    assert all(isinstance(reading, Unmeasurable) for _, reading in found.metrics)
    assert found.engines == ()


def test_a_source_that_trickles_holds_up_nobody_else(reader):
    """Each byte of its header renews the time of a read; its worker is left behind."""
    with FakePrometheus(vector(({}, NOW, "4"))) as bad, FakePrometheus(bad.data) as good:
        bad.fault = Fault.TRICKLE
        scaling = a_scaling({"a": PrometheusQuery("bad", "x"), "b": PrometheusQuery("good", "x")})
        sources = (
            source("prometheus", bad.url, "bad"),
            source("prometheus", good.url, "good"),
        )
        found = one(reader, an_ask(scaling, sources=sources), 1.0)

    assert [Unmeasurable, Sample] == [type(reading) for _, reading in found.metrics]


def test_pods_that_are_gone_are_forgotten(reader, clock):
    with Page(a_page()) as engine:
        ask = an_ask(a_scaling(), engine.pod())
        one(reader, ask)
        reader.keep((replace(ask, pods=()),))
        clock.advance(10_000)
        found = one(reader, ask)

    assert found.engines[0].window_ms == 0
