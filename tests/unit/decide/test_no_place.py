"""A replica that fits nowhere: any node of a pool, so that one is added, and pools that gave none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_placement,
    a_pool,
    a_ref,
    a_replica,
    a_shape,
    a_spot_pool,
    a_unit,
)
from stoker.decide import decide
from stoker.decide.learn_failures import LONGEST_MS as LONGEST_WAIT_MS
from stoker.decide.learn_failures import SHORTEST_MS as FIRST_WAIT_MS
from stoker.decide.ready_in import PROVISION_MS
from stoker.model.fleet import Drain, Pin, WhenFull
from stoker.model.history import History, PoolWait, UnitHistory
from stoker.model.limits import PlacementLimits
from stoker.model.snapshot import ReplicaPhase
from stoker.objects.names import place_in_pool, pool_of_place
from unit.decide.one import (
    created,
    decided,
    held,
    kept,
    leaving,
    old,
    one_gpu,
    planned,
    ready,
)
from unit.decide.world import World

L4, SPOT = place_in_pool("l4"), place_in_pool("spot")
POOLS = (a_pool("l4"), a_spot_pool("spot"))
FULL = [a_node("n1", gpus=1, used=1), a_node("s1", gpus=1, used=1, pool="spot")]


def asking(*placements, waits=(), now_ms=NOW_MS, **fields):
    """The plan of a service of one replica that asks for nodes in l4, then spot."""
    fields.setdefault("pools", ("l4", "spot"))
    fields.setdefault("fleet_pools", POOLS)
    fields.setdefault("replicas", 1)
    fields.setdefault("nodes", FULL)
    history = History(((a_ref(), UnitHistory(1, pool_waits=tuple(waits))),))
    return planned(
        *placements, when_full=WhenFull.UNPINNED, history=history, now_ms=now_ms, **fields
    )


def waits_of(plan):
    return History.from_records(plan.history).of(a_ref()).pool_waits


def anywhere(place=L4, phase="Pending", node="", uid="", **fields):
    """A Deployment without a node, with one pod."""
    pod = a_replica("free-1", node, phase, **fields)
    return a_placement(place, replace(pod, uid=uid or pod.uid))


def test_a_place_in_a_pool_is_no_name_of_a_node():
    assert ("l4", "", "") == (pool_of_place(L4), pool_of_place("l4"), pool_of_place(""))


def test_where_nothing_fits_a_replica_may_run_on_any_node_of_the_first_pool():
    (decision,) = asking().decisions
    (placement,) = decision.placements

    assert (L4, "", "l4", 1) == (
        placement.node,
        placement.node_uid,
        placement.pool,
        placement.count,
    )
    assert placement.readiness.p50_ms > PROVISION_MS
    assert [] == held(decision)
    assert any("also a new one" in each.verdict for each in decision.attempts)


def test_a_free_gpu_comes_first_and_hold_asks_for_nothing():
    free = [*FULL, a_node("n2", gpus=1)]

    assert {"n2": 1} == created(asking(nodes=free).decisions[0])
    held_back = decided(replicas=1, nodes=FULL, fleet_pools=POOLS, pools=("l4", "spot"))
    assert ({}, ["HeldNoCapacity"]) == (created(held_back), held(held_back))


def test_static_pools_are_never_asked():
    """`pin: Required` says that nobody adds nodes there."""
    static = (a_pool("l4", pin=Pin.REQUIRED), a_spot_pool("spot"))

    assert {SPOT: 1} == created(asking(fleet_pools=static).decisions[0])


def test_limits_hold_for_new_nodes_too():
    limits = PlacementLimits(spot_max_percent=50)
    (decision,) = asking(replicas=2, min_ready=0, pools=("spot", "l4"), limits=limits).decisions

    assert {SPOT: 1, L4: 1} == created(decision)


def test_a_pending_pod_is_capacity_bought_and_stays_where_it_landed():
    (pending,) = asking(anywhere()).decisions
    (landed,) = asking(anywhere(phase="Ready", node="n9"), nodes=[*FULL, a_node("n9")]).decisions

    assert ({L4: 1}, {}, 1) == (kept(pending), created(pending), pending.warming)
    assert ({L4: 1}, {}, [], 1) == (kept(landed), created(landed), leaving(landed), landed.ready)


def test_a_pool_that_gave_no_node_is_left_for_the_next_and_remembered():
    stuck = anywhere(phase="Stuck", reason="Unschedulable")
    plan = asking(stuck)

    assert {SPOT: 1} == created(plan.decisions[0])
    assert [("ScaleToZero", ("free-1",), 0)] == leaving(plan.decisions[0])
    expected = PoolWait("l4", 1, NOW_MS, NOW_MS + FIRST_WAIT_MS, "uid-free-1")
    assert (expected,) == waits_of(plan)
    assert waits_of(plan) == waits_of(asking(stuck, waits=[expected], now_ms=NOW_MS + 5_000))


def test_a_pool_is_asked_again_after_its_wait():
    wait = PoolWait("l4", 1, NOW_MS, NOW_MS + FIRST_WAIT_MS, "uid-x")

    assert {SPOT: 1} == created(asking(waits=[wait]).decisions[0])
    assert {L4: 1} == created(asking(waits=[wait], now_ms=wait.until_ms).decisions[0])


@pytest.mark.parametrize(
    ("before", "wait_ms"),
    [
        (1, 2 * FIRST_WAIT_MS),
        (3, 8 * FIRST_WAIT_MS),
        (7, 128 * FIRST_WAIT_MS),
        (99, LONGEST_WAIT_MS),
    ],
)
def test_the_wait_doubles_up_to_a_day(before, wait_ms):
    earlier = PoolWait("l4", before, 0, 1, "uid-x")
    plan = asking(anywhere(phase="Stuck"), waits=[earlier])

    assert min(wait_ms, LONGEST_WAIT_MS) == waits_of(plan)[0].until_ms - NOW_MS
    assert before + 1 == waits_of(plan)[0].failures


def test_a_node_that_comes_after_the_failure_ends_the_wait():
    wait = PoolWait("l4", 3, NOW_MS - 7_200_000, NOW_MS + 1, "uid-x")
    landed = [*FULL, a_node("n9")]
    later = asking(anywhere(phase="Starting", node="n9", age=60), waits=[wait], nodes=landed)
    older = asking(anywhere(phase="Ready", node="n9", age=9_000), waits=[wait], nodes=landed)

    assert () == waits_of(later)
    assert (wait,) == waits_of(older), "that one landed before"


def test_with_every_pool_waiting_it_is_held_until_the_first_may_be_asked():
    waits = [
        PoolWait("l4", 1, NOW_MS, NOW_MS + 90_000, "uid-x"),
        PoolWait("spot", 1, NOW_MS, NOW_MS + 60_000, "uid-y"),
    ]
    plan = asking(waits=waits)

    assert ({}, ["HeldNoCapacity"]) == (created(plan.decisions[0]), held(plan.decisions[0]))
    assert "l4 gave none, asked again at" in plan.decisions[0].holds[0].remedy
    assert NOW_MS + 60_000 == plan.wake_at_ms


def test_a_pod_that_nobody_gave_a_node_stays_when_there_is_no_other_pool():
    """The autoscaler may still add one; a second pod in the same pool would add nothing."""
    (decision,) = asking(anywhere(phase="Stuck"), pools=("l4",)).decisions

    assert ({L4: 1}, {}, []) == (kept(decision), created(decision), leaving(decision))
    assert ["HeldNoCapacity"] == held(decision)


def test_a_pool_that_left_the_list_takes_its_pending_pod_along():
    (decision,) = asking(anywhere(SPOT), pools=("l4",)).decisions

    assert {L4: 1} == created(decision)
    assert "pool spot is none of its pools" == decision.retirements[0].reason


def test_a_node_that_is_gone_is_gone_also_where_a_pool_takes_any():
    """A pool without a selector matches a node of which nothing is known; that is no pool place."""
    anything = (a_pool("all", match_labels=()),)
    waiting = a_placement("gone", replicas=1)
    (decision,) = asking(
        waiting, pools=("all",), fleet_pools=anything, nodes=[a_node("n1", gpus=1)]
    ).decisions

    assert {"n1": 1} == created(decision)


def test_pools_that_overlap_leave_a_landed_replica_in_the_pool_that_was_asked():
    """Another pool would be another affinity, held back until the next rev for ever."""
    pools = (a_pool("l4"), a_pool("wide", match_labels=()))
    landed = anywhere(place_in_pool("wide"), phase="Ready", node="n9")
    (decision,) = asking(
        landed, pools=("l4", "wide"), fleet_pools=pools, nodes=[a_node("n9")]
    ).decisions

    assert ["wide"] == [placement.pool for placement in decision.placements]


def test_a_move_that_may_not_leave_first_asks_for_a_node():
    """A cordoned node on a full fleet: the drainer waits until the successor is Ready."""
    full = [*one_gpu("n1", cordoned=True), *one_gpu("n2")]
    (decision,) = asking(ready("n1"), ready("n2"), replicas=2, min_ready=2, nodes=full).decisions

    assert {L4: 1} == created(decision)
    assert [] == leaving(decision)


def test_moves_ask_for_as_many_nodes_at_once_as_may_move():
    """One a pass would leave work behind that nothing wakes up for."""
    full = [a_node("n1", gpus=2, cordoned=True)]
    both = a_placement("n1", a_replica("p-1", "n1"), a_replica("p-2", "n1"))
    (decision,) = asking(both, replicas=2, max_concurrent_moves=2, nodes=full).decisions

    assert {L4: 2} == created(decision)


def test_an_update_rather_lets_one_leave_first_than_buys_a_node():
    nodes = one_gpu("n1", "n2")
    (may,) = asking(old("n1"), old("n2"), replicas=2, min_ready=1, nodes=nodes).decisions
    (must,) = asking(old("n1"), old("n2"), replicas=2, min_ready=2, nodes=nodes).decisions

    assert ({}, 1) == (created(may), len(leaving(may)))
    assert ({L4: 1}, 0) == (created(must), len(leaving(must)))


@pytest.mark.parametrize(
    "broken",
    [
        '{"pool_waits":[{"pool":"l4"}]}',
        '{"pool_waits":[7]}',
        '{"pool_waits":7}',
        '{"pool_waits":[{"failed_ms":1,"failures":"x","pool":"l4","until_ms":2}]}',
    ],
)
def test_a_wait_that_cannot_be_read_is_lost_with_its_entry(broken):
    assert History() == History.from_records([(a_ref(), broken)])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 3),
    st.lists(st.sampled_from(["l4", "spot"]), max_size=3),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), min_size=1, max_size=4),
)
def test_every_world_with_an_autoscaler_comes_to_rest(standing, giving, events):
    """Each pool gives as many nodes as it is named for; what is Pending there gets one."""
    world = World([a_node(f"n{number}", gpus=1) for number in range(standing)])
    world.pools = {"l4", "spot"}
    history, budget, quiet = History(), list(giving), 0
    events = list(events)
    for _ in range(300):
        if quiet > 12:
            if not events:
                break
            replicas, _ = events.pop()
            quiet = 0
        else:
            replicas = events[-1][0] if events else replicas
        drain = Drain(15_000, 60_000, 30_000)
        unit = a_unit(
            replicas=replicas, pools=("l4", "spot"), when_full=WhenFull.UNPINNED, drain=drain
        )
        desired = a_desired(unit, pools=POOLS)
        plan = decide(desired, (a_shape(unit),), world.snapshot(), history, world.now_ms)
        history = History.from_records(plan.history, plan.starts)
        quiet = 0 if world.act(plan) else quiet + 1
        world.tick()
        for deployment in sorted(world.deployments.values(), key=lambda each: each.name):
            pool = pool_of_place(deployment.node)
            pending = [
                p for p in deployment.active() if not p.node and p.phase is not ReplicaPhase.STUCK
            ]
            if pool in budget and pending:
                budget.remove(pool)
                name = f"{pool}-new-{len(budget)}"
                world.nodes[name] = a_node(name, gpus=1, pool=pool)
    (decision,) = plan.decisions
    assert world.ready(a_ref()) == decision.replicas or decision.holds or decision.warming
