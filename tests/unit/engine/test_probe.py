"""Only a token proves that an engine serves."""

from __future__ import annotations

import httpx
import pytest

from stoker.engine import serves_token
from stoker.engine.probe import Probe
from stoker.sim.engine import Engine
from stoker.sim.engine_profile import EngineFaults, EngineProfile


def test_a_serving_engine_passes():
    with Engine(EngineProfile(models=("llama",))) as engine:
        assert Probe(ok=True) == serves_token(engine.address, 2.0)
        assert Probe(ok=True) == serves_token(engine.address, 2.0, model="llama")


def test_an_engine_whose_health_lies_does_not_pass():
    """cases.md row 91: /health says ok before the first completion works."""
    with Engine(faults=EngineFaults(completions_fail_seconds=60)) as engine:
        health = httpx.get(f"http://{engine.address}/health")
        probe = serves_token(engine.address, 2.0)

    assert health.status_code == 200
    assert Probe(ok=False, reason="completion answered HTTP 500") == probe


@pytest.mark.parametrize(
    ("profile", "model", "reason"),
    [
        pytest.param(EngineProfile(load_seconds=60), "", "serves no model", id="loading"),
        pytest.param(EngineProfile(), "other", "completion answered HTTP 404", id="other model"),
    ],
)
def test_the_reason_of_a_failure_is_told(profile, model, reason):
    with Engine(profile) as engine:
        assert Probe(ok=False, reason=reason) == serves_token(engine.address, 2.0, model=model)


def test_nobody_there_fails_with_the_reason():
    with Engine() as engine:
        address = engine.address

    probe = serves_token(address, 0.5)

    assert not probe.ok
    assert probe.reason.startswith("ConnectError")
