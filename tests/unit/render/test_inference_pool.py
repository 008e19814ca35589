"""expose.inferencePool: one more object beside the Service, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model.inference_pool import InferencePool
from stoker.render import Renderer, render, shape
from unit.render.builders import (
    FLEET_ID,
    FakeRepo,
    decision,
    desired,
    placement,
    plan,
    service,
    unit,
)

POOL = InferencePool("llama-70b", "llama-70b-epp")


@pytest.fixture(scope="module")
def rendered():
    """The manifests and the rev without a pool, and with one."""
    found = []
    repo = FakeRepo()
    with Renderer(1) as renderer:
        for pool in (None, POOL):
            item = unit(replace(service(), inference_pool=pool), "llama")
            fleet = desired(item)
            shapes = shape(fleet, repo, renderer, FLEET_ID)
            answer = plan(decision(item.ref, placement(shapes, item.ref, "node-1", count=2)))
            (made,) = render(fleet, shapes, answer, repo, renderer, FLEET_ID)
            found.append(([m.body for m in made.manifests], shapes.shapes[0].rev))
    return found


def of_kind(bodies, kind):
    return [body for body in bodies if body["kind"] == kind]


def test_the_pool_selects_the_pods_of_the_service_at_their_own_port(rendered):
    bodies, _ = rendered[1]
    (pool,), (front,) = of_kind(bodies, "InferencePool"), of_kind(bodies, "Service")
    (deployment,) = of_kind(bodies, "Deployment")
    (engine,) = deployment["spec"]["template"]["spec"]["containers"]

    assert ("inference.networking.k8s.io/v1", "llama-70b", "llm") == (
        pool["apiVersion"],
        pool["metadata"]["name"],
        pool["metadata"]["namespace"],
    )
    assert front["spec"]["selector"] == pool["spec"]["selector"]["matchLabels"]
    assert [{"number": engine["ports"][0]["containerPort"]}] == pool["spec"]["targetPorts"]
    assert {
        "group": "",
        "kind": "Service",
        "name": "llama-70b-epp",
        "port": {"number": 9002},
        "failureMode": "FailClose",
    } == pool["spec"]["endpointPickerRef"]


def test_nothing_else_changes_and_no_pod_restarts(rendered):
    (without, rev), (bodies, rev_with) = rendered

    assert [] == of_kind(without, "InferencePool")
    assert without == [body for body in bodies if body["kind"] != "InferencePool"]
    assert rev == rev_with
