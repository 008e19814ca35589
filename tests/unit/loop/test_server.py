"""What the controller shows over HTTP."""

import http.client
import json
import socket
import threading

import pytest

from stoker.loop.server import MAX_CONNECTIONS, StatusServer
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


@pytest.fixture
def ask_port():
    server = StatusServer(
        "127.0.0.1:0", ready=lambda: (True, {}), healthy=lambda: True, metrics=Metrics().text
    )
    yield server.port
    server.close()


@pytest.fixture
def ask_raw(ask_port):
    """Send bytes as they are; what comes back first."""

    def send(data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", ask_port), timeout=10) as connection:
            connection.sendall(data)
            return connection.recv(4096)

    return send


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


ROUTES = ("/healthz", "/readyz", "/metrics")


@pytest.mark.parametrize(
    "path",
    ["/", "/secrets", "/api/v1/projects", "/settings", "/metrics/../secrets", "/healthz/x",
     "/debug/pprof", "/credentials", "/%2e%2e/etc/passwd", "/login"],
)  # fmt: skip
def test_every_other_path_gets_the_same_answer(ask, path):
    """b.A rows 26, 30, 32 and 35: three routes without secrets, all else refused alike."""
    assert ask[0](path) == (404, b"not found\n")
    assert all(ask[0](route)[0] == 200 for route in ROUTES)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_sent(ask_raw, method):
    """b.A row 11 (CVE-2024-40634): a body of a stranger is not even read."""
    sent = f"{method} /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n"

    assert b" 501 " in ask_raw(sent.encode()).splitlines()[0]


def test_many_callers_at_once_are_all_answered(ask):
    """b.A row 16 (CVE-2024-21661): nothing shared is changed on a stranger's behalf."""
    found: list[int] = []

    def call():
        found.extend(ask[0](ROUTES[n % 3])[0] for n in range(20))

    threads = [threading.Thread(target=call) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [200] * 400 == found


def test_callers_who_say_nothing_take_a_bounded_number_of_places(ask_port):
    """b.A row 16: a stranger opens connections until no thread is left."""
    threads = threading.active_count()
    silent = [
        socket.create_connection(("127.0.0.1", ask_port)) for _ in range(MAX_CONNECTIONS + 40)
    ]
    try:
        refused = 0
        for one in silent[MAX_CONNECTIONS:]:
            one.settimeout(10)
            refused += one.recv(1) == b""
        assert 40 == refused
        assert threading.active_count() <= threads + MAX_CONNECTIONS
    finally:
        for one in silent:
            one.close()
