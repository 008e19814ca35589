"""What the controller shows over HTTP."""

import http.client
import json

import pytest

from stoker.loop.server import StatusServer
from stoker.metrics import Metrics


@pytest.fixture
def ask():
    """A server whose readiness the test sets, and a function that asks it."""
    state = {"ready": True, "healthy": True}
    metrics = Metrics()
    metrics.set_replicas({("llm", "a"): {"want": 2, "ready": 1, "warming": 1}})
    server = StatusServer(
        "127.0.0.1:0",
        ready=lambda: (state["ready"], {"git": "ok" if state["ready"] else "unreachable"}),
        healthy=lambda: state["healthy"],
        metrics=metrics.text,
    )

    def get(path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request("GET", path)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    yield get, state, metrics
    server.close()


def test_readiness_names_the_part_that_is_not_ready(ask):
    """A person sees which thread or source is down without reading logs."""
    get, state, _ = ask
    state["ready"] = False

    code, body = get("/readyz")

    assert code == 503
    assert json.loads(body) == {"ready": False, "parts": {"git": "unreachable"}}


@pytest.mark.parametrize(("healthy", "code"), [(True, 200), (False, 500)])
def test_liveness_follows_the_loop(ask, healthy, code):
    get, state, _ = ask
    state["healthy"] = healthy

    assert get("/healthz")[0] == code


def test_the_series_of_a_removed_service_is_gone_at_the_next_scrape(ask):
    """cases.md row 97: gauges of dead backends were exported for ever."""
    get, _, metrics = ask
    before = get("/metrics")[1]
    metrics.set_replicas({})
    after = get("/metrics")[1]

    assert b'service="a"' in before
    assert b'service="a"' not in after


def test_other_paths_are_not_found(ask):
    assert ask[0]("/secrets")[0] == 404
