"""The adapter of prometheus-api-client: what a query gives, and what it must never give."""

from __future__ import annotations

import json
import threading

import pytest

from stoker.clock import SystemClock
from stoker.model.readings import Sample, Unmeasurable
from stoker.signals.prometheus import MOST_CONNECTIONS, Prometheus
from stoker.sim.clock import DEFAULT_START_MS, VirtualClock
from unit.node.metadata_services import Fault
from unit.signals.fake_prometheus import QUERY_PATH, FakePrometheus, vector

NOW = DEFAULT_START_MS / 1000
VALID_MS = 50_000
ONE = vector(({}, NOW, "2.5"))


def value(server, query="avg(x)", timeout=5.0, headers=None, clock=None, settle=120.0):
    found = Prometheus(server.url, clock or VirtualClock(), settle_seconds=settle)
    try:
        return found.value(query, headers or {}, timeout, VALID_MS)
    finally:
        found.close()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(ONE, id="vector"),
        pytest.param({"resultType": "scalar", "result": [NOW, "2.5"]}, id="scalar"),
    ],
)
def test_one_value_is_a_sample(data):
    with FakePrometheus(data) as server:
        assert value(server) == Sample(2.5, DEFAULT_START_MS, VALID_MS)


def test_query_time_limit_and_headers_are_sent():
    with FakePrometheus(ONE) as server:
        value(server, 'avg(x{pod=~"a|b"})', 4.99708, headers={"X-Scope-OrgID": "one two"})
        (asked,) = server.asked(QUERY_PATH)

    assert {"query": 'avg(x{pod=~"a|b"})', "timeout": "4997ms"} == asked.query
    assert asked.headers["x-scope-orgid"] == "one two"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(vector(), "missing", id="empty"),
        pytest.param(vector(({"pod": "a"}, NOW, "1"), ({"pod": "b"}, NOW, "2")), "many-values"),
        pytest.param(vector(({}, NOW, "NaN")), "not-a-number", id="NaN"),
        pytest.param(vector(({}, NOW, "+Inf")), "not-a-number", id="+Inf"),
        pytest.param(vector(({}, NOW, "-Inf")), "not-a-number", id="-Inf"),
        pytest.param(vector(({}, NOW, "")), "not-a-number", id="no text"),
        pytest.param(vector(({}, NOW, "many")), "not-a-number", id="a word"),
        pytest.param(vector(({}, NOW, "-5")), "negative", id="negative"),
        pytest.param(vector(({}, NOW - 51, "1")), "stale", id="old"),
        pytest.param(vector(({}, NOW + 51, "1")), "stale", id="ahead"),
        pytest.param({"resultType": "matrix", "result": []}, "refused", id="range vector"),
        pytest.param({"resultType": "string", "result": [NOW, "x"]}, "refused", id="string"),
        pytest.param({"resultType": "vector", "result": [{"metric": {}}]}, "refused"),
        pytest.param({"resultType": "vector", "result": [7]}, "refused", id="no object"),
        pytest.param({"resultType": "vector", "result": {}}, "refused", id="no list"),
        pytest.param(vector(({}, "now", "1")), "refused", id="no time"),
        pytest.param(vector(({}, 10**400, "1")), "refused", id="no such time"),
        pytest.param(vector(({}, NOW, 1)), "refused", id="a number that is no text"),
        pytest.param({"resultType": "scalar", "result": None}, "refused", id="no scalar"),
        pytest.param(None, "refused", id="no data"),
        pytest.param([], "refused", id="data is a list"),
    ],
)
def test_what_is_no_one_sane_fresh_value_is_unmeasurable(data, code):
    """cases.md rows 101, 103: invalid and held, neither a huge number nor clamped."""
    with FakePrometheus(data) as server:
        found = value(server)

    assert isinstance(found, Unmeasurable)
    assert (code, True) == (found.code, bool(found.why))


def test_a_clock_that_is_a_little_ahead_makes_no_sample_of_the_future():
    with FakePrometheus(vector(({}, NOW + 3, "1"))) as server:
        assert value(server) == Sample(1.0, DEFAULT_START_MS, VALID_MS)


@pytest.mark.parametrize(
    "extra", [{"warnings": ["1 of 2 stores did not answer"]}, {"isPartial": True}]
)
def test_an_answer_that_may_be_partial_is_unmeasurable(extra):
    """The library drops the warnings; the sum in such an answer is too low."""
    with FakePrometheus(ONE) as server:
        server.extra = extra
        found = value(server)

    assert isinstance(found, Unmeasurable)
    assert "may be partial" in found.why


def test_hints_on_the_query_are_no_warnings():
    with FakePrometheus(ONE) as server:
        server.extra = {"infos": ["metric might not be a counter"], "warnings": []}

        assert isinstance(value(server), Sample)


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (
            400,
            json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error: x"}),
            "parse error: x",
        ),
        (503, "Service Unavailable", "HTTP 503"),
        (401, "", "HTTP 401"),
        (200, "<html>", "no answer of Prometheus"),
        (200, json.dumps({"status": "error", "error": "what"}), "what"),
        (200, "[]", "no answer of Prometheus"),
        (200, "[" * 100_000, "no answer of Prometheus"),
        (200, '{"status": "success"}', "gives a nothing"),
    ],
    ids=["bad query", "503", "401", "HTML", "error with 200", "a list", "deep", "no data"],
)
def test_an_error_is_refused_with_its_reason(status, body, word):
    with FakePrometheus() as server:
        server.status, server.body = status, body
        found = value(server)

    assert isinstance(found, Unmeasurable)
    assert found.code == "refused"
    assert word in found.why


@pytest.mark.parametrize(
    "fault", [Fault.HANG, Fault.ENDLESS, Fault.CUT, Fault.REDIRECT, Fault.GARBAGE, Fault.BUSY]
)
def test_a_server_that_misbehaves_is_unmeasurable_in_time_and_asked_once(fault):
    """The library alone waits for ever, tries four times and follows redirects with the token."""
    with FakePrometheus(ONE) as server:
        server.fault = fault
        found = value(server, timeout=0.5, clock=SystemClock())

        assert isinstance(found, Unmeasurable)
        assert (1, 0) == (len(server.requests), server.followed)


def test_a_server_that_is_gone_is_unreachable():
    with FakePrometheus(ONE) as server:
        url = server.url
    found = Prometheus(url, VirtualClock()).value("x", {}, 1.0, VALID_MS)

    assert found == Unmeasurable("unreachable", "nobody listens there", DEFAULT_START_MS)


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_is_not_asked(name, monkeypatch):
    with FakePrometheus(ONE) as proxy, FakePrometheus(ONE) as server:
        monkeypatch.setenv(name, proxy.url)

        assert isinstance(value(server), Sample)
        assert proxy.requests == []


def test_a_server_that_has_just_started_is_not_believed():
    """It may not have scraped every target yet: a sum would be too low (issue D, figure 3)."""
    with FakePrometheus(ONE) as server:
        server.started_ms = DEFAULT_START_MS - 30_000
        found = value(server)

        assert isinstance(found, Unmeasurable)
        assert (found.code, "started 29 s ago" in found.why) == ("stale", True)
        assert isinstance(value(server, settle=20), Sample)


def test_the_start_of_a_server_is_judged_by_its_own_clock():
    """Its clock is 40 s ahead of ours, and so is the start that it tells."""
    with FakePrometheus(vector(({}, NOW + 40, "1"))) as server:
        server.started_ms = DEFAULT_START_MS + 30_000
        found = value(server)

    assert isinstance(found, Unmeasurable)
    assert "started 10 s ago" in found.why or "started 9 s ago" in found.why


def test_the_start_is_asked_for_again_after_a_while_and_after_a_failure():
    clock = VirtualClock()
    with FakePrometheus(ONE) as server:
        adapter = Prometheus(server.url, clock)

        def ask():
            server.data = vector(({}, clock.now_ms() / 1000, "1"))
            server.requests.clear()
            found = adapter.value("x", {}, 5.0, VALID_MS)
            return type(found), [each.path == QUERY_PATH for each in server.requests]

        first, second = ask(), ask()
        clock.advance(6_000)
        later = ask()
        server.status = 500
        failed = ask()
        server.status = 200
        healed = ask()
        adapter.close()

    assert ((Sample, [True, False]), (Sample, [True])) == (first, second)
    assert (Sample, [True, False]) == later
    assert (Unmeasurable, [True]) == failed
    assert (Sample, [True, False]) == healed


@pytest.mark.parametrize("tells", [None, 0])
def test_a_server_that_only_speaks_the_api_is_believed(tells):
    """Thanos, Mimir and others have no start to tell."""
    with FakePrometheus(ONE) as server:
        server.started_ms = tells

        assert isinstance(value(server), Sample)


def test_values_by_pod_leave_out_what_names_no_pod_twice_or_is_no_number():
    data = vector(
        ({"pod": "b"}, NOW, "20"),
        ({"pod": "a"}, NOW, "-3"),
        ({"pod": "twice"}, NOW, "1"),
        ({"pod": "twice", "engine": "1"}, NOW, "2"),
        ({"pod": "nan"}, NOW, "NaN"),
        ({}, NOW, "9"),
    )
    with FakePrometheus(data) as server:
        found = Prometheus(server.url, VirtualClock()).by_pod("x", {}, 5.0)

    assert {"a": -3.0, "b": 20.0} == found


def test_one_server_that_hangs_takes_only_so_many_workers():
    """What more is asked of it is refused at once, so that others are asked in time."""
    with FakePrometheus(ONE) as server:
        adapter = Prometheus(server.url, SystemClock())
        server.fault = Fault.HANG
        lost = [
            threading.Thread(target=adapter.value, args=("x", {}, 1.0, VALID_MS))
            for _ in range(MOST_CONNECTIONS)
        ]
        for thread in lost:
            thread.start()
        while len(server.requests) < MOST_CONNECTIONS:
            threading.Event().wait(0.01)
        found = adapter.value("x", {}, 1.0, VALID_MS)
        for thread in lost:
            thread.join()
        adapter.close()

    assert isinstance(found, Unmeasurable)
    assert "earlier questions have no answer" in found.why
