"""The engine stand-in over HTTP on loopback, as its clients see it."""

from __future__ import annotations

import json
import threading

import httpx
import pytest

from stoker.engine import in_flight
from stoker.sim.engine import Engine
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.engine_profile import EngineFaults, EngineProfile

FAST = EngineProfile(models=("llama", "llama-alias"), speed=50)
SLOW = EngineProfile(models=("llama",), batch=BatchProfile(step_seconds=0.05))
LONG = {"model": "llama", "prompt": "x" * 40, "max_tokens": 400}


@pytest.fixture
def engine():
    with Engine(FAST) as running:
        yield running


def url(engine: Engine, path: str) -> str:
    return f"http://{engine.address}{path}"


def sample(engine: Engine, name: str, **labels: str) -> float:
    page = httpx.get(url(engine, "/metrics")).text
    for line in page.splitlines():
        if line.startswith(name + "{") and all(f'{k}="{v}"' in line for k, v in labels.items()):
            return float(line.rpartition(" ")[2])
    message = f"{name} is not on the page"
    raise AssertionError(message)


class Call:
    """A completion on a thread; `status` 0 = the connection broke."""

    def __init__(self, engine: Engine, body: dict[str, object]) -> None:
        self.status = -1
        self._thread = threading.Thread(target=self._ask, args=(engine, body), daemon=True)
        self._thread.start()

    def _ask(self, engine: Engine, body: dict[str, object]) -> None:
        try:
            answer = httpx.post(url(engine, "/v1/completions"), json=body, timeout=60)
            self.status = answer.status_code
        except httpx.HTTPError:
            self.status = 0

    def result(self) -> int:
        self._thread.join(60)
        return self.status


def wait_for(condition) -> None:
    """Wait for what must come; the limit is for tests that fail, on however busy a machine."""
    pause = threading.Event()
    for _ in range(6000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it never happened")


# -------------------------------------------------------------------- serving


def test_a_completion_has_its_tokens_and_counts_them(engine):
    body = {"model": "llama-alias", "prompt": "abcdefgh", "max_tokens": 5}
    answer = httpx.post(url(engine, "/v1/completions"), json=body).json()

    assert {"prompt_tokens": 2, "completion_tokens": 5, "total_tokens": 7} == answer["usage"]
    assert answer["choices"][0]["finish_reason"] == "length"
    assert sample(engine, "vllm:prompt_tokens_total") == 2
    assert sample(engine, "vllm:generation_tokens_total") == 5
    assert sample(engine, "vllm:request_success_total", finished_reason="length") == 1
    assert sample(engine, "vllm:time_to_first_token_seconds_count") == 1
    assert sample(engine, "vllm:inter_token_latency_seconds_count") == 4


def test_a_chat_streams_token_by_token(engine):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "stream": True}
    with httpx.stream("POST", url(engine, "/v1/chat/completions"), json=body) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]

    events = [json.loads(line)["choices"][0] for line in lines[:-1]]
    assert lines[-1] == "[DONE]"
    assert [None, None, None, "length"] == [e["finish_reason"] for e in events]
    assert "tok " == events[0]["delta"]["content"]


def test_models_and_metrics_have_the_names_of_vllm(engine):
    models = httpx.get(url(engine, "/v1/models")).json()
    metrics = httpx.get(url(engine, "/metrics"))

    assert ["llama", "llama-alias"] == [m["id"] for m in models["data"]]
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    for name in (
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "vllm:num_preemptions_total",
        "vllm:prefix_cache_queries_total",
        "vllm:e2e_request_latency_seconds_count",
        "vllm:request_queue_time_seconds_count",
        "vllm:cache_config_info",
    ):
        assert f"\n{name}{{" in metrics.text


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/v1/completions", {"model": "other", "prompt": "x"}, 404, id="other model"),
        pytest.param("/v1/completions", {"prompt": "x", "max_tokens": 10**6}, 400, id="too long"),
        pytest.param("/v1/completions", [1], 400, id="not an object"),
        pytest.param("/v1/nothing", {}, 404, id="no such path"),
    ],
)
def test_bad_requests_are_told(engine, path, body, status):
    assert status == httpx.post(url(engine, path), json=body).status_code


def test_requests_beyond_the_batch_wait_and_are_counted():
    profile = EngineProfile(
        models=("llama",), batch=BatchProfile(max_sequences=2, step_seconds=0.05)
    )
    with Engine(profile) as engine:
        calls = [Call(engine, LONG) for _ in range(5)]
        wait_for(lambda: in_flight(engine.address, 1.0) == 5)
        wait_for(lambda: sample(engine, "vllm:num_requests_running") == 2)

        assert sample(engine, "vllm:num_requests_waiting") == 3
        assert sample(engine, "vllm:kv_cache_usage_perc") > 0
        engine.crash()
        assert [0] * 5 == [c.result() for c in calls]


def test_a_client_that_leaves_frees_its_place():
    with Engine(SLOW) as engine:
        with httpx.stream("POST", url(engine, "/v1/completions"), json={**LONG, "stream": True}):
            wait_for(lambda: engine.in_flight == 1)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(url(engine, "/v1/completions"), json=LONG, timeout=0.2)
        wait_for(lambda: engine.in_flight == 0)

        assert sample(engine, "vllm:request_success_total", finished_reason="abort") == 2


# ------------------------------------------------------------ loading, sleeping


def test_nothing_is_served_before_the_load_is_over():
    with Engine(EngineProfile(load_seconds=60)) as engine:
        statuses = [httpx.get(url(engine, p)).status_code for p in ("/health", "/v1/models")]
        statuses.append(httpx.post(url(engine, "/v1/completions"), json={}).status_code)

    assert [503, 503, 503] == statuses


def test_speed_shortens_the_load():
    with Engine(EngineProfile(load_seconds=60, speed=10_000)) as engine:
        wait_for(lambda: engine.loaded)

        assert httpx.get(url(engine, "/health")).status_code == 200


def test_a_stuck_start_never_ends_until_it_is_healed():
    with Engine(faults=EngineFaults(stuck_start=True)) as engine:
        before = httpx.get(url(engine, "/health")).status_code
        engine.fail(stuck_start=False)

        assert (503, 200) == (before, httpx.get(url(engine, "/health")).status_code)


@pytest.mark.parametrize(
    ("level", "state"), [(1, "weights_offloaded"), (2, "discard_all")], ids=["level 1", "level 2"]
)
def test_a_sleeping_engine_holds_requests_until_it_wakes(level, state):
    with Engine(FAST) as engine:
        httpx.post(url(engine, f"/sleep?level={level}"))
        asleep = httpx.get(url(engine, "/is_sleeping")).json()
        shown = sample(engine, "vllm:engine_sleep_state", sleep_state=state)
        call = Call(engine, {"prompt": "x"})
        wait_for(lambda: engine.in_flight == 1)
        httpx.post(url(engine, "/wake_up"))

        assert ({"is_sleeping": True}, 1) == (asleep, shown)
        assert call.result() == 200
        assert {"is_sleeping": False} == httpx.get(url(engine, "/is_sleeping")).json()


def test_sleep_endpoints_exist_only_in_dev_mode():
    """They must never be reachable through a Service by accident."""
    with Engine(EngineProfile(dev_mode=False)) as engine:
        assert httpx.post(url(engine, "/sleep")).status_code == 404
        assert httpx.get(url(engine, "/is_sleeping")).status_code == 404


# ------------------------------------------------------------------- stopping


def test_shutdown_without_a_timeout_breaks_what_is_in_flight():
    """The default of vLLM: --shutdown-timeout 0."""
    with Engine(SLOW) as engine:
        call = Call(engine, LONG)
        wait_for(lambda: engine.in_flight == 1)
        engine.shutdown(0)

        assert call.result() == 0
        assert engine.stopped
        assert in_flight(engine.address, 0.3) is None


def test_shutdown_with_a_timeout_finishes_the_old_and_refuses_the_new():
    with Engine(SLOW) as engine:
        call = Call(engine, {**LONG, "max_tokens": 15})
        wait_for(lambda: engine.in_flight == 1)
        engine.begin_shutdown(30)
        refused = httpx.post(url(engine, "/v1/completions"), json=LONG).status_code

        assert (503, 200) == (refused, call.result())
        assert engine.wait_stopped(5)


def test_what_outlasts_the_timeout_is_broken():
    with Engine(SLOW) as engine:
        call = Call(engine, LONG)
        wait_for(lambda: engine.in_flight == 1)
        engine.shutdown(0.1)

        assert call.result() == 0


def test_a_crash_breaks_open_connections_at_once():
    with Engine(SLOW) as engine:
        call = Call(engine, LONG)
        wait_for(lambda: engine.in_flight == 1)
        engine.crash()

        assert call.result() == 0
        assert engine.stopped


def test_an_answer_that_is_finished_is_written_before_the_end():
    """A drained engine has nothing in flight, and yet bytes on their way."""
    for _ in range(20):
        with Engine(FAST) as engine:
            call = Call(engine, {"prompt": "x", "max_tokens": 3})
            wait_for(lambda: engine.in_flight or call.status == 200)  # noqa: B023
            wait_for(lambda: not engine.in_flight)  # noqa: B023
            engine.shutdown(0)

            assert call.result() == 200


def test_an_engine_that_never_started_can_be_crashed():
    engine = Engine()
    engine.crash()

    assert engine.stopped
