"""Scenarios and recordings that show only what matters."""

from __future__ import annotations

from typing import Any

import yaml

from stoker.rehearse.record import Outcome, PodLife, PodState, Recording, Request
from stoker.rehearse.scenario import read_scenario
from stoker.rehearse.schema import ScenarioFile


def scenario_text(**spec: Any) -> bytes:
    """A file of one node and the service `a`; a keyword replaces a block of spec."""
    plain: dict[str, Any] = {
        "about": "one node",
        "nodes": [{"name": "n1"}],
        "services": [{"name": "a"}],
        "lasts": "60s",
    }
    body = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "one"},
        "spec": {**plain, **spec},
    }
    return yaml.safe_dump(body, sort_keys=False).encode()


def a_scenario(**spec: Any) -> ScenarioFile:
    """The scenario of `scenario_text`."""
    return read_scenario("one.yaml", scenario_text(**spec))


def a_recording(*requests: Request, **more: Any) -> Recording:
    """A minute of load on `a`, which had one Ready replica on n1 all the time."""
    made = Recording(seed=1, ground="memory", load_ms=0, zero_ms=0, end_ms=60_000)
    made.wanted, made.floors = {"a": 1}, {"a": 1}
    made.ready = {"a": [(-1, 1)]}
    made.pods = {"p1": a_pod("p1", "n1", (-1, PodState.READY))}
    made.requests = list(requests)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def a_pod(uid: str, node: str, *states: tuple[int, PodState]) -> PodLife:
    """A pod of `a`."""
    return PodLife(uid, uid, "a", node, 1, list(states))


def answered(at_ms: int, *, ttft: int = 200, client: str = "lag-0s") -> Request:
    """A request that got its whole answer."""
    return Request(
        "a", client, at_ms, 1000, Outcome.OK, "p1", "n1", at_ms + ttft, at_ms + ttft + 1000
    )


def truncated(at_ms: int, ends_ms: int, *, client: str = "lag-0s") -> Request:
    """A request on n1 whose answer broke off; it would have lasted until `ends_ms`."""
    return Request("a", client, at_ms, 1000, Outcome.TRUNCATED, "p1", "n1", at_ms + 200, ends_ms)


def refused(at_ms: int, *, client: str = "lag-0s") -> Request:
    """A request without an answer."""
    return Request("a", client, at_ms, 1000, Outcome.REFUSED)
