"""`disruption` of the Fleet: voluntary moves of all services share one budget; notices do not."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from builders import (
    a_desired,
    a_fleet,
    a_node,
    a_notice,
    a_placement,
    a_pool,
    a_replica,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
    some_resources,
)
from stoker.decide import decide
from stoker.model.history import History
from stoker.model.moves import FleetDisruption, OnNotice
from stoker.model.prune import MaxUnits
from unit.decide.one import OLD, created, decided, held, leaving, one_gpu, ready
from unit.decide.world import NOW_MS, World, some_nodes

NAMES = ("alpha", "beta", "gamma")


def standing(service: str, node: str, rev: str = OLD, phase: str = "Ready", **fields):
    pod = a_replica(f"{service}-{node}", node, phase, **fields)
    return a_placement(node, pod, service=service, rev=rev)


def plan_of(states, *, nodes, gpus: int = 1, moves=None, share=None, **service):
    """The decisions by name, of services of one replica each."""
    units = [a_unit(name, replicas=1, gpu_count=gpus, **service) for name in states]
    fleet = a_fleet(a_pool("l4"), disruption=FleetDisruption(moves, share))
    snapshot = a_snapshot(*nodes, services=[a_state(*p, name=n) for n, p in states.items()])
    shapes = tuple(a_shape(unit) for unit in units)
    plan = decide(a_desired(*units, fleet=fleet), shapes, snapshot, History(), NOW_MS)
    return {decision.ref.name: decision for decision in plan.decisions}


def outdated(gpus: int = 1):
    """Each service has one replica of an old rev; there is room for all successors."""
    nodes = [a_node(f"n{number}", gpus=gpus) for number in range(1, 7)]
    requests = some_resources(gpus)
    states = {
        name: [
            a_placement(
                f"n{number}",
                a_replica(f"{name}-old", f"n{number}"),
                service=name,
                rev=OLD,
                requests=requests,
            )
        ]
        for number, name in enumerate(NAMES, start=1)
    }
    return states, nodes


def movers(decisions) -> list[str]:
    return [name for name, decision in decisions.items() if created(decision)]


def test_without_the_block_services_move_side_by_side():
    states, nodes = outdated()

    assert [*NAMES] == movers(plan_of(states, nodes=nodes))


@pytest.mark.parametrize("moves", [1, 2, 3])
def test_so_many_services_move_at_once_in_the_order_of_their_names(moves):
    states, nodes = outdated()
    decisions = plan_of(states, nodes=nodes, moves=moves)

    assert [*NAMES][:moves] == movers(decisions)
    waiting = [name for name, d in decisions.items() if "WaitingForMoves" in held(d)]
    assert [*NAMES][moves:] == waiting


def test_the_hold_names_whose_moves_are_waited_for():
    states, nodes = outdated()
    hold = plan_of(states, nodes=nodes, moves=1)["beta"].holds[0]

    assert "waits for moves of llm/alpha: disruption.maxConcurrentMoves 1 of the Fleet" == (
        hold.message
    )


def test_a_move_that_is_under_way_counts_until_the_old_replica_is_told_to_stop():
    states, nodes = outdated()
    states["beta"] = [
        standing("beta", "n2", draining_for=5, in_flight=3),
        standing("beta", "n5", "aaaaaaaa"),
    ]

    assert [] == movers(plan_of(states, nodes=nodes, moves=1))


def test_a_move_that_has_begun_is_ended_whatever_others_do():
    """Else two halves of a lowered budget would wait for each other."""
    states, nodes = outdated()
    states["alpha"].append(standing("alpha", "n4", "aaaaaaaa"))
    states["beta"].append(standing("beta", "n5", "aaaaaaaa"))
    decisions = plan_of(states, nodes=nodes, moves=1)

    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(decisions["alpha"])]
    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(decisions["beta"])]


def test_gpus_in_motion_are_bounded_by_their_share_of_the_pools():
    """6 nodes of 4 GPUs: 34 % of 24 is 9 GPUs, two replicas of 4."""
    states, nodes = outdated(gpus=4)
    share = MaxUnits(None, 34)

    assert ["alpha", "beta"] == movers(plan_of(states, nodes=nodes, gpus=4, share=share))


def test_a_budget_smaller_than_a_replica_still_moves_one_at_a_time():
    states, nodes = outdated(gpus=4)

    assert ["alpha"] == movers(plan_of(states, nodes=nodes, gpus=4, share=MaxUnits(1, None)))
    assert ["alpha"] == movers(plan_of(states, nodes=nodes, gpus=4, share=MaxUnits(0, None)))


def test_notices_are_outside_the_budget():
    states, nodes = outdated()
    nodes[2] = a_node("n3", gpus=1, notice=a_notice(120))

    assert ["alpha", "gamma"] == movers(plan_of(states, nodes=nodes, moves=1))


def test_new_replicas_are_no_moves():
    states, nodes = outdated()
    states["beta"] = []

    assert {"alpha", "beta"} <= set(movers(plan_of(states, nodes=nodes, moves=1)))


def test_scale_downs_wait_for_nobody():
    states, nodes = outdated()
    states["beta"] = [standing("beta", "n2", "aaaaaaaa"), standing("beta", "n5", "aaaaaaaa")]
    decisions = plan_of(states, nodes=nodes, moves=1)

    assert ["alpha"] == movers(decisions)
    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(decisions["beta"])]


slow = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@slow
@given(
    free=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    counts=st.lists(st.integers(1, 2), min_size=2, max_size=3),
    moves=st.integers(1, 2),
)
def test_an_update_of_all_services_ends_and_never_exceeds_the_budget(free, counts, moves):
    """Every replica of every service is replaced, so many at a time. Pods run where they were

    decided: one that waits for room elsewhere comes to life when it likes, and is then ended.
    """
    assume(sum(free) >= sum(counts))
    world = World(some_nodes(*free))
    world.pinned = True
    units = [
        a_unit(name, replicas=count, min_ready=0, max_concurrent_moves=2)
        for name, count in zip(NAMES, counts, strict=False)
    ]
    fleet = a_fleet(a_pool("l4"), disruption=FleetDisruption(moves, None))
    desired = a_desired(*units, fleet=fleet)
    history = History()
    for number, rev in enumerate(("aaaaaaaa", "bbbbbbbb")):
        shapes = tuple(a_shape(unit, rev=rev) for unit in units)
        quiet = 0
        for _ in range(200):
            plan = decide(desired, shapes, world.snapshot(), history, world.now_ms)
            history = History.from_records(plan.history, plan.starts)
            changed = world.act(plan)
            if number:
                assert sum(world.draining(unit.ref) for unit in units) <= moves
            quiet = 0 if changed else quiet + 1
            world.tick()
            if quiet > 14:
                break
    for unit in units:
        placed = sum(1 for pod in world.pods(unit.ref) if pod.node)
        assert placed == world.ready(unit.ref, "bbbbbbbb")


# ----------------------------------------------------------------- onNotice
def on_noticed_node(policy: OnNotice, seconds: int, *more, **pod):
    nodes = [a_node("n1", gpus=1, notice=a_notice(seconds)), *one_gpu("n2")]
    going = a_placement("n1", a_replica("p-n1", "n1", **pod))
    return decided(going, *more, nodes=nodes, replicas=1, on_notice=policy)


def test_hard_kill_serves_to_the_end_where_nothing_stands_for_it():
    """The deadline minus shutdown and sync is over: one stops, the other goes on."""
    stops = on_noticed_node(OnNotice.FINISH_IN_FLIGHT, 30)
    serves = on_noticed_node(OnNotice.HARD_KILL, 30)

    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(stops)]
    assert [] == leaving(serves)
    assert {"n2": 1} == created(stops) == created(serves)


def test_hard_kill_waits_for_no_request_once_its_successor_serves():
    """But proxies get their time: a request sent meanwhile would be refused, not broken."""
    successor = ready("n2")
    for policy, drained in (
        (OnNotice.FINISH_IN_FLIGHT, "Drain"),
        (OnNotice.HARD_KILL, "ScaleToZero"),
    ):
        decision = on_noticed_node(policy, 600, successor, draining_for=20, in_flight=5)
        assert [drained] == [stage for stage, _, _ in leaving(decision)]
    early = on_noticed_node(OnNotice.HARD_KILL, 600, successor, draining_for=5, in_flight=5)
    assert ["Drain"] == [stage for stage, _, _ in leaving(early)]


def test_a_hard_kill_is_for_noticed_nodes_alone():
    draining = a_placement("n1", a_replica("p-n1", "n1", draining_for=20, in_flight=5), rev=OLD)
    decision = decided(draining, ready("n2"), replicas=1, on_notice=OnNotice.HARD_KILL)

    assert ["Drain"] == [stage for stage, _, _ in leaving(decision)]
