"""A service that leaves Git finishes its requests first, and only once nothing holds it."""

from __future__ import annotations

from stoker.cli.world import WorldNode
from stories.files import a_fleet, a_service, the_fleet
from stories.looks import (
    deployments,
    is_clean,
    pod_uids,
    serving,
    standing,
    unit_status,
)

TINY = "ModelService/llm/tiny"
OTHER = a_service("x", replicas=0)
"""So that the pattern for models still matches a file."""
DRAIN = {"endpointSync": "2s", "max": "8s", "shutdown": "1s"}


def test_its_replicas_take_no_new_request_and_are_waited_for(settled):
    """Design 4: departures we start drain before deletion, and a removal is one."""
    world = settled(the_fleet(a_service(replicas=2, drain=DRAIN), OTHER), *nodes())
    pods = pod_uids(world)
    assert 2 == len(serving(world))

    world.commit("No tiny", {"models/tiny.yaml": None})
    world.advance(3)

    assert [] == serving(world)
    assert pods == pod_uids(world)
    assert 2 == len(deployments(world))
    assert "Service/tiny" in standing(world), "what routes to the replicas outlives them"
    told = {n["object"]: n["reason"] for n in unit_status(world, TINY).get("notes") or ()}
    assert {"draining"} == set(told.values())

    world.advance(20)
    world.settle()

    assert [] == deployments(world)
    assert set() == pod_uids(world)
    assert "Service/tiny" not in standing(world)
    assert is_clean(world)


def test_nothing_drains_while_the_prune_is_held(settled):
    """A cap that only kept Deployments without traffic would keep nothing."""
    fleet = a_fleet(prune={"mode": "Confirm"})
    world = settled(the_fleet(a_service(replicas=2), OTHER, fleet=fleet), *nodes())

    world.commit("No tiny", {"models/tiny.yaml": None})
    world.advance(5)

    assert 2 == len(serving(world))
    assert {"prune-unconfirmed"} == {n["reason"] for n in unit_status(world, TINY)["notes"]}


def test_a_service_that_comes_back_while_it_drains_serves_again(settled):
    """A revert within the drain must not leave replicas that nobody reaches."""
    files = the_fleet(a_service(replicas=1, drain=DRAIN), OTHER)
    world = settled(files, *nodes())
    world.commit("No tiny", {"models/tiny.yaml": None})
    world.advance(2)
    assert [] == serving(world)

    world.commit("Back", {"models/tiny.yaml": files["models/tiny.yaml"]})
    world.settle()

    assert 1 == len(serving(world))
    assert is_clean(world)


def nodes() -> tuple[WorldNode, ...]:
    return WorldNode("gpu-1"), WorldNode("gpu-2")
