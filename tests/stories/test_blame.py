"""Starts that fail: a broken node is left out and remembered, a broken rev is stopped."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.cli.world import WorldNode
from stoker.sim.kubelet_run import FaultKind, PodFault
from stories.files import a_patient_fleet, a_service, the_fleet, the_village
from stories.looks import conditions, counts_by_node, fleet_status, serving, unit_status, watch

TINY = "ModelService/llm/tiny"


def nodes(count: int) -> tuple[WorldNode, ...]:
    return tuple(WorldNode(f"gpu-{number}") for number in range(1, count + 1))


def tiny(replicas: int, **spec) -> dict[str, str]:
    return the_fleet(a_service(replicas=replicas, **spec), fleet=a_patient_fleet())


def starts_on(world, node: str, seen: set[str]) -> set[str]:
    """Placements (Deployments by UID) that were ever made for that node."""
    for found in world.objects("apps", "Deployment", "llm"):
        if found["metadata"]["annotations"].get("stoker.dev/node") == node:
            seen.add(found["metadata"]["uid"])
    return seen


@pytest.mark.parametrize("kind", [FaultKind.CRASH_LOOP, FaultKind.IMAGE_PULL, FaultKind.REFUSED])
def test_a_broken_node_wastes_one_start_and_the_service_stands_elsewhere(new_world, kind):
    """cases.md row 161: quarantine in place of cordon. Nobody cordons; the replica is elsewhere,
    and scaling up while the quarantine lasts does not try the node again.
    """
    world = new_world(*nodes(4))
    world.kubelet.faults.append(PodFault(kind, node="gpu-1"))
    world.commit("First", tiny(2))
    seen: set[str] = set()
    watch(world, 40, lambda: starts_on(world, "gpu-1", seen))

    assert 2 == len(serving(world))
    assert {"gpu-2": 1, "gpu-3": 1} == counts_by_node(world)
    assert 1 == len(seen)

    world.commit("One more", tiny(3))
    watch(world, 40, lambda: starts_on(world, "gpu-1", seen))

    assert {"gpu-2": 1, "gpu-3": 1, "gpu-4": 1} == counts_by_node(world)
    assert 1 == len(seen)
    status = unit_status(world, TINY)
    told = [node for node in status["nodes"] if node.get("rule") == "quarantined"]
    assert ["gpu-1"] == [node["node"] for node in told]
    assert told[0]["verdict"].startswith("until 20")
    entry = fleet_status(world)["attention"][0]
    assert ("NodesQuarantined", TINY) == (entry["reason"], entry["unit"])
    assert entry["next"].startswith("gpu-1 left out until 20")
    assert "True" == conditions(status)["Ready"][0]


def test_a_quarantine_outlives_the_controller(new_world):
    """It is kept in the cluster: another process does not try the node again."""
    world = new_world(*nodes(3))
    world.kubelet.faults.append(PodFault(FaultKind.CRASH_LOOP, node="gpu-1"))
    world.commit("First", tiny(1))
    seen: set[str] = set()
    watch(world, 30, lambda: starts_on(world, "gpu-1", seen))
    world.stop_controller()

    world.commit("One more", tiny(2))
    watch(world, 30, lambda: starts_on(world, "gpu-1", seen))

    assert 2 == len(serving(world))
    assert 1 == len(seen)


def test_where_two_services_failed_no_third_one_tries(new_world):
    world = new_world(WorldNode("gpu-1", gpus=4), *nodes(5)[1:])
    world.kubelet.faults.append(PodFault(FaultKind.CRASH_LOOP, node="gpu-1"))
    spread: dict[str, Any] = {"placement": {"pools": [{"name": "gpu"}], "order": "Spread"}}
    files = the_village(tiny=a_service(**spread), other=a_service("other", **spread))
    world.commit("First", files)
    seen: set[str] = set()
    watch(world, 40, lambda: starts_on(world, "gpu-1", seen))
    assert 2 == len(seen)

    world.commit("Third", {"models/third.yaml": a_service("third", **spread)})
    watch(world, 30, lambda: starts_on(world, "gpu-1", seen))

    assert 1 == len(serving(world, "third"))
    assert 2 == len(seen)
    told = [n for n in unit_status(world, "ModelService/llm/third")["nodes"] if n.get("rule")]
    assert "2 starts of 2 services failed here" in told[0]["verdict"]


def test_with_only_a_broken_node_it_is_tried_again_when_the_quarantine_ends(new_world):
    """Held with the instant; once the node is mended the next try serves."""
    world = new_world(*nodes(1))
    world.kubelet.faults.append(PodFault(FaultKind.REFUSED, node="gpu-1"))
    world.commit("First", tiny(1))
    seen: set[str] = set()
    watch(world, 60, lambda: starts_on(world, "gpu-1", seen))

    status = unit_status(world, TINY)
    assert 1 == len(seen)
    assert ("False", "HeldNoCapacity") == conditions(status)["Ready"]
    assert "the first quarantine ends at 20" in status["holds"][0]["remedy"]

    world.kubelet.faults.clear()
    world.advance(540, passes=False)
    watch(world, 40, lambda: starts_on(world, "gpu-1", seen))

    assert 2 == len(seen)
    assert 1 == len(serving(world))


def pods_of(world, image: str, seen: set[str]) -> int:
    """How many pods of an image were ever seen; gives how many serve of all others."""
    for pod in world.objects("", "Pod", "llm"):
        if pod["spec"]["containers"][0]["image"] == image:
            seen.add(pod["metadata"]["uid"])
    return len([p for p in serving(world) if p["spec"]["containers"][0]["image"] != image])


BAD = "registry.example/vllm:broken"


def test_a_crash_looping_rev_buys_two_starts_and_the_old_one_serves_on(new_world):
    """A node and a GPU are still free when it stops."""
    world = new_world(*nodes(5))
    world.commit("First", tiny(2))
    world.settle()
    world.kubelet.faults.append(PodFault(FaultKind.CRASH_LOOP, image=BAD))
    bad: set[str] = set()

    world.commit("Bad", tiny(2, engine={"type": "vllm", "image": BAD}))
    seen = watch(world, 20, lambda: pods_of(world, BAD, bad))

    assert {2} == set(seen)
    assert 2 == len(bad)
    status = unit_status(world, TINY)
    assert "UpdateFailed" == conditions(status)["Ready"][1]
    assert "2 of the old rev still serving" in status["holds"][0]["message"]
