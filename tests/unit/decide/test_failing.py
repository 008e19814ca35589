"""What failed starts allow: none of a blamed rev, one at a time of a suspect, and waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import (
    NOW_MS,
    REV,
    a_desired,
    a_node,
    a_placement,
    a_ref,
    a_replica,
    a_service,
    a_shape,
    a_unit,
)
from stoker.decide import decide
from stoker.decide.learn_failures import PROVEN_MS
from stoker.model.blame import BadNode, BadRev, Failures
from stoker.model.fleet import Desired, PlacementMode
from stoker.model.history import History, UnitHistory
from stoker.model.plan import Plan
from unit.decide.one import created, held, old, one_gpu, planned, ready, stuck, warming
from unit.decide.world import World, some_nodes

some = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def remembered(**fields) -> History:
    """That much is remembered of the rev that Git wants."""
    return History(((a_ref(), UnitHistory(failures=Failures(rev=REV, **fields))),))


def blamed() -> History:
    return remembered(bad_rev=BadRev(REV, NOW_MS - 60_000, "CrashLoopBackOff", ("n1", "n2")))


# ----------------------------------------------------------------- a blamed rev
def test_nothing_is_bought_of_a_blamed_rev_even_when_nothing_of_it_stands():
    """Deleting what is stuck, or losing its node, buys no third start."""
    decision = planned(history=blamed()).decisions[0]

    assert ({}, ["StartsFailing"]) == (created(decision), held(decision))
    assert f"rev {REV} failed on n1, n2 (CrashLoopBackOff)" == decision.holds[0].message
    assert decision.holds[0].remedy.startswith("commit a fix")


def test_beside_an_old_rev_that_serves_it_is_an_update_that_failed():
    nodes = one_gpu("n1", "n2", "n3", "n4")
    decision = planned(old("n1"), old("n2"), nodes=nodes, history=blamed()).decisions[0]

    assert ({}, ["UpdateFailed"]) == (created(decision), held(decision))
    assert decision.holds[0].message.endswith("; 2 of the old rev still serving")


def test_another_rev_in_git_is_bought_at_once():
    decision = planned(history=blamed(), rev="bbbbbbbb").decisions[0]

    assert (2, []) == (len(created(decision)), held(decision))


def test_one_that_recovered_ends_it_after_three_minutes():
    back = a_placement("n1", a_replica("p", "n1", age=30))
    soon = planned(back, history=blamed())
    later = planned(back, history=blamed(), now_ms=NOW_MS + PROVEN_MS)

    assert ({}, ["StartsFailing"]) == (created(soon.decisions[0]), held(soon.decisions[0]))
    assert NOW_MS - 30_000 + PROVEN_MS == soon.wake_at_ms
    assert ({"n2": 1}, []) == (created(later.decisions[0]), held(later.decisions[0]))


def test_in_mode_scheduler_a_move_of_a_blamed_rev_stops_too():
    decision = planned(
        a_placement("n1"),
        placement_mode=PlacementMode.SCHEDULER,
        replicas=1,
        history=blamed(),
    ).decisions[0]

    assert ["UpdateFailed"] == held(decision)
    assert [0] == [p.count for p in decision.placements if not p.node]


# -------------------------------------------------------------- one, and waiting
def test_a_stuck_replica_counts_as_none_and_earns_one_substitute_elsewhere():
    nodes = [a_node("n1", gpus=4), a_node("n2", gpus=4)]
    four = [a_replica(f"p{n}", "n1", "Stuck", reason="CrashLoopBackOff") for n in range(4)]
    first = planned(a_placement("n1", *four), nodes=nodes, replicas=4).decisions[0]
    tried = planned(
        a_placement("n1", *four), warming("n2", age=10), nodes=nodes, replicas=4
    ).decisions[0]

    assert ({"n2": 1}, ["StartsFailing"]) == (created(first), held(first))
    assert ({}, ["StartsFailing"]) == (created(tried), held(tried))


def test_a_replica_that_runs_between_two_crashes_keeps_its_substitute():
    """Given up after ten seconds, the substitute was bought again with the next crash."""
    nodes = [a_node("n1", gpus=1), a_node("n2", gpus=1), a_node("n3", gpus=1)]
    crashed = planned(ready("n3"), stuck("n1", age=60), nodes=nodes)
    assert {"n2": 1} == created(crashed.decisions[0])

    history = History.from_records(crashed.history)
    again = planned(
        ready("n3"),
        warming("n1", age=60, restarts=1),
        warming("n2", age=5),
        nodes=nodes,
        history=history,
    ).decisions[0]

    assert () == again.retirements
    assert {"n2", "n3"} <= {place.node for place in again.placements}


def test_a_rev_that_serves_elsewhere_gets_all_its_substitutes():
    nodes = [*one_gpu("n1", "n2", "n3"), a_node("n4", gpus=8)]
    decision = planned(ready("n1"), ready("n2"), stuck("n3"), nodes=nodes, replicas=5).decisions[0]

    assert {"n4": 3} == created(decision)


def test_the_next_start_waits_longer_with_each_failure_in_a_row():
    waits = []
    for number in range(1, 9):
        history = remembered(in_a_row=number, last_ms=NOW_MS)
        plan = planned(nodes=one_gpu("n1"), replicas=1, history=history)
        waits.append(0 if plan.wake_at_ms is None else (plan.wake_at_ms - NOW_MS) // 1000)
        if waits[-1]:
            assert "the next start is tried at 2025-11-24T" in plan.decisions[0].holds[0].remedy
        due = planned(
            nodes=one_gpu("n1"), replicas=1, history=history, now_ms=NOW_MS + waits[-1] * 1000
        )
        assert {"n1": 1} == created(due.decisions[0])

    assert [0, 10, 20, 40, 80, 160, 300, 300] == waits


def test_stuck_replicas_still_count_against_the_gpus_of_their_nodes():
    decision = planned(stuck("n1"), nodes=[a_node("n1", gpus=1)], replicas=1).decisions[0]

    assert ({}, "StartsFailing") == (created(decision), held(decision)[0])


# --------------------------------------------------------------------- promises
@dataclass
class Life:
    """One service in a small cluster, pass after pass, and every start that was decided."""

    world: World
    replicas: int
    rev: str = REV
    history: History = field(default_factory=History)
    starts: list[tuple[str, str]] = field(default_factory=list)

    def desired(self) -> Desired:
        return a_desired(a_unit(replicas=self.replicas))

    def turn(self) -> Plan:
        """Decide, carry it out, let the cluster move on; history goes through its text."""
        shapes = (a_shape(a_unit(), rev=self.rev),)
        snapshot = self.world.snapshot()
        plan = decide(self.desired(), shapes, snapshot, self.history, self.world.now_ms)
        self.history = History.from_records(plan.history, plan.starts)
        for place in plan.decisions[0].placements:
            if not place.exists:
                self.starts += [(place.node, place.rev)] * place.count
        self.world.act(plan)
        self.world.tick()
        return plan

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.turn()


@some
@given(st.integers(1, 3), st.lists(st.integers(1, 2), min_size=3, max_size=5), st.integers(1, 3))
def test_a_broken_node_wastes_two_waves_of_starts_in_twenty_minutes(replicas, free, broken):
    """The first may put all replicas there; ten minutes later it is one."""
    world = World(some_nodes(*free, gpus=2))
    world.bad_nodes.add(f"n{broken}")
    life = Life(world, replicas)
    life.turns(130)

    room = sum(count for number, count in enumerate(free, start=1) if number != broken)
    wasted = sum(1 for node, _ in life.starts if node == f"n{broken}")
    assert wasted <= replicas + 1
    if room >= replicas:
        assert replicas == world.ready(a_ref())


@some
@given(
    st.integers(1, 3),
    st.lists(st.integers(1, 2), min_size=3, max_size=5),
    st.lists(st.sampled_from(["kill", "forget", "wait"]), max_size=6),
)
def test_of_a_rev_that_never_runs_two_starts_are_bought_while_the_old_one_serves(
    replicas, free, happenings
):
    """Budget 1; pods that others delete and time change nothing of it."""
    world = World(some_nodes(*free, gpus=2))
    life = Life(world, replicas)
    life.turns(20)
    before = world.ready(a_ref())
    world.bad_revs.add("bbbbbbbb")
    life.rev = "bbbbbbbb"
    for what in happenings:
        life.turns(10)
        if what == "kill":
            for deployment in world.deployments.values():
                if deployment.rev == life.rev:
                    deployment.pods.clear()
        elif what == "wait":
            world.now_ms += 3_600_000
    life.turns(20)

    bought = [start for start in life.starts if start[1] == "bbbbbbbb"]
    assert len(bought) <= 2
    assert world.ready(a_ref(), REV) >= min(before, a_service().floor(replicas))


def test_a_row_of_an_unknown_node_bars_nothing():
    rows = (BadNode("uid-gone", NOW_MS, NOW_MS, 1, NOW_MS + 600_000, "Evicted"),)

    assert 2 == len(created(planned(history=remembered(nodes=rows)).decisions[0]))
