"""Many nodes go at once: who gets the room that is left, and notices that come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_notice,
    a_placement,
    a_ref,
    a_replica,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
)
from stoker.decide import decide
from stoker.decide.turns import CALM_MS
from stoker.model.fleet import Drain
from stoker.model.history import History, UnitHistory
from stoker.model.snapshot import ReplicaPhase, Signals
from unit.decide.one import created, leaving, one_gpu, planned, ready, stuck, warming
from unit.decide.world import TICK_MS, World, some_nodes

NAMES = ("alpha", "beta", "gamma")


def half_the_fleet(loads: dict[str, int | None], **draining):
    """Each service has its one replica on a noticed node; one GPU is free elsewhere."""
    nodes, states = [a_node("free", gpus=1)], []
    for name, load in loads.items():
        signals = Signals(requests_running=load)
        nodes.append(a_node(f"on-{name}", gpus=1, notice=a_notice(120), signals=signals))
        pod = a_replica(f"p-{name}", f"on-{name}", **draining.get(name, {}))
        states.append(a_state(a_placement(f"on-{name}", pod, service=name), name=name))
    return a_snapshot(*nodes, services=states)


def first_served(snapshot) -> list[str]:
    units = [a_unit(state.ref.name, replicas=1) for state in snapshot.services]
    shapes = tuple(a_shape(unit) for unit in units)
    plan = decide(a_desired(*units), shapes, snapshot, History(), NOW_MS)
    assert [*plan.decisions] == sorted(plan.decisions, key=lambda d: d.ref)
    return [d.ref.name for d in plan.decisions if created(d)]


@pytest.mark.parametrize(
    ("loads", "first"),
    [
        ({"alpha": 3, "beta": 9, "gamma": 5}, "beta"),
        ({"alpha": 0, "beta": None, "gamma": 1}, "gamma"),
        ({"alpha": 0, "beta": None, "gamma": None}, "beta"),
        ({"alpha": 4, "beta": 4, "gamma": 4}, "alpha"),
        ({"alpha": None, "beta": None, "gamma": None}, "alpha"),
    ],
    ids=["most served", "known before unknown", "unknown is not zero", "ties", "nothing known"],
)
def test_the_last_gpu_goes_to_who_serves_most_on_the_nodes_that_go(loads, first):
    assert [first] == first_served(half_the_fleet(loads))


def test_what_a_draining_engine_says_itself_outranks_its_node():
    asked = {"beta": {"draining_for": 5, "in_flight": 50}}

    assert ["beta"] == first_served(half_the_fleet({"alpha": 9, "beta": 1}, **asked))


def test_a_node_of_several_services_says_nothing_about_one():
    snapshot = half_the_fleet({"alpha": 1, "beta": 9})
    shared = Signals(requests_running=9, active_services=3)
    nodes = tuple(
        replace(node, signals=shared) if node.name == "on-beta" else node for node in snapshot.nodes
    )

    assert ["alpha"] == first_served(replace(snapshot, nodes=nodes))


def test_who_is_on_a_node_that_goes_comes_before_who_only_grows():
    grows = a_unit("alpha", replicas=1)
    keeps = a_unit("beta", replicas=1)
    nodes = [a_node("free", gpus=1), a_node("on-beta", gpus=1, notice=a_notice(120))]
    going = a_placement("on-beta", a_replica("p", "on-beta"), service="beta")
    snapshot = a_snapshot(*nodes, services=[a_state(going, name="beta")])
    plan = decide(
        a_desired(grows, keeps), (a_shape(grows), a_shape(keeps)), snapshot, History(), NOW_MS
    )

    assert [False, True] == [bool(created(decision)) for decision in plan.decisions]


# ----------------------------------------------------------------- withdrawn notices
def calm_of(plan) -> int | None:
    return History.from_records(plan.history).of(a_ref()).calm_until_ms


def test_after_a_notice_is_withdrawn_its_replacement_is_kept_for_a_while():
    """Such notices come back, and each start that is given up was for nothing."""
    noticed = [*one_gpu("n1", notice=a_notice()), *one_gpu("n2")]
    first = planned(ready("n1"), nodes=noticed, replicas=1)
    history = History.from_records(first.history)
    plain = one_gpu("n1", "n2")
    second = planned(ready("n1"), warming("n2"), nodes=plain, replicas=1, history=history)
    third = planned(
        ready("n1"),
        ready("n2"),
        nodes=plain,
        replicas=1,
        history=History.from_records(second.history),
        now_ms=NOW_MS + CALM_MS - 1,
    )
    last = planned(
        ready("n1"),
        ready("n2"),
        nodes=plain,
        replicas=1,
        history=History.from_records(third.history),
        now_ms=NOW_MS + CALM_MS,
    )

    assert [-1, NOW_MS + CALM_MS, NOW_MS + CALM_MS, None] == [
        calm_of(plan) for plan in (first, second, third, last)
    ]
    assert [[], [], []] == [leaving(plan.decisions[0]) for plan in (first, second, third)]
    assert NOW_MS + CALM_MS == second.wake_at_ms
    assert 1 == len(leaving(last.decisions[0]))


def test_without_a_notice_nothing_is_kept_beyond_the_count():
    plan = planned(ready("n1"), warming("n2"), replicas=1)

    assert (None, 1) == (calm_of(plan), len(leaving(plan.decisions[0])))


def test_in_the_calm_a_count_of_zero_is_obeyed_at_once():
    history = History(((a_ref(), UnitHistory(calm_until_ms=NOW_MS + 1_000)),))
    plan = planned(ready("n1"), replicas=0, history=history)

    assert 1 == len(leaving(plan.decisions[0]))


# --------------------------------------------------------------- nodes that are silent
def test_a_replica_of_a_silent_node_earns_a_substitute_elsewhere():
    """Its pod is not Ready; Kubernetes would wait five minutes before it makes another."""
    nodes = [*one_gpu("n1", ready=False), *one_gpu("n2", "n3")]
    lost = a_placement("n1", a_replica("p-n1", "n1", "Starting"))
    decision = planned(lost, ready("n2"), nodes=nodes).decisions[0]

    assert ({"n3": 1}, []) == (created(decision), leaving(decision))
    assert [] == [hold.code for hold in decision.holds]


def test_the_substitute_for_a_silent_node_is_kept_for_a_while_when_it_speaks_again():
    """A node that flaps would buy a start each time, and use none of them."""
    silent = [*one_gpu("n1", ready=False), *one_gpu("n2")]
    lost = a_placement("n1", a_replica("p-n1", "n1", "Starting"))
    first = planned(lost, nodes=silent, replicas=1)
    plain = one_gpu("n1", "n2")
    second = planned(
        ready("n1"),
        warming("n2"),
        nodes=plain,
        replicas=1,
        history=History.from_records(first.history),
    )
    last = planned(
        ready("n1"),
        ready("n2"),
        nodes=plain,
        replicas=1,
        history=History.from_records(second.history),
        now_ms=NOW_MS + CALM_MS,
    )

    assert {"n2": 1} == created(first.decisions[0])
    assert [-1, NOW_MS + CALM_MS, None] == [calm_of(plan) for plan in (first, second, last)]
    assert [[], 1] == [leaving(second.decisions[0]), len(leaving(last.decisions[0]))]


def test_a_ready_pod_on_a_silent_node_is_not_touched():
    """Unknown is not gone: endpoints still have it, and perhaps only the kubelet is away."""
    nodes = [*one_gpu("n1", ready=False), *one_gpu("n2", "n3")]
    decision = planned(ready("n1"), ready("n2"), nodes=nodes).decisions[0]

    assert ({}, []) == (created(decision), leaving(decision))


def test_silent_nodes_are_not_the_fault_of_a_rev():
    """A zone that is cut off must not stop purchases."""
    nodes = [*one_gpu("n1", "n2", ready=False), *one_gpu("n3", "n4")]
    lost = [a_placement(n, a_replica(f"p-{n}", n, "Starting")) for n in ("n1", "n2")]
    decision = planned(*lost, nodes=nodes).decisions[0]

    assert {"n3": 1, "n4": 1} == created(decision)


def test_when_all_nodes_are_silent_nothing_is_started_or_lost():
    nodes = one_gpu("n1", "n2", ready=False)
    lost = [a_placement(n, a_replica(f"p-{n}", n, "Starting")) for n in ("n1", "n2")]
    decision = planned(*lost, nodes=nodes).decisions[0]

    assert ({}, []) == (created(decision), leaving(decision))


def test_a_crash_loop_on_healthy_nodes_still_blames_the_rev():
    nodes = one_gpu("n1", "n2", "n3", "n4")
    decision = planned(stuck("n1"), stuck("n2"), nodes=nodes).decisions[0]

    assert ["StartsFailing"] == [hold.code for hold in decision.holds]


def test_fifty_notices_at_once_have_fifty_successors_in_one_plan():
    """cases.md row 131: none of them waits for a pass of its own, and no GPU is given twice."""
    names = [f"s{number:02d}" for number in range(50)]
    units = [a_unit(name, replicas=1) for name in names]
    nodes = one_gpu(*(f"a-{name}" for name in names), notice=a_notice())
    nodes += one_gpu(*(f"b-{name}" for name in names))
    states = [
        a_state(a_placement(f"a-{name}", a_replica(name, f"a-{name}"), service=name), name=name)
        for name in names
    ]
    snapshot = a_snapshot(*nodes, services=states)
    shapes = tuple(a_shape(unit) for unit in units)

    plan = decide(a_desired(*units), shapes, snapshot, History(), snapshot.taken_at_ms)

    chosen = [p.node for d in plan.decisions for p in d.placements if not p.exists]
    assert 50 == len(plan.decisions) == len(chosen)
    assert {f"b-{name}" for name in names} == set(chosen)


# ------------------------------------------------------------------- the whole kind
slow = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@slow
@given(
    free=st.lists(st.integers(1, 4), min_size=2, max_size=6),
    counts=st.lists(st.integers(1, 2), min_size=1, max_size=3),
    lead=st.sampled_from([0, 30, 120, 300]),
    data=st.data(),
)
def test_of_half_a_fleet_that_goes_all_is_restored_that_there_is_room_for(free, counts, lead, data):
    """The nodes die at their deadline. On the way no GPU is asked for twice (World.act), and

    what a service lacks below its floor is on its way wherever a node has room for it.
    """
    world = World(some_nodes(*free))
    drain = Drain(endpoint_sync_ms=10_000, max_ms=60_000, shutdown_ms=10_000)
    units = [
        a_unit(name, replicas=count, drain=drain)
        for name, count in zip(NAMES, counts, strict=False)
    ]
    desired, shapes = a_desired(*units), tuple(a_shape(unit) for unit in units)
    history = History()
    dying = data.draw(st.sets(st.sampled_from(sorted(world.nodes)), max_size=len(free) // 2))
    deadline_ms = 0
    for number in range(60):
        if number == 8:
            deadline_ms = world.now_ms + lead * 1_000
            for name in dying:
                notice = replace(a_notice(), at_ms=world.now_ms, deadline_ms=deadline_ms)
                world.nodes[name] = replace(world.nodes[name], notice=notice)
        if deadline_ms and world.now_ms >= deadline_ms + TICK_MS:
            _die(world, dying)
        plan = decide(desired, shapes, world.snapshot(), history, world.now_ms)
        history = History.from_records(plan.history, plan.starts)
        world.act(plan)
        for decision in plan.decisions:
            going = dying if number >= 8 else set()
            _lacks_nothing_there_is_room_for(world, decision, going)
        world.tick()
    room = sum(free[int(name[1:]) - 1] for name in world.nodes if name not in dying)
    wanted = sum(counts)
    assert min(room, wanted) == sum(world.ready(unit.ref) for unit in units)


def _die(world: World, names) -> None:
    """The machines are gone, with their Nodes and pods."""
    for name in sorted(names):
        world.nodes.pop(name, None)
    for deployment in world.deployments.values():
        deployment.pods = [pod for pod in deployment.pods if pod.node not in names]


def _lacks_nothing_there_is_room_for(world: World, decision, dying) -> None:
    coming = sum(
        max(0, d.replicas - sum(1 for p in d.active() if p.phase is ReplicaPhase.STUCK))
        for d in world.deployments.values()
        if d.ref == decision.ref and d.node not in dying
    )
    if coming >= decision.floor:
        return
    needs = world.requests(decision.ref)
    for node in world.nodes.values():
        if node.notice is None and node.allocatable.holds(world.asked(node.name).plus(needs)):
            waiting = any(not p.node for d in world.deployments.values() for p in d.active())
            assert waiting or decision.retirements, f"{node.name} has room"


# ------------------------------------------------------------- when admission stops
@pytest.mark.parametrize(
    ("beside", "stops"),
    [
        ((), True),
        ((warming("n3", age=5),), False),
        ((warming("n3", age=3000),), True),
    ],
    ids=["no successor", "one that comes in time", "one that should be there long since"],
)
def test_without_a_successor_in_time_the_floor_is_enough_to_stop_admission(beside, stops):
    """Every second of admission is one less for answers that are under way (semantics 1.15)."""
    nodes = [
        a_node("n1", gpus=1, notice=a_notice(900)),
        *([a_node("n2", gpus=1), a_node("n3", gpus=1)] if beside else [a_node("n2", gpus=1)]),
    ]
    decision = planned(ready("n1"), ready("n2"), *beside, nodes=nodes, min_ready=1).decisions[0]

    assert stops == bool(leaving(decision))


def test_below_the_floor_a_noticed_replica_serves_to_its_last_moment():
    """Nobody else is there: refusing early would refuse everybody."""
    nodes = [a_node("n1", gpus=1, notice=a_notice(90))]
    decision = planned(ready("n1"), nodes=nodes, replicas=1).decisions[0]

    assert [] == leaving(decision)
