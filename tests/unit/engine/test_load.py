"""How busy an engine is, and that every kind of failure is None and never zero."""

from __future__ import annotations

import socket
import threading

import pytest

from stoker.engine import in_flight, in_flight_from_metrics
from stoker.sim.engine import Engine
from stoker.sim.engine_profile import EngineFaults, MetricsFault

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 2.0
"""


def page(running: str, waiting: str, prefix: str = "vllm:") -> str:
    return (
        f'{prefix}num_requests_running{{model_name="m"}} {running}\n'
        f'{prefix}num_requests_waiting{{model_name="m"}} {waiting}\n'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(VLLM, 5, id="the page of vLLM"),
        pytest.param(page("1", "0", "vllm_"), 1, id="names without a colon"),
        pytest.param(page("1", "0") + page("1", "0", "vllm_"), 1, id="both names count once"),
        pytest.param(VLLM + page("4", "1").replace('"m"', '"n"'), 10, id="engines are summed"),
        pytest.param(page("1", "0").replace('"m"', '"a } b"'), 1, id="a brace in a label"),
        pytest.param(
            "vllm:num_requests_running 2\nvllm:num_requests_waiting 1\n", 3, id="no labels"
        ),
        pytest.param(
            "vllm:num_requests_running 2 1700\nvllm:num_requests_waiting 1 17\n", 3, id="stamped"
        ),
        pytest.param(page("0.0", "0.0"), 0, id="idle"),
        pytest.param(page("0.2", "0"), 1, id="a part of a request is a request"),
    ],
)
def test_running_and_waiting_are_added_up(text, expected):
    assert expected == in_flight_from_metrics(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("<html>Bad gateway</html>", id="another page"),
        pytest.param(page("1", "0").splitlines()[0], id="cut short"),
        pytest.param(page("NaN", "0"), id="NaN"),
        pytest.param(page("+Inf", "0"), id="infinite"),
        pytest.param(page("-1", "0"), id="negative"),
        pytest.param(page("many", "0"), id="not a number"),
        pytest.param(
            'vllm:num_requests_running{model="m"}\nvllm:num_requests_waiting 0', id="no value"
        ),
        pytest.param(page("1", "0", "other_"), id="another engine"),
    ],
)
def test_what_does_not_say_both_is_unknown_and_not_idle(text):
    """cases.md row 115: an unknown load is not spare capacity."""
    assert in_flight_from_metrics(text) is None


def test_an_idle_engine_on_loopback_says_zero():
    with Engine() as engine:
        assert in_flight(engine.address, 2.0) == 0


@pytest.mark.parametrize("fault", [MetricsFault.HANG, MetricsFault.ERROR])
def test_a_broken_metrics_page_is_unknown(fault):
    with Engine(faults=EngineFaults(metrics=fault)) as engine:
        assert in_flight(engine.address, 0.3) is None


def test_a_dead_engine_is_unknown():
    with Engine() as engine:
        address = engine.address

    assert in_flight(address, 0.5) is None


@pytest.mark.parametrize("address", ["", "127.0.0.1:0", "not a host", "127.0.0.1:99999"])
def test_nonsense_for_an_address_is_unknown(address):
    assert in_flight(address, 0.2) is None


def test_a_page_that_trickles_forever_is_given_up_in_time():
    """Each byte renews a read timeout; only the whole deadline ends this."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        stop = threading.Event()

        def trickle() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not stop.wait(0.02):
                    try:
                        connection.sendall(b"#")
                    except OSError:
                        return

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        host, port = server.getsockname()

        assert in_flight(f"{host}:{port}", 0.3) is None
        stop.set()
        thread.join(2)
