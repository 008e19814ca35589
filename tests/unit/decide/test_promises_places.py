"""The promises of test_promises, with priorities, room that is taken and nodes that are asked for."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_node
from stoker.model.fleet import WhenFull
from stoker.model.limits import PlacementLimits, Reclaim
from stoker.objects.names import pool_of_place
from unit.decide.test_promises import (
    MOST_PASSES,
    QUIET_PASSES,
    Fleet,
    _check_floor,
    _check_still,
    _fleet,
    _happen,
    _requests,
    events,
    services,
    slow,
)
from unit.decide.world import World

ZONE = "zone"
important = st.builds(
    lambda spec, priority, takes, asks, skew: replace(
        spec,
        priority=priority,
        reclaim=Reclaim.LOWER_PRIORITY if takes else Reclaim.NEVER,
        when_full=WhenFull.UNPINNED if asks else WhenFull.HOLD,
        limits=PlacementLimits(spread_key=ZONE if skew else "", max_skew=skew or 1),
    ),
    services,
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
)
worlds = st.tuples(
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.lists(important, min_size=2, max_size=3),
    st.lists(events, max_size=8),
    st.integers(0, 2),
)


def _world(free, fleet: Fleet) -> World:
    nodes = [
        a_node(f"n{number}", gpus=8, used=8 - count, labels={ZONE: "ab"[number % 2]})
        for number, count in enumerate(free, start=1)
    ]
    return World(nodes, _requests(fleet))


def _pass(world: World, fleet: Fleet) -> bool:
    """One decided, checked and acted pass and one tick; gives whether it changed anything."""
    plan = fleet.decide(world)
    before = {d.ref: world.ready(d.ref) for d in plan.decisions}
    changed = world.act(plan)
    for decision in plan.decisions:
        _check_floor(world, decision, before[decision.ref])
    _check_still(world, fleet)
    world.tick()
    return changed


def _grow(world: World, left: int) -> int:
    """An autoscaler: a node for a pod that waits without one, as long as it has some left."""
    waiting = any(
        pool_of_place(deployment.node) and not pod.node
        for deployment in world.deployments.values()
        for pod in deployment.active()
    )
    if not waiting or not left:
        return left
    name = f"new-{left}"
    world.nodes[name] = a_node(name, gpus=2, labels={ZONE: "a"})
    return left - 1


@settings(slow, max_examples=40)
@given(worlds)
def test_every_world_comes_to_rest_within_floors_and_rooms(scene):
    """No GPU is promised twice (World.act), no floor is broken by taking, and nothing flaps."""
    free, specs, happenings, left = scene
    fleet = _fleet(specs)
    world = _world(free, fleet)
    for event in happenings:
        _happen(world, fleet, event)
        for _ in range(event[1] + 1 if event[0] == "wait" else 1):
            _pass(world, fleet)
            left = _grow(world, left)
    quiet = 0
    for _ in range(MOST_PASSES):
        quiet = 0 if _pass(world, fleet) else quiet + 1
        left = _grow(world, left)
        if quiet > QUIET_PASSES:
            break
    assert quiet > QUIET_PASSES, "does not come to rest"
    for decision in fleet.decide(world).decisions:
        rev = fleet.revs[decision.ref.name]
        whole = world.ready(decision.ref, rev) == decision.replicas == world.ready(decision.ref)
        assert whole or decision.holds or decision.warming, decision
