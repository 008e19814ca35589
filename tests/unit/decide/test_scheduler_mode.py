"""Mode Scheduler: one Deployment, only its count; and the way there from mode Nodes."""

from __future__ import annotations

from typing import Any

import pytest

from builders import (
    NOW_MS,
    REV,
    a_desired,
    a_node,
    a_notice,
    a_placement,
    a_pool,
    a_ref,
    a_replica,
    a_shape,
    a_unit,
)
from stoker.decide import decide
from stoker.model.fleet import PlacementMode
from stoker.model.history import History
from unit.decide.one import OLD, decided, held, leaving, planned
from unit.decide.world import World, some_nodes

SCHEDULER: dict[str, Any] = {"placement_mode": PlacementMode.SCHEDULER}


def home(*phases, replicas=None, rev=REV, **fields):
    pods = [a_replica(f"h{n}", "n9", phase) for n, phase in enumerate(phases)]
    return a_placement("", *pods, replicas=replicas if not pods else len(pods), rev=rev, **fields)


def pending():
    return a_placement("", a_replica("h0", "", "Pending"))


def on(node, **fields):
    return a_placement(node, a_replica(f"p-{node}", node, **fields))


def counts(decision):
    return {p.name: p.count for p in decision.placements}


def crossing(*placements, **fields):
    fields.setdefault("nodes", [a_node(f"n{number}", gpus=1) for number in range(1, 10)])
    return decided(*placements, **SCHEDULER, **fields)


# ------------------------------------------------------------ steady state
def test_there_is_one_deployment_named_as_the_service_without_a_node():
    (placement,) = decided(
        **SCHEDULER, pools=("l4", "h100"), fleet_pools=[a_pool("l4"), a_pool("h100")]
    ).placements

    assert ("qwen", REV, "", "", "l4,h100", 2, False) == (
        placement.name,
        placement.rev,
        placement.node,
        placement.node_uid,
        placement.pool,
        placement.count,
        placement.exists,
    )


def test_only_its_count_is_decided():
    decision = decided(home("Ready"), **SCHEDULER, replicas=3)

    assert ({"qwen": 3}, True) == (counts(decision), decision.placements[0].exists)
    assert ["count 1 -> 3"] == [attempt.verdict for attempt in decision.attempts]


def test_an_update_is_the_deployment_controllers():
    decision = decided(home("Ready", "Ready", rev=OLD), **SCHEDULER)

    assert ({"qwen": 2}, False) == (counts(decision), decision.placements[0].exists)
    assert decision.updating
    assert not decision.retirements


def test_cordons_notices_and_drains_of_its_pods_are_not_ours():
    nodes = [a_node("n9", cordoned=True, notice=a_notice())]
    live = a_placement("", a_replica("h0", "n9"), a_replica("h1", "n9", draining_for=5))
    decision = decided(live, **SCHEDULER, nodes=nodes)

    assert ({"qwen": 2}, []) == (counts(decision), leaving(decision))


def test_a_deployment_being_deleted_is_waited_for():
    decision = decided(home("Ready", terminating=True), **SCHEDULER)

    assert ((), ("qwen",)) == (decision.placements, decision.untouched)


def test_nothing_is_asked_of_nodes():
    decision = decided(**SCHEDULER, nodes=[a_node("n1", gpus=0)])

    assert ({"qwen": 2}, []) == (counts(decision), held(decision))


# ---------------------------------------------------- from mode Nodes to it
def test_it_grows_by_the_budget_and_the_others_stay_until_it_is_ready():
    decision = crossing(on("n1"), on("n2"))

    assert {"qwen": 1} == counts(decision)
    assert sorted([on("n1").name, on("n2").name]) == list(decision.untouched)
    assert not decision.retirements


def test_no_further_move_while_its_pod_is_on_its_way():
    assert {"qwen": 1} == counts(crossing(on("n1"), on("n2"), home("Starting")))


def test_an_old_replica_leaves_when_a_pod_is_ready():
    decision = crossing(on("n1", age=100), on("n2", age=200), home("Ready"))

    assert [("StopTraffic", ("p-n1",), 0)] == leaving(decision)
    assert {"qwen": 1} == counts(decision)
    assert (on("n2").name,) == decision.untouched


def test_with_no_room_for_its_pod_an_old_replica_leaves_first():
    decision = crossing(on("n1", age=100), on("n2", age=200), pending())

    assert [("StopTraffic", ("p-n1",), 0)] == leaving(decision)


def test_below_the_floor_it_is_held_instead():
    decision = crossing(on("n1"), pending(), replicas=1)

    assert (["HeldNoCapacity"], []) == (held(decision), leaving(decision))


def test_while_room_is_coming_free_nothing_else_leaves():
    going = a_placement("n1", a_replica("a", "n1", "Terminating"), replicas=0)
    decision = crossing(going, on("n2"), on("n3"), pending(), replicas=3)

    assert [("ScaleToZero", ("a",), 0)] == leaving(decision)


def test_a_noticed_replica_of_the_other_mode_is_replaced_at_once():
    nodes = [a_node("n1", notice=a_notice(200)), a_node("n2")]
    plan = planned(on("n1"), on("n2"), **SCHEDULER, nodes=nodes)

    assert {"qwen": 1} == counts(plan.decisions[0])
    assert NOW_MS + 125_000 == plan.wake_at_ms


def test_the_count_never_exceeds_what_is_wanted():
    decision = crossing(on("n1"), home("Ready", "Ready", "Ready"), replicas=2)

    assert {"qwen": 2} == counts(decision)


# ---------------------------------------------------- and back to mode Nodes
def test_back_in_mode_nodes_the_one_deployment_shrinks_pod_by_pod():
    nodes = [a_node(f"n{number}", gpus=1) for number in (1, 2, 9)]
    live = a_placement("", a_replica("a", "n9", age=200), a_replica("b", "n8", age=100))

    begun = decided(live, nodes=nodes)
    assert (1, ("qwen",)) == (len(begun.placements), begun.untouched)
    surged = decided(live, on("n1"), nodes=nodes)
    assert [("StopTraffic", ("b",), 1)] == leaving(surged)
    assert (("qwen" not in counts(surged)), ()) == (True, surged.untouched)
    assert "qwen" in surged.deployment_names


# ------------------------------------------------------------ the whole way
def _walk(world, mode, replicas=2, passes=60):
    """Passes until all is at rest; gives the least Ready on the way."""
    unit = a_unit(replicas=replicas, placement_mode=mode)
    desired, least, quiet = a_desired(unit), replicas, 0
    for _ in range(passes):
        plan = decide(desired, (a_shape(unit),), world.snapshot(), History(), world.now_ms)
        quiet = 0 if world.act(plan) else quiet + 1
        least = min(least, world.ready(unit.ref))
        if quiet > 8:
            return least
        world.tick()
    raise AssertionError("does not come to rest")


@pytest.mark.parametrize("free", [(1, 1, 1), (1, 1)], ids=["with a spare GPU", "on a full pool"])
def test_the_floor_holds_on_the_way_to_the_other_mode_and_back(free):
    world = World(some_nodes(*free))
    _walk(world, PlacementMode.NODES)

    assert _walk(world, PlacementMode.SCHEDULER) >= 1
    assert [("", 2)] == [(d.node, d.replicas) for d in world.deployments.values()]
    assert _walk(world, PlacementMode.NODES) >= 1
    assert "" not in {d.node for d in world.deployments.values()}
    assert 2 == world.ready(a_ref())
