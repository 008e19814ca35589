"""Headers of a source: verbatim, from Secrets, and in no message."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from stoker.errors import Stalled, Unreachable
from stoker.model.readings import Sample, Unmeasurable
from stoker.model.scaling import DecisionQuery, MetricSource, MetricSourceType, PrometheusQuery
from stoker.signals.headers import SecretHeaders
from stoker.signals.questions import Question
from stoker.signals.sources import Sources
from stoker.sim.clock import DEFAULT_START_MS, VirtualClock
from unit.signals.fake_prometheus import QUERY_PATH, FakePrometheus, vector

TOKEN = "canary-token-8412"


class Secrets:
    """The part of the Cluster port that is used; `reads` are the names asked for."""

    def __init__(self, **secrets):
        self.secrets = secrets
        self.reads = []

    def get(self, ref, *, subresource=""):
        self.reads.append((ref.kind, ref.namespace, ref.name))
        found = self.secrets[ref.name]
        if isinstance(found, Exception):
            raise found
        data = {
            key: value
            if isinstance(value, int)
            else base64.b64encode(value.encode("latin-1")).decode()
            for key, value in found.items()
        }
        return {"data": data}


def source(*secrets, kind="prometheus", url="http://127.0.0.1:1"):
    return MetricSource("main", MetricSourceType(kind), url, secrets)


def secret_headers(secrets: Any, clock: VirtualClock) -> SecretHeaders:
    return SecretHeaders(secrets, clock, "stoker-system")


def headers_of(secrets, *names):
    return secret_headers(secrets, VirtualClock())(source(*names))


def test_keys_and_values_of_secrets_become_headers():
    secrets = Secrets(
        one={"Authorization": f"Bearer {TOKEN}\n", "X-Scope-OrgID": "a"}, two={"X-Scope-OrgID": "b"}
    )

    assert {"Authorization": f"Bearer {TOKEN}", "X-Scope-OrgID": "b"} == headers_of(
        secrets, "one", "two"
    )
    assert ("Secret", "stoker-system", "one") == secrets.reads[0]


def test_a_secret_without_keys_gives_no_header():
    assert headers_of(Secrets(one={}), "one") == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Author ization", TOKEN),
        ("", TOKEN),
        ("X-A", f"{TOKEN}\r\nX-B: 2"),
        ("X-A", f"{TOKEN}\x00"),
        ("X-A", 7),
    ],
)
def test_a_key_that_is_no_header_is_refused_without_its_value(key, value):
    """A line break in a value would begin a header of somebody else's choice."""
    with pytest.raises(Stalled) as caught:
        headers_of(Secrets(one={key: value}), "one")

    assert TOKEN not in str(caught.value)


def test_a_secret_is_read_once_a_minute():
    clock = VirtualClock()
    secrets = Secrets(one={"X-A": "old"})
    headers = secret_headers(secrets, clock)
    headers(source("one"))
    secrets.secrets["one"] = {"X-A": "new"}
    kept = headers(source("one"))
    clock.advance(60_000)
    rotated = headers(source("one"))

    assert ({"X-A": "old"}, {"X-A": "new"}) == (kept, rotated)
    assert len(secrets.reads) == 2


def answer(question, secrets, clock=None):
    used = clock or VirtualClock()
    sources = Sources(used, secret_headers(secrets, used))
    try:
        return sources.answer(question, 5.0)
    finally:
        sources.close()


def promql(given):
    return Question(given, PrometheusQuery("main", "x"), 50_000)


@pytest.mark.parametrize(
    ("error", "code"),
    [(Unreachable("no answer"), "unreachable"), (Stalled("not found"), "refused")],
)
def test_without_its_headers_a_source_is_not_asked(error, code):
    with FakePrometheus(vector(({}, DEFAULT_START_MS / 1000, "1"))) as server:
        found = answer(promql(source("one", url=server.url)), Secrets(one=error))

        assert isinstance(found, Unmeasurable)
        assert (code, []) == (found.code, server.requests)


def test_headers_are_sent_and_never_shown():
    """Gateways quote what they refuse."""
    secrets = Secrets(one={"Authorization": f"Bearer {TOKEN}"})
    with FakePrometheus(vector(({}, DEFAULT_START_MS / 1000, "1"))) as server:
        given = promql(source("one", url=server.url))
        measured = answer(given, secrets)
        server.status, server.body = 403, f'{{"error": "token {TOKEN} is old"}}'
        refused = answer(given, secrets)
        asked = server.asked(QUERY_PATH)

    assert isinstance(measured, Sample)
    assert all(each.headers["authorization"] == f"Bearer {TOKEN}" for each in asked)
    assert isinstance(refused, Unmeasurable)
    assert refused.why == "source main: HTTP 403: token *** is old"


@pytest.mark.parametrize(
    "question",
    [
        Question(source(kind="decision"), PrometheusQuery("main", "x"), 1),
        Question(source(kind="scrape"), PrometheusQuery("main", "x"), 1, by_pod=True),
        Question(source(kind="prometheus"), DecisionQuery("main", "qwen"), 1),
    ],
)
def test_a_source_of_another_type_is_not_asked(question):
    found = answer(question, Secrets())

    assert isinstance(found, Unmeasurable)
    assert (found.code, "is of type" in found.why) == ("refused", True)
