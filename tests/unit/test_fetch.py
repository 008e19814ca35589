"""One bounded request: what a broken or hostile service does ends in time and is no answer."""

from __future__ import annotations

import socket

import pytest

from stoker.fetch import Answer, NoAnswer, fetch
from unit.node.metadata_services import PREEMPTED_PATH, Fault, GcpService

GOOGLE = {"Metadata-Flavor": "Google"}


def ask(service, timeout=5.0, most_bytes=1000, **more):
    url = f"http://{service.address}{PREEMPTED_PATH}"
    return fetch(url, timeout, most_bytes=most_bytes, headers=GOOGLE, **more)


def test_an_answer_comes_with_status_body_and_headers():
    with GcpService() as service:
        answer = ask(service)

    assert isinstance(answer, Answer)
    assert (answer.status, answer.text) == (200, "FALSE")
    assert answer.headers["metadata-flavor"] == "Google"


def test_another_status_is_an_answer_too():
    with GcpService() as service:
        service.fault = Fault.ERROR
        answer = ask(service)

    assert isinstance(answer, Answer)
    assert answer.status == 500


def test_method_and_body_are_sent():
    with GcpService() as service:
        ask(service, method="POST", body=b"said")

        assert [(r.method, r.body) for r in service.requests] == [("POST", "said")]


@pytest.mark.parametrize("fault", [Fault.HANG, Fault.TRICKLE, Fault.ENDLESS, Fault.CUT])
def test_what_is_not_whole_in_time_is_no_answer(fault):
    """Each byte of a trickle renews a read timeout; only the whole deadline ends it."""
    with GcpService() as service:
        service.fault = fault

        assert isinstance(ask(service, 0.3), NoAnswer)


def test_a_redirect_is_an_answer_and_is_not_followed():
    with GcpService() as service:
        service.fault = Fault.REDIRECT
        answer = ask(service)

        assert isinstance(answer, Answer)
        assert (answer.status, service.followed) == (302, 0)


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_of_the_environment_is_not_asked(name, monkeypatch):
    """A proxy would be handed the tokens of the machine."""
    with GcpService() as proxy, GcpService() as service:
        monkeypatch.setenv(name, f"http://{proxy.address}")

        assert isinstance(ask(service), Answer)
        assert proxy.requests == []


def test_an_answer_over_the_bound_is_none():
    with GcpService() as service:
        assert isinstance(ask(service, most_bytes=4), NoAnswer)
        assert isinstance(ask(service, most_bytes=5), Answer)


def test_nobody_at_an_address_is_told_apart_from_silence():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        silent = fetch(f"http://127.0.0.1:{port}/", 0.1, most_bytes=1)
    gone = fetch(f"http://127.0.0.1:{port}/", 0.5, most_bytes=1)

    assert isinstance(silent, NoAnswer)
    assert isinstance(gone, NoAnswer)
    assert (silent.refused, gone.refused) == (False, True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://127.0.0.1/",
        "file:///etc/passwd",
        "http://",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "http://[::1/",
        "http://not a host/",
        "http://127.0.0.1/a b\n",
    ],
)
def test_nonsense_for_an_address_is_no_answer(url):
    assert isinstance(fetch(url, 0.2, most_bytes=1), NoAnswer)
