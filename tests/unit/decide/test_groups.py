"""Groups over several nodes: whole in one domain or not at all, booked on every node."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import (
    NOW_MS,
    REV,
    a_desired,
    a_node,
    a_notice,
    a_pool,
    a_replica,
    a_shape,
    a_snapshot,
    a_spot_pool,
    a_state,
    a_unit,
    some_resources,
)
from stoker.decide import decide
from stoker.decide.slots import slots_of
from stoker.model.fleet import Drain, PlacementMode
from stoker.model.history import History
from stoker.model.snapshot import LivePlacement, Node, ReplicaPhase, Worker
from stoker.objects.names import group_name
from unit.decide.group_world import ZONE, GroupWorld, some_zoned_nodes
from unit.decide.one import OLD, held, leaving

DRAIN = Drain(endpoint_sync_ms=15_000, max_ms=60_000, shutdown_ms=30_000)


def zoned(*names: str, gpus: int = 1, **fields) -> list[Node]:
    """Nodes whose zone is the first letter of their name."""
    return [a_node(name, gpus=gpus, labels={ZONE: name[0]}, **fields) for name in names]


def a_group(
    *nodes: str,
    phase: ReplicaPhase = ReplicaPhase.READY,
    rev: str = REV,
    bound: int | None = None,
    **fields,
) -> LivePlacement:
    """A group that stands on these nodes; `bound` pods of it are on theirs."""
    name = group_name("qwen", nodes[0], rev)
    here = [*nodes[:bound], *[""] * (len(nodes) - len(nodes[:bound]))]
    workers = tuple(Worker(f"{name}-0-{n}", f"u{n}", node) for n, node in enumerate(here[1:], 1))
    pod = a_replica(f"{name}-0", here[0], phase, workers=workers, **fields)
    return LivePlacement(
        name=name,
        uid=f"uid-{name}",
        rev=rev,
        node=nodes[0],
        node_uid=f"uid-{nodes[0]}",
        replicas=1,
        pods=(pod,),
        requests=some_resources(),
        size=len(nodes),
        nodes=nodes,
        domain=nodes[0][0],
    )


def in_use(nodes: list[Node], *busy: str) -> list[Node]:
    """The same with one GPU more in use on each of these."""
    return [replace(n, used=n.used.plus(some_resources(), busy.count(n.name))) for n in nodes]


def starts(decision) -> list[tuple[str, ...]]:
    return [place.nodes for place in decision.placements if not place.exists]


def test_a_group_takes_the_domain_that_has_room_for_all_of_it():
    nodes = zoned("a1", "b1", "b2", "c1")

    decision = decided_groups(nodes=nodes)

    assert [("b1", "b2")] == starts(decision)
    assert "b" == decision.placements[0].domain
    assert (decision.placements[0].name,) == decision.groups


def decided_groups(*placements, nodes, size=2, replicas=1, busy=(), **service):
    unit = a_unit(replicas=replicas, **{"nodes": size, **service})
    snapshot = a_snapshot(
        *in_use(list(nodes), *busy), services=[a_state(*placements)], count_pods=False
    )
    desired = a_desired(unit, pools=(a_pool("l4"), a_spot_pool()))
    return decide(desired, (a_shape(unit),), snapshot, History(), NOW_MS).decisions[0]


def test_nothing_of_a_group_starts_where_no_domain_has_room_for_all_of_it():
    decision = decided_groups(nodes=zoned("a1", "b1", "b2", "c1"), size=3)

    assert [] == starts(decision)
    assert ["HeldNoCapacity"] == held(decision)
    assert {"group-domain": 4} == dict(decision.rejected)
    assert "1 free GPU on each of 3 nodes" in decision.holds[0].remedy
    assert any("a group starts whole" in each.verdict for each in decision.attempts)


def test_nodes_without_the_label_hold_no_group():
    decision = decided_groups(nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)])

    assert [] == starts(decision)
    assert {"group-domain": 2} == dict(decision.rejected)


def test_a_group_never_crosses_pools():
    nodes = [*zoned("a1"), *zoned("a2", pool="spot")]

    decision = decided_groups(nodes=nodes, pools=("l4", "spot"))

    assert [] == starts(decision)


def test_the_domain_whose_worst_node_is_soonest_ready_comes_first():
    """A group is as far as the farthest of its nodes: one warm node does not make it warm."""
    warm = ("0" * 40,)
    nodes = [
        *zoned("a1", weights=warm),
        *zoned("a2"),
        *zoned("b1", "b2", weights=warm),
    ]

    decision = decided_groups(nodes=nodes, model_revision=warm[0])

    assert [("b1", "b2")] == starts(decision)


def test_a_group_that_stands_is_kept_with_its_nodes():
    nodes = zoned("a1", "a2", "b1", "b2")

    decision = decided_groups(a_group("a1", "a2"), nodes=nodes, busy=("a1", "a2"))

    (place,) = decision.placements
    assert (True, ("a1", "a2"), "a", 2) == (place.exists, place.nodes, place.domain, place.size)
    assert (1, 0) == (decision.ready, decision.warming)


def test_each_node_of_a_group_is_booked_until_its_pod_is_there():
    """The write is answered, the pods are not seen: nobody else gets these GPUs."""
    nodes = zoned("a1", "a2")
    group = replace(a_group("a1", "a2"), pods=())

    decision = decided_groups(group, nodes=nodes, replicas=2)

    assert [] == starts(decision)
    assert 2 == dict(decision.rejected)["gpus"]


def test_a_bound_leader_leaves_the_workers_node_booked():
    nodes = zoned("a1", "a2", "b1")
    group = a_group("a1", "a2", phase=ReplicaPhase.PENDING, bound=1)
    (slot,) = slots_of(group)

    assert (("a2",), ("a1", "a2"), False) == (slot.lacking, slot.nodes, slot.bound)
    decision = decided_groups(group, nodes=nodes, busy=("a1",), replicas=2)
    assert 3 == sum(dict(decision.rejected).values())


@pytest.mark.parametrize("noticed", ["a1", "a2"], ids=["leader", "worker"])
def test_a_notice_on_any_node_is_a_notice_on_the_group(noticed):
    nodes = [
        replace(node, notice=a_notice(120)) if node.name == noticed else node
        for node in zoned("a1", "a2", "b1", "b2")
    ]

    decision = decided_groups(a_group("a1", "a2"), nodes=nodes, busy=("a1", "a2"))

    assert [("b1", "b2")] == starts(decision)
    assert [place.replaces for place in decision.placements if not place.exists] == [
        group_name("qwen", "a1", REV)
    ]


def test_the_earliest_deadline_of_its_nodes_is_the_groups():
    """The last moment to stop admission comes from the node that goes first."""
    nodes = [
        replace(node, notice=a_notice(900 if node.name == "a1" else 40))
        for node in zoned("a1", "a2")
    ]

    decision = decided_groups(
        a_group("a1", "a2"), nodes=nodes, busy=("a1", "a2"), drain=DRAIN, min_ready=0
    )

    assert "StopTraffic" == leaving(decision)[0][0]
    assert "node a2 goes away" in decision.retirements[0].reason


def test_a_group_on_a_dead_node_is_no_capacity_and_gets_a_substitute():
    nodes = [replace(node, ready=node.name != "a2") for node in zoned("a1", "a2", "b1", "b2")]
    group = a_group("a1", "a2", phase=ReplicaPhase.STARTING)

    decision = decided_groups(group, nodes=nodes, busy=("a1", "a2"))

    assert [("b1", "b2")] == starts(decision)


def test_a_cordoned_node_of_a_worker_moves_the_group_under_the_budget():
    nodes = [replace(node, cordoned=node.name == "a2") for node in zoned("a1", "a2", "b1", "b2")]

    decision = decided_groups(a_group("a1", "a2"), nodes=nodes, busy=("a1", "a2"))

    assert [("b1", "b2")] == starts(decision)
    assert [] == leaving(decision), "it serves until its successor is Ready"


def test_with_no_room_beside_it_the_group_leaves_first_only_where_the_floor_allows():
    nodes = zoned("a1", "a2")
    group = a_group("a1", "a2", rev=OLD)

    kept = decided_groups(group, nodes=nodes, busy=("a1", "a2"))
    left = decided_groups(group, nodes=nodes, busy=("a1", "a2"), min_ready=0)

    assert ([], ["HeldNoCapacity"]) == (leaving(kept), held(kept))
    assert "StopTraffic" == leaving(left)[0][0]


def test_in_mode_scheduler_the_set_of_groups_has_a_name_of_its_own():
    """Its controller makes a headless Service of that name: the service's own is taken."""
    decision = decided_groups(
        nodes=zoned("a1", "a2"), placement_mode=PlacementMode.SCHEDULER, replicas=3
    )

    (place,) = decision.placements
    assert (3, 2, ()) == (place.count, place.size, place.nodes)
    assert "qwen" != place.name
    assert (place.name,) == decision.groups


def test_replicas_of_one_node_and_groups_take_over_from_each_other():
    nodes = zoned("a1", "a2", "b1", "b2")
    group = a_group("a1", "a2")

    decision = decided_groups(group, nodes=nodes, size=1, busy=("a1", "a2"))

    (new,) = [place for place in decision.placements if not place.exists]
    assert 1 == new.size
    assert (group.name,) == decision.groups
    assert decision.updating


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 3), st.integers(0, 3))
@example(24027819, 2, 0)
def test_groups_are_whole_and_gpus_are_given_once_whatever_happens(seed, size, replicas):
    """The world checks each write; in the end as many groups serve as are wanted, or there is
    no room for one more, and nothing is written any more. One of which the scheduler could bind a
    part alone, since somebody was faster, is on its way until its deadline, which observe tells.
    """
    random = Random(seed)
    world = GroupWorld(some_zoned_nodes(random), size)
    history, rev, want = History(), REV, replicas

    def one_pass() -> tuple[bool, list[str], int]:
        nonlocal history
        unit = a_unit(replicas=want, nodes=size, drain=DRAIN)
        desired = a_desired(unit, pools=(a_pool("l4"),))
        shapes = (a_shape(unit, rev=rev),)
        plan = decide(desired, shapes, world.snapshot(), history, world.now_ms)
        history = History.from_records(plan.history, plan.starts)
        quiet = not world.lost and not any(n.notice for n in world.nodes.values())
        before, floor = len(world.serving()), plan.decisions[0].floor
        changed = world.act(plan)
        if quiet and want:
            assert min(before, floor) <= len(world.serving()), "below the floor for nothing"
        stands = plan.decisions[0].ready + plan.decisions[0].warming
        return changed, held(plan.decisions[0]), stands

    for _ in range(25):
        one_pass()
        world.tick(random)
        name = random.choice(sorted(world.nodes) or ["none"])
        match random.randint(0, 9):
            case 0 if name in world.nodes:
                world.nodes[name] = replace(world.nodes[name], notice=a_notice(120))
            case 1 if len(world.nodes) > 2:
                del world.nodes[name]
                world.lost.discard(name)
            case 2 if name in world.nodes:
                world.lost ^= {name}
            case 3 if name in world.nodes:
                cordoned = not world.nodes[name].cordoned
                world.nodes[name] = replace(world.nodes[name], cordoned=cordoned)
            case 4:
                want = random.randint(0, 3)
            case 5:
                rev = random.choice(["aaaaaaaa", "bbbbbbbb"])
            case _:
                pass
    world.lost.clear()
    world.nodes = {n: replace(node, cordoned=False, notice=None) for n, node in world.nodes.items()}
    quiet = 0
    for _ in range(400):
        changed, told, stands = one_pass()
        world.tick(random)
        quiet = 0 if changed else quiet + 1
        if quiet > 20:
            break
    assert quiet > 20, "it comes to rest"
    assert stands == want or told, (stands, want)
