"""The simulated scheduler: what it refuses, in which words, and what it prefers."""

from __future__ import annotations

import pytest

from stoker.sim.pods import condition
from unit.sim.sim_builders import Sim, deployment, model_deployment


@pytest.fixture
def sim():
    made = Sim()
    made.node("n1", gpus=8)
    return made


def node_of(sim, name):
    (found,) = [p for p in sim.all("Pod") if p["metadata"]["labels"]["app"] == name]
    return found["spec"].get("nodeName", "")


def term(key, operator, *values):
    expression = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [expression]}]
                }
            }
        }
    }


CONTAINER = {"name": "c", "image": "x:1"}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({}, True, id="anything"),
        pytest.param({"nodeSelector": {"zone": "a"}}, True, id="selector"),
        pytest.param({"nodeSelector": {"zone": "b"}}, False, id="other selector"),
        pytest.param(term("zone", "In", "a", "b"), True, id="In"),
        pytest.param(term("zone", "NotIn", "a"), False, id="NotIn"),
        pytest.param(term("zone", "Exists"), True, id="Exists"),
        pytest.param(term("zone", "DoesNotExist"), False, id="DoesNotExist"),
        pytest.param(term("slots", "Gt", "3"), True, id="Gt"),
        pytest.param(term("slots", "Lt", "3"), False, id="Lt"),
        pytest.param(term("zone", "Gt", "3"), False, id="Gt of a word"),
    ],
)
def test_selectors_and_affinity(spec, fits):
    sim = Sim()
    sim.node("n1", labels={"zone": "a", "slots": "4"})
    sim.apply(deployment("a", pod={**spec, "containers": [CONTAINER]}))
    sim.settle()

    assert fits == bool(node_of(sim, "a"))


@pytest.mark.parametrize(
    ("amounts", "reason"),
    [
        pytest.param({"cpu": "65"}, "1 Insufficient cpu", id="cpu"),
        pytest.param({"memory": "300Gi"}, "1 Insufficient memory", id="memory"),
        pytest.param({"nvidia.com/gpu": "9"}, "1 Insufficient nvidia.com/gpu", id="gpu"),
        pytest.param({"rdma/hca": "1"}, "1 Insufficient rdma/hca", id="a device nobody has"),
    ],
)
def test_what_does_not_fit_is_told(sim, amounts, reason):
    container = {**CONTAINER, "resources": {"limits": amounts}}
    sim.apply(deployment("a", pod={"containers": [container]}))
    sim.settle()
    (found,) = sim.all("Pod")
    said = condition(found, "PodScheduled") or {}

    assert said["reason"] == "Unschedulable"
    assert f"0/1 nodes are available: {reason}." == said["message"]


def test_dying_pods_keep_their_gpus_until_they_are_gone(sim):
    """Booking them as free would send a replica to a full node."""
    blocker = model_deployment("old", replicas=8)
    engine = blocker["spec"]["template"]["spec"]["containers"][0]
    engine["lifecycle"] = {"preStop": {"sleep": {"seconds": 20}}}
    sim.apply(blocker)
    sim.run(40)
    blocker["spec"]["replicas"] = 7
    sim.apply(blocker, model_deployment("new"))
    sim.run(5)
    during = node_of(sim, "new")
    sim.run(30)

    assert (during, node_of(sim, "new")) == ("", "n1")


def test_the_important_pod_is_placed_first(sim):
    for name, priority in (("low", 0), ("high", 10)):
        made = model_deployment(name, priority=priority)
        container = made["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
        sim.apply(made)
    sim.settle()

    assert ("", "n1") == (node_of(sim, "low"), node_of(sim, "high"))


def test_pods_spread_to_the_emptiest_node(sim):
    sim.node("n2", gpus=8)
    sim.apply(model_deployment(replicas=4))
    sim.settle()

    assert ["n1", "n1", "n2", "n2"] == sorted(p["spec"]["nodeName"] for p in sim.all("Pod"))


def test_a_soft_taint_is_avoided_and_then_taken(sim):
    taint = {"key": "spot", "value": "x", "effect": "PreferNoSchedule"}
    sim.node("a-first-by-name", gpus=1, taints=(taint,))
    sim.apply(model_deployment(replicas=9))
    sim.settle()
    nodes = sorted(p["spec"]["nodeName"] for p in sim.all("Pod"))

    assert ["a-first-by-name", *["n1"] * 8] == nodes
