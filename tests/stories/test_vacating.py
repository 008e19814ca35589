"""Nodes that people and autoscalers drain: the drainer waits on the budget and always finishes."""

from __future__ import annotations

import json

import pytest

from stoker.cli.world import World, WorldNode
from stoker.kube.transport import Request
from stoker.model.refs import ObjectRef
from stories.files import NEW, a_patient_fleet, a_service, the_fleet
from stories.looks import is_clean, rest, serving

TWO = WorldNode("gpu-1", gpus=2)
TAINTS = {
    "karpenter": {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
    "cluster-autoscaler": {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"},
}


class Drainer:
    """`kubectl drain`, or an autoscaler: makes a node unschedulable and evicts its pods, again
    and again, for as long as a budget forbids it.
    """

    def __init__(self, world: World, node: str, how: str = "cordon") -> None:
        self.world, self.node, self.refused = world, node, 0
        spec = {"unschedulable": True} if how == "cordon" else {"taints": [TAINTS[how]]}
        ref = ObjectRef("", "Node", "", node)
        world.cluster.patch(ref, "merge", {"spec": spec}, manager="drainer")

    def round(self) -> bool:
        """One attempt at each pod; gives whether the node is empty."""
        pods = [p for p in self.world.objects("", "Pod", "llm") if self._is_here(p)]
        for pod in pods:
            if not pod["metadata"].get("deletionTimestamp"):
                self.refused += self._evict(pod["metadata"]["name"]) == 429
        return not pods

    def _is_here(self, pod) -> bool:
        return pod["spec"].get("nodeName") == self.node

    def _evict(self, name: str) -> int:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": "llm"},
        }
        path = f"/api/v1/namespaces/llm/pods/{name}/eviction"
        kind = "application/json"
        request = Request("POST", path, body=json.dumps(body).encode(), content_type=kind)
        return self.world.server.send(request).status


def tiny(replicas: int, **spec) -> dict[str, str]:
    return the_fleet(a_service(replicas=replicas, **spec), fleet=a_patient_fleet())


def drained(world: World, drainer: Drainer, seconds: int = 90) -> list[int]:
    """How many served after each second, until the node is empty."""
    seen: list[int] = []
    for _ in range(seconds):
        if drainer.round():
            return seen
        world.advance(1)
        seen.append(len(serving(world)))
    raise AssertionError(f"the drainer never finished: {drainer.refused} evictions refused")


@pytest.mark.parametrize("how", ["cordon", *TAINTS])
def test_the_only_replica_is_held_until_its_successor_serves(settled, how):
    world = settled(tiny(1), WorldNode("gpu-1"), WorldNode("gpu-2"))

    drainer = Drainer(world, "gpu-1", how)
    seen = drained(world, drainer)
    rest(world)

    assert 1 == min(seen)
    assert drainer.refused > 0
    assert {"gpu-2"} == {pod["spec"]["nodeName"] for pod in serving(world)}
    assert is_clean(world)


@pytest.mark.parametrize("how", ["cordon", pytest.param("karpenter", marks=pytest.mark.full)])
def test_a_node_with_all_replicas_empties_one_by_one_above_the_floor(settled, how):
    world = settled(tiny(2), TWO)
    world.add_node(WorldNode("gpu-2"))
    world.add_node(WorldNode("gpu-3"))

    seen = drained(world, Drainer(world, "gpu-1", how))
    rest(world)

    assert 1 <= min(seen)
    assert {"gpu-2", "gpu-3"} == {pod["spec"]["nodeName"] for pod in serving(world)}
    assert is_clean(world)


def test_a_floor_of_all_replicas_lets_nothing_be_evicted_and_still_ends(settled):
    """With maxUnavailable 0 for ever our own moves empty the node."""
    world = settled(tiny(2, disruption={"minReady": 2}), TWO)
    world.add_node(WorldNode("gpu-2"))
    world.add_node(WorldNode("gpu-3"))

    seen = drained(world, Drainer(world, "gpu-1"))
    rest(world)

    assert 2 == min(seen)
    assert is_clean(world)


def test_a_drain_in_the_middle_of_an_update_ends_at_the_new_revision(settled):
    world = settled(tiny(2), WorldNode("gpu-1"), WorldNode("gpu-2"), WorldNode("gpu-3"))
    world.commit("New weights", tiny(2, revision=NEW))
    world.advance(3)

    seen = drained(world, Drainer(world, "gpu-1"))
    rest(world)

    assert 1 <= min(seen)
    assert {"gpu-2", "gpu-3"} == {pod["spec"]["nodeName"] for pod in serving(world)}
    assert is_clean(world)


def test_a_drain_that_is_called_off_leaves_what_serves(settled):
    """Uncordoned before the successor was Ready: one of the two goes, and nothing flaps."""
    world = settled(tiny(1), WorldNode("gpu-1"), WorldNode("gpu-2"))
    node = ObjectRef("", "Node", "", "gpu-1")
    before = {pod["metadata"]["uid"] for pod in serving(world)}
    world.cluster.patch(node, "merge", {"spec": {"unschedulable": True}}, manager="kubectl")
    world.advance(2)
    world.cluster.patch(node, "merge", {"spec": {"unschedulable": None}}, manager="kubectl")
    rest(world)

    assert before == {pod["metadata"]["uid"] for pod in serving(world)}
    assert 1 == len(world.objects("", "Pod", "llm"))
    assert is_clean(world)
