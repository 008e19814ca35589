"""The decision server, to the letter of seed 001 (section Custom metric provider)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders import NOW_MS
from stoker.clock import SystemClock
from stoker.model.readings import Sample, Unmeasurable
from stoker.model.scaling import DecisionQuery
from stoker.signals.decision import API_VERSION, DecisionServer, count_of
from stoker.signals.transport import Whole
from unit.node.metadata_services import Fault, MetadataService, Reply

QUERY = DecisionQuery("main", "fallback-modelforge-01", "modelforge")
OURS: dict[str, Any] = {
    "namespace": "modelforge",
    "serviceId": "fallback-modelforge-01",
    "replicas": {"active": 15},
}


def answer(*decisions, version=API_VERSION):
    return Whole(200, json.dumps({"apiVersion": version, "decisions": decisions}).encode())


def with_active(text):
    body = json.dumps({"apiVersion": API_VERSION, "decisions": [OURS]}).replace("15", text)
    return Whole(200, body.encode())


def count(whole, query=QUERY):
    return count_of(whole, query, NOW_MS, 50_000)


@pytest.mark.parametrize("active", [0, 1, 15, 999_999_999])
def test_the_count_is_absolute_and_zero_is_a_count(active):
    assert count(with_active(str(active))) == Sample(float(active), NOW_MS, 50_000, "replicas")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("-1", "negative"),
        ("1000000000", "not-a-number"),
        ("1e9", "not-a-number"),
        ("2.5", "not-a-number"),
        ("2.0", "not-a-number"),
        ('"3"', "not-a-number"),
        ("true", "not-a-number"),
        ("[3]", "not-a-number"),
        ("null", "missing"),
        pytest.param("9" * 500, "not-a-number", id="500 digits"),
        ("NaN", "refused"),
        pytest.param("9" * 5_000, "refused", id="5000 digits"),
    ],
)
def test_a_count_that_is_none_holds_with_one_clear_reason(text, code):
    """Issue D, bad input; a lying server at any point must not move a count."""
    found = count(with_active(text))

    assert isinstance(found, Unmeasurable)
    assert (code, True) == (found.code, bool(found.why))


OTHER_PLACE = {**OURS, "namespace": "elsewhere", "replicas": {"active": 2}}
OTHER_SERVICE = {**OURS, "serviceId": "other"}


@pytest.mark.parametrize(
    ("decisions", "query", "expected"),
    [
        pytest.param([OTHER_SERVICE], QUERY, "no-match", id="another service"),
        pytest.param([OTHER_PLACE], QUERY, "no-match", id="another namespace"),
        pytest.param([OURS, OURS], QUERY, "many-values", id="twice"),
        pytest.param([OURS, OTHER_PLACE], QUERY, 15.0, id="told apart by namespace"),
        pytest.param(
            [OURS, OTHER_PLACE],
            DecisionQuery("main", "fallback-modelforge-01"),
            "many-values",
            id="not told apart without one",
        ),
        pytest.param([{**OURS, "serviceId": 1}, OURS, None, 3], QUERY, 15.0, id="others are junk"),
        pytest.param([{**OURS, "replicas": 15}], QUERY, "missing", id="replicas is no object"),
        pytest.param([{**OURS, "replicas": {}}], QUERY, "missing", id="no active"),
        pytest.param([], QUERY, "no-match", id="none"),
    ],
)
def test_exactly_one_decision_must_match(decisions, query, expected):
    found = count(answer(*decisions), query)

    assert (found.value if isinstance(found, Sample) else found.code) == expected


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(answer(OURS, version="llmscaling.inference.x-k8s.io/v1"), id="newer"),
        pytest.param(answer(OURS, version=None), id="without"),
        pytest.param(answer(OURS, version=API_VERSION.upper()), id="spelled otherwise"),
        pytest.param(Whole(200, b"[]"), id="no object"),
        pytest.param(Whole(200, b"<html>"), id="no JSON"),
        pytest.param(Whole(200, b"[" * 100_000), id="nested without end"),
        pytest.param(Whole(200, b"\xff\xfe"), id="no text"),
        pytest.param(Whole(503, answer(OURS).content), id="503"),
        pytest.param(Whole(302, answer(OURS).content), id="redirect"),
    ],
)
def test_another_schema_or_status_is_refused(whole):
    found = count(whole)

    assert isinstance(found, Unmeasurable)
    assert found.code == "refused"


def test_decisions_that_are_no_list_match_nothing():
    body = json.dumps({"apiVersion": API_VERSION, "decisions": OURS}).encode()
    found = count(Whole(200, body))

    assert isinstance(found, Unmeasurable)
    assert found.code == "no-match"


class Decider(MetadataService):
    """A decision server on loopback."""

    def reply(self, request):
        return Reply(200, answer(OURS).content.decode())


def ask(server, timeout=5.0, headers=None, path="/decisions"):
    found = DecisionServer(f"http://{server.address}/", SystemClock())
    query = DecisionQuery("main", OURS["serviceId"], "modelforge", path)
    return found.count(query, headers or {}, timeout, 50_000)


def test_the_service_is_asked_for_by_its_id_with_headers_as_they_are():
    with Decider() as server:
        found = ask(server, headers={"Authorization": "Bearer  a b"}, path="/v2/decisions")
        (request,) = server.requests

    assert isinstance(found, Sample)
    assert ("GET", "/v2/decisions", {"serviceId": "fallback-modelforge-01"}) == (
        request.method,
        request.path,
        request.query,
    )
    assert request.headers["authorization"] == "Bearer  a b"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault.HANG, "unreachable"),
        (Fault.ENDLESS, "unreachable"),
        (Fault.CUT, "unreachable"),
        (Fault.ERROR, "refused"),
        (Fault.BUSY, "refused"),
        (Fault.GARBAGE, "refused"),
        (Fault.REDIRECT, "refused"),
    ],
)
def test_a_server_that_fails_is_unmeasurable_never_zero(fault, code):
    with Decider() as server:
        server.fault = fault
        found = ask(server, 0.5)

        assert isinstance(found, Unmeasurable)
        assert (code, 0) == (found.code, server.followed)


def test_nobody_there_is_unmeasurable():
    with Decider() as server:
        gone = server.address
    found = DecisionServer(f"http://{gone}", SystemClock()).count(QUERY, {}, 1.0, 50_000)

    assert isinstance(found, Unmeasurable)
    assert (found.code, found.why) == ("unreachable", "nobody listens there")


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_is_not_asked(name, monkeypatch):
    """A proxy would be handed the headers."""
    with Decider() as proxy, Decider() as server:
        monkeypatch.setenv(name, f"http://{proxy.address}")

        assert isinstance(ask(server), Sample)
        assert proxy.requests == []


@pytest.mark.parametrize("url", ["http://[", "ftp://x", "nothing", "http://a b/"])
def test_an_address_that_is_none_is_unmeasurable(url):
    found = DecisionServer(url, SystemClock()).count(QUERY, {}, 1.0, 50_000)

    assert isinstance(found, Unmeasurable)
