"""Notices whose deadline is past when they are heard: whoever leaves is still told to stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from stoker.cli.world import World, WorldNode
from stoker.objects import names
from stories.faults import Faults
from stories.files import a_service, the_fleet
from stories.groups import a_group_service, a_world, two_zones

NODES = tuple(WorldNode(f"gpu-{number}") for number in (1, 2, 3))
AT_ONCE = {"endpointSync": "0s", "max": "0s", "shutdown": "0s"}


def notice(world: World) -> None:
    """Its first node should have been gone 10 s ago."""
    pods = [p for p in world.ready_pods() if p["metadata"]["labels"].get(names.SERVICE_LABEL)]
    now_ms = world.clock.now_ms()
    node, states = pods[0]["spec"]["nodeName"], world.kubelet.node_states
    states.give_notice(node, "spot", at_ms=now_ms - 130_000, deadline_ms=now_ms - 10_000)


def notice_and_remove(world: World) -> None:
    notice(world)
    world.commit("Remove", {"models/tiny.yaml": None})


def notice_and_scale(world: World) -> None:
    notice(world)
    world.commit("None", {"models/tiny.yaml": a_service(replicas=0, drain=AT_ONCE)})


HARD = {"onNotice": "HardKill"}


@pytest.mark.parametrize(
    ("service", "leave"),
    [
        (a_service(drain=AT_ONCE), notice),
        (a_service(drain=AT_ONCE, disruption=HARD), notice),
        (a_group_service(drain=AT_ONCE), notice),
        (a_group_service(drain=AT_ONCE, disruption=HARD), notice),
        (a_service(drain=AT_ONCE), notice_and_scale),
        (a_service(drain=AT_ONCE), notice_and_remove),
        (a_group_service(drain=AT_ONCE), notice_and_remove),
    ],
    ids=["finish", "hard", "group", "group-hard", "to-zero", "removed", "group-removed"],
)
def test_whoever_leaves_after_the_deadline_has_a_second_at_least(
    new_world: Any, service: str, leave: Callable[[World], None]
) -> None:
    """Issue C, bad input: with a grace of 0 the kubelet kills without telling the engine."""
    faults = Faults()
    world = a_world(new_world, *two_zones(*NODES), wrap=faults)
    world.commit("First", the_fleet(service, a_service("other", replicas=0)))
    world.settle()
    before = {pod["metadata"]["uid"] for pod in world.ready_pods()}
    faults.asked.clear()

    leave(world)
    graces: dict[str, Any] = {}
    for _ in range(40):
        world.advance(1)
        for pod in world.objects("", "Pod", "llm"):
            if pod["metadata"].get("deletionTimestamp"):
                meta = pod["metadata"]
                graces[meta["uid"]] = meta["deletionGracePeriodSeconds"]

    assert before == set(graces), "all of them left, and were seen to"
    assert 1 <= min(graces.values())
    assert [] == [r.path for r in faults.asked if r.method == "DELETE" and "/pods/" in r.path]
    bodies = [json.loads(r.body) for r in faults.asked if r.method == "DELETE" and r.body]
    assert [] == [body for body in bodies if "gracePeriodSeconds" in body]
