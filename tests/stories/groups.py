"""Replicas over several nodes, for stories: nodes in zones, groups, and who serves."""

from __future__ import annotations

from typing import Any

from stoker.cli.world import World, WorldNode
from stoker.model.workload import LWS_GROUP, LWS_KIND
from stoker.objects import names
from stoker.sim.groups import group_definition
from stories.files import a_service

ZONE = "topology.kubernetes.io/zone"
PAIR = {"nodes": 2}


def a_node(name: str, zone: str, gpus: int = 1) -> WorldNode:
    return WorldNode(name, {"pool": "gpu", ZONE: zone}, gpus)


def two_zones(*more: WorldNode) -> tuple[WorldNode, ...]:
    """Two nodes in zone a, two in zone b."""
    return (a_node("a1", "a"), a_node("a2", "a"), a_node("b1", "b"), a_node("b2", "b"), *more)


def a_group_service(**spec: Any) -> str:
    return a_service(**{"parallelism": PAIR, **spec})


def sets(world: World) -> list[dict[str, Any]]:
    """LeaderWorkerSets that are not on their way out."""
    found = world.objects(LWS_GROUP, LWS_KIND, "llm")
    return [each for each in found if not each["metadata"].get("deletionTimestamp")]


def engines(world: World) -> list[dict[str, Any]]:
    return [
        pod
        for pod in world.objects("", "Pod", "llm")
        if pod["metadata"]["labels"].get(names.SERVICE_LABEL) == "tiny"
    ]


def nodes_of(world: World, workload: dict[str, Any]) -> set[str]:
    """Nodes of its pods."""
    name = workload["metadata"]["name"]
    label = "leaderworkerset.sigs.k8s.io/name"
    pods = [pod for pod in engines(world) if pod["metadata"]["labels"].get(label) == name]
    return {pod["spec"].get("nodeName", "") for pod in pods}


def serving(world: World) -> list[str]:
    """Names of leaders that take traffic while their whole group is Ready."""
    ready = {pod["metadata"]["name"] for pod in world.ready_pods()}
    found = []
    for pod in engines(world):
        meta = pod["metadata"]
        workers = [
            each["metadata"]["name"]
            for each in engines(world)
            if each["metadata"]["name"].startswith(meta["name"] + "-")
        ]
        whole = {meta["name"], *workers} <= ready and len(workers) == 1
        takes = meta["labels"].get(names.TRAFFIC_LABEL) == "true"
        if takes and whole and not meta.get("deletionTimestamp"):
            found.append(meta["name"])
    return found


def a_world(new_world: Any, *nodes: WorldNode, **options: Any) -> World:
    world: World = new_world(*(nodes or two_zones()), **options)
    world.cluster.apply(group_definition(), manager="install")
    return world
