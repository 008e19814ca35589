"""Pods with real engines: probes that prove a token, and departures without loss."""

from __future__ import annotations

import threading

import httpx
import pytest

from stoker.clock import SystemClock
from stoker.engine import in_flight, serves_token
from stoker.objects import names
from stoker.sim.engine_profile import EngineFaults
from stoker.sim.kubelet import Kubelet
from stoker.sim.kubelet_engines import Engines, probe_passes
from stoker.sim.kubelet_run import FaultKind, PodFault
from stoker.sim.pods import is_ready, restarts_of
from unit.sim.sim_builders import TIMES, Sim, model_deployment

TOKEN = {"startupProbe": {"exec": {"command": ["python3", "-c", "ask for a token"]}}}
HEALTH = {"startupProbe": {"httpGet": {"path": "/health", "port": 8000}}}


class RealSim(Sim):
    """Real time, a thousand times as fast, with engines."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = SystemClock()  # type: ignore[assignment]
        self.engines = Engines(speed=20)
        self.kubelet = Kubelet(
            self.cluster, self.clock, self.server, engines=self.engines, times=TIMES, speed=1000
        )
        self.node("n1")

    def until(self, claim, seconds=10.0):
        deadline = self.clock.monotonic() + seconds
        while not claim():
            assert self.clock.monotonic() < deadline, "it never happened"
            self.settle()
            self.clock.wait(0.01)

    def ready(self):
        return [is_ready(pod) for pod in self.all("Pod")]

    def address(self):
        (pod,) = self.all("Pod")
        return pod["metadata"]["annotations"][names.ADDRESS]


@pytest.fixture
def sim():
    made = RealSim()
    yield made
    made.kubelet.stop()


def with_probe(probe, *args):
    made = model_deployment("llm", *args)
    made["spec"]["template"]["spec"]["containers"][0].update(probe)
    return made


def test_a_ready_pod_has_an_engine_behind_its_annotation(sim):
    sim.apply(with_probe(TOKEN, "--served-model-name", "llama", "alias"))
    sim.until(lambda: sim.ready() == [True])
    models = httpx.get(f"http://{sim.address()}/v1/models").json()["data"]

    assert ["llama", "alias"] == [model["id"] for model in models]
    assert sim.kubelet.engine_address(sim.all("Pod")[0]["metadata"]["name"]) == sim.address()


@pytest.mark.parametrize(
    ("probe", "ready"),
    [pytest.param(TOKEN, False, id="token"), pytest.param(HEALTH, True, id="health")],
)
def test_only_a_token_probe_waits_for_an_engine_whose_health_lies(sim, probe, ready):
    """cases.md row 91: /health answers 200 while the first completion fails."""
    sim.engines.faults = EngineFaults(completions_fail_seconds=10_000)
    sim.apply(with_probe(probe))

    def healthy():
        return [
            httpx.get(f"http://{pod['metadata']['annotations'][names.ADDRESS]}/health").is_success
            for pod in sim.all("Pod")
            if names.ADDRESS in (pod["metadata"].get("annotations") or {})
        ] == [True]

    sim.until(healthy)
    for _ in range(5):
        sim.settle()
        sim.clock.wait(0.1)

    assert [ready] == sim.ready()


def test_a_stuck_engine_is_never_ready(sim):
    sim.kubelet.faults.append(PodFault(FaultKind.STUCK_START))
    sim.apply(with_probe(HEALTH))
    sim.until(lambda: any(run.engine for run in sim.kubelet._runs.values()))
    for _ in range(5):
        sim.settle()
        sim.clock.wait(0.05)

    assert [False] == sim.ready()


def test_a_crashed_engine_is_restarted(sim):
    sim.apply(with_probe(TOKEN))
    sim.until(lambda: sim.ready() == [True])
    first = sim.address()
    for run in tuple(sim.kubelet._runs.values()):
        run.engine.crash()
    sim.until(lambda: restarts_of(sim.all("Pod")[0]) == 1 and sim.ready() == [True])

    assert first != sim.address()
    assert serves_token(sim.address(), 1.0).ok


def test_a_deleted_pod_finishes_what_is_in_flight(sim):
    """SIGTERM with --shutdown-timeout: no failed request."""
    sim.apply(with_probe(TOKEN, "--shutdown-timeout=20"))
    sim.until(lambda: sim.ready() == [True])
    address = sim.address()
    answers = []
    body = {"prompt": "x", "max_tokens": 300}
    caller = threading.Thread(
        target=lambda: answers.append(
            httpx.post(f"http://{address}/v1/completions", json=body, timeout=20).status_code
        )
    )
    caller.start()
    sim.until(lambda: in_flight(address, 1.0) == 1)
    sim.delete("Deployment", "llm")
    sim.until(lambda: sim.all("Pod") == [])
    caller.join(10)

    assert [200] == answers
    assert in_flight(address, 0.3) is None


def test_a_pod_without_probes_is_ready_when_it_runs():
    assert probe_passes({"spec": {"containers": [{"name": "engine"}]}}, "127.0.0.1:1")
