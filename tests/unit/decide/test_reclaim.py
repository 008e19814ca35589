"""Priorities: who is placed first, and room that lower services give, down to their floor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_placement,
    a_ref,
    a_replica,
    a_service,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
    some_resources,
)
from stoker.decide import decide
from stoker.model.fleet import Drain
from stoker.model.flow import Held, HeldBy
from stoker.model.history import History
from stoker.model.limits import Reclaim
from stoker.model.snapshot import ReplicaPhase
from unit.decide.one import created, held, kept, leaving
from unit.decide.world import World, some_nodes

TAKES: dict[str, Any] = {"priority": 100, "reclaim": Reclaim.LOWER_PRIORITY}
DRAIN = Drain(endpoint_sync_ms=15_000, max_ms=60_000, shutdown_ms=30_000)


def plan_of(*units, nodes, services=(), **desired):
    wanted = a_desired(*units, **desired)
    shapes = tuple(a_shape(unit) for unit in units)
    snapshot = a_snapshot(*nodes, services=services)
    return decide(wanted, shapes, snapshot, History(), NOW_MS)


def both(*units, **fields):
    """Decisions about `low` and `top`."""
    plan = plan_of(*units, **fields)
    return plan.decision(a_ref("low")), plan.decision(a_ref("top"))


def serving(node, *phases, service="low", gpus=1):
    """A Deployment of `low` with a pod for each phase; Ready without any."""
    pods = [
        a_replica(f"{service}-{node}-{number}", node, phase)
        for number, phase in enumerate(phases or ["Ready"])
    ]
    return a_placement(node, *pods, service=service, requests=some_resources(gpus))


def low_stands(*placements):
    return [a_state(*placements, name="low")]


# -------------------------------------------------------------------- order
def test_the_important_service_takes_what_is_free():
    """By name `a` would be first; equal priorities go by name."""

    def plan(priority):
        units = [a_unit("a", replicas=1), a_unit("z", replicas=1, priority=priority)]
        return plan_of(*units, nodes=[a_node(gpus=1)])

    first = plan(1)

    assert ["a", "z"] == [decision.ref.name for decision in first.decisions], "sorted by ref"
    assert [{}, {"n1": 1}] == [created(decision) for decision in first.decisions]
    assert [{"n1": 1}, {}] == [created(decision) for decision in plan(0).decisions]


def test_priority_alone_takes_nothing_from_anybody():
    low, top = both(
        a_unit("low", replicas=2, min_ready=1),
        a_unit("top", replicas=1, priority=100),
        nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)],
        services=low_stands(serving("n1"), serving("n2")),
    )

    assert ([], ["HeldNoCapacity"]) == (leaving(low), held(top))
    assert "or placement.reclaim: LowerPriority takes n1 from llm/low" in top.holds[0].remedy


def test_the_remedy_names_the_priority_that_would_help():
    """ux.md: `priority above 0 takes l4-spot-1 from embed-e5`."""
    _, top = both(
        a_unit("low", replicas=2, min_ready=1, priority=7),
        a_unit("top", replicas=1),
        nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)],
        services=low_stands(serving("n1"), serving("n2")),
    )

    told = "; or priority above 7 and placement.reclaim: LowerPriority takes n1 from llm/low"
    assert top.holds[0].remedy.endswith(told)


# ------------------------------------------------------------------- reclaim
def test_a_lower_service_gives_a_replica_and_both_say_why():
    low, top = both(
        a_unit("low", replicas=2, min_ready=1),
        a_unit("top", replicas=1, **TAKES),
        nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)],
        services=low_stands(serving("n1"), serving("n2")),
    )

    assert [("StopTraffic", ("low-n1-0",), 0)] == leaving(low)
    assert "makes room for llm/top (priority 100 above 0)" == low.retirements[0].reason
    assert "GivesWay" in held(low)
    assert (["Reclaiming"], {}) == (held(top), created(top))
    assert "n1 from llm/low (priority 0) below 100" in top.holds[0].message
    assert "waits for the room of llm/low (priority 0) below 100" in {
        a.verdict for a in top.attempts
    }


def test_nothing_is_taken_below_the_floor_of_the_victim():
    low, top = both(
        a_unit("low", replicas=2, min_ready=2),
        a_unit("top", replicas=1, **TAKES),
        nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)],
        services=low_stands(serving("n1"), serving("n2")),
    )

    assert ([], ["HeldNoCapacity"]) == (leaving(low), held(top))


def test_equal_and_higher_priorities_give_nothing():
    for priority in (100, 101):
        low, top = both(
            a_unit("low", replicas=2, min_ready=0, priority=priority),
            a_unit("top", replicas=1, **TAKES),
            nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)],
            services=low_stands(serving("n1"), serving("n2")),
        )

        assert ([], ["HeldNoCapacity"]) == (leaving(low), held(top))


def test_what_does_not_serve_yet_is_taken_before_what_serves():
    """A stuck or starting replica costs nobody an answer, so floors do not guard it."""
    low, _ = both(
        a_unit("low", replicas=2, min_ready=1),
        a_unit("top", replicas=1, **TAKES),
        nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)],
        services=low_stands(serving("n1"), serving("n2", "Starting")),
    )

    assert [("ScaleToZero", ("low-n2-0",), 0)] == leaving(low)


def test_no_more_leave_than_one_large_replica_needs():
    """Four GPUs: on n1 two have to go, on n2 three."""
    low, top = both(
        a_unit("low", replicas=5, min_ready=0),
        a_unit("top", replicas=1, gpu_count=4, **TAKES),
        nodes=[a_node("n1", gpus=4), a_node("n2", gpus=4, used=1)],
        services=low_stands(
            serving("n1", "Ready", "Ready"), serving("n2", "Ready", "Ready", "Ready")
        ),
    )

    assert [("StopTraffic", ("low-n1-0", "low-n1-1"), 0)] == leaving(low)
    assert {"n2": 3} == kept(low)
    assert ["Reclaiming"] == held(top)


def test_room_on_its_way_is_booked_for_the_winner_and_nobody_else_goes():
    """The second pass reads the drain from the pod: no second victim, and no successor there."""
    going = a_placement(
        "n1",
        a_replica("low-n1-0", "n1", draining_for=5, in_flight=2),
        service="low",
        requests=some_resources(),
    )
    low, top = both(
        a_unit("low", replicas=2, min_ready=0),
        a_unit("top", replicas=1, **TAKES),
        nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)],
        services=low_stands(going, serving("n2")),
    )

    assert [("Drain", ("low-n1-0",), 0)] == leaving(low)
    assert "makes room for llm/top (priority 100 above 0)" == low.retirements[0].reason
    assert ["Reclaiming"] == held(top)


def test_a_held_service_gives_nothing():
    low = a_unit("low", replicas=2, min_ready=0)
    stop = Held(low.ref, HeldBy.SUSPENDED, "by hand")
    gives, top = both(
        low,
        a_unit("top", replicas=1, **TAKES),
        nodes=[a_node("n1", gpus=1), a_node("n2", gpus=1)],
        services=low_stands(serving("n1"), serving("n2")),
        held=(stop,),
    )

    assert ((), ["HeldNoCapacity"]) == (gives.retirements, held(top))


def test_the_victim_starts_elsewhere_where_it_can():
    """A small replica moves over for a large one."""
    low, top = both(
        a_unit("low", replicas=1, min_ready=0),
        a_unit("top", replicas=1, gpu_count=2, **TAKES),
        nodes=[a_node("n1", gpus=2), a_node("n2", gpus=1)],
        services=low_stands(serving("n1")),
    )

    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(low)]
    assert {"n2": 1} == created(low)
    assert ["Reclaiming"] == held(top)


# ------------------------------------------------------------------ promises
specs = st.tuples(
    st.integers(0, 3),  # replicas
    st.integers(1, 2),  # gpus
    st.none() | st.integers(0, 2),  # minReady
    st.integers(0, 2),  # priority
    st.booleans(),  # takes
)
happenings = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 3)), max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.lists(specs, min_size=2, max_size=3),
    happenings,
)
def test_reclaim_keeps_floors_books_nothing_twice_and_comes_to_rest(free, wishes, events):
    """World.act checks that no node is asked for more than it has."""
    wanted = {
        name: a_service(
            replicas=count,
            gpu_count=gpus,
            min_ready=floor,
            priority=priority,
            reclaim=Reclaim.LOWER_PRIORITY if takes else Reclaim.NEVER,
            drain=DRAIN,
        )
        for name, (count, gpus, floor, priority, takes) in zip("abc", wishes, strict=False)
    }
    world = World(some_nodes(*free), lambda ref: some_resources(wanted[ref.name].gpu_count))
    world.pinned = True
    history, quiet = History(), 0
    events = list(events)
    for _ in range(300):
        if quiet > 14:
            if not events:
                break
            name, count = events.pop()
            if name in wanted:
                wanted[name] = replace(wanted[name], replicas=count)
        units = [a_unit(name, spec=spec) for name, spec in wanted.items()]
        desired = a_desired(*units)
        shapes = tuple(a_shape(unit) for unit in units)
        plan = decide(desired, shapes, world.snapshot(), history, world.now_ms)
        history = History.from_records(plan.history, plan.starts)
        before = {d.ref: world.ready(d.ref) for d in plan.decisions}
        changed = world.act(plan)
        for decision in plan.decisions:
            assert world.ready(decision.ref) >= min(before[decision.ref], decision.floor)
        quiet = 0 if changed else quiet + 1
        world.tick()
    assert quiet > 14, "does not come to rest"
    for decision in plan.decisions:
        assert world.ready(decision.ref) == decision.replicas or decision.holds
        assert "Reclaiming" not in held(decision), "room that was taken is used"
    pods = [pod for name in wanted for pod in world.pods(a_ref(name))]
    assert all(pod.phase is ReplicaPhase.READY for pod in pods)
