"""Updates: one replica after the other, never below the floor, held when the new rev fails."""

from __future__ import annotations

from builders import (
    a_placement,
    a_replica,
)
from unit.decide.one import (
    OLD,
    created,
    decided,
    held,
    kept,
    leaving,
    old,
    one_gpu,
    ready,
    stuck,
    warming,
)


def test_an_update_surges_onto_a_free_gpu_first():
    decision = decided(old("n1"), old("n2"))

    assert {"old:n1": 1, "old:n2": 1} == kept(decision)
    assert {"n3": 1} == created(decision)
    assert not decision.retirements
    assert decision.updating


def test_a_new_replica_names_the_deployment_it_takes_over_from():
    first = decided(old("n1"), old("n2"))
    later = decided(old("n1"), old("n2"), warming("n3"))

    assert [old("n2").name] == [p.replaces for p in first.placements if p.rev != OLD]
    assert [old("n2").name] == [p.replaces for p in later.placements if p.rev != OLD]


def test_an_addition_takes_over_from_nobody():
    decision = decided(old("n1"), old("n2"), replicas=3)

    assert [""] == [p.replaces for p in decision.placements if p.rev != OLD]


def test_an_old_replica_leaves_when_the_new_one_is_ready():
    decision = decided(old("n1"), old("n2"), ready("n3"))

    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(decision)]
    assert {} == created(decision)


def test_no_second_move_begins_while_one_is_under_way():
    nodes = one_gpu("n1", "n2", "n3", "n4")
    draining = a_placement("n1", a_replica("old-n1", "n1", draining_for=5), rev=OLD)

    assert {} == created(decided(old("n1"), old("n2"), warming("n3"), nodes=nodes))
    assert {} == created(decided(draining, old("n2"), ready("n3"), nodes=nodes))


def test_the_move_ends_when_the_old_pod_was_told_to_stop():
    nodes = one_gpu("n1", "n2", "n3", "n4")
    stopped = a_placement("n1", a_replica("old-n1", "n1", "Terminating"), rev=OLD, replicas=0)

    decision = decided(stopped, old("n2"), ready("n3"), nodes=nodes)
    assert {"n4": 1} == created(decision)
    assert [("ScaleToZero", ("old-n1",), 0)] == leaving(decision)


def test_two_moves_at_once_where_the_budget_says_so():
    decision = decided(
        old("n1"),
        old("n2"),
        nodes=one_gpu("n1", "n2", "n3", "n4"),
        max_concurrent_moves=2,
    )

    assert {"n3": 1, "n4": 1} == created(decision)


def test_on_a_full_pool_one_is_drained_first_where_the_service_survives_it():
    """A rolling update with a surge pod waits here for ever."""
    first = old("n1", a_replica("newest", "n1", age=10))
    decision = decided(first, old("n2"), nodes=one_gpu("n1", "n2"))

    assert [("StopTraffic", ("newest",), 0)] == leaving(decision)
    assert not decision.holds


def test_on_a_full_pool_a_single_replica_is_held():
    decision = decided(old("n1"), nodes=one_gpu("n1"), replicas=1)

    assert (["HeldNoCapacity"], []) == (held(decision), leaving(decision))
    assert "1 free GPU on one node of l4" in decision.holds[0].remedy
    assert "disruption.minReady below 1" in decision.holds[0].remedy


def test_with_a_floor_of_zero_even_the_last_one_may_leave_first():
    decision = decided(old("n1"), nodes=one_gpu("n1"), replicas=1, min_ready=0)

    assert [("StopTraffic", ("old-n1",), 0)] == leaving(decision)


def test_while_room_is_coming_free_nothing_else_is_drained():
    draining = a_placement("n1", a_replica("a", "n1", draining_for=5, in_flight=2), rev=OLD)
    decision = decided(draining, old("n2"), old("n3"), replicas=3)

    assert [("Drain", ("a",), 0)] == leaving(decision)


def test_waiting_for_an_own_departure_is_not_a_lack_of_capacity():
    stopped = a_placement("n1", a_replica("a", "n1", "Terminating"), rev=OLD, replicas=0)
    decision = decided(stopped, ready("n2"), nodes=one_gpu("n1", "n2"))

    assert ["WaitingForDeparture"] == held(decision)
    assert "the place on n1 once the replica there has left" == decision.holds[0].remedy


def test_a_draining_replica_says_when_its_place_is_free_at_the_latest():
    draining = a_placement("n1", a_replica("a", "n1", draining_for=5, in_flight=2))
    decision = decided(draining, ready("n2"), nodes=one_gpu("n1", "n2"))

    assert ["WaitingForDeparture"] == held(decision)
    assert decision.holds[0].remedy.endswith("at the latest 2025-11-24T16:10:10Z")


def test_a_failed_new_replica_earns_one_try_elsewhere_and_the_old_keep_serving():
    """The node may be to blame; a second failure shows that it is the rev."""
    nodes = one_gpu("n1", "n2", "n3", "n4", "n5")
    once = decided(old("n1"), old("n2"), stuck("n3"), nodes=nodes)
    tried = decided(old("n1"), old("n2"), stuck("n3"), warming("n4", age=10), nodes=nodes)
    twice = decided(old("n1"), old("n2"), stuck("n3"), stuck("n4"), nodes=nodes)

    assert ({"n4": 1}, [], []) == (created(once), leaving(once), held(once))
    assert ({}, [], []) == (created(tried), leaving(tried), held(tried))
    assert {"old:n1": 1, "old:n2": 1, "n3": 1, "n4": 1} == kept(twice)
    assert ({}, [], ["UpdateFailed"]) == (created(twice), leaving(twice), held(twice))
    assert "n4 (CrashLoopBackOff); 2 of the old rev still serving" in twice.holds[0].message


def test_no_old_replica_makes_room_for_a_rev_that_only_failed_so_far():
    decision = decided(old("n1"), old("n2"), stuck("n3"), nodes=one_gpu("n1", "n2", "n3"))

    assert ({}, []) == (created(decision), leaving(decision))
    assert ["UpdateFailed", "HeldNoCapacity"] == held(decision)
    assert decision.holds[0].remedy.startswith("one more start, on another node")


def test_a_revert_makes_the_old_replicas_good_again_and_drops_the_failed_one():
    decision = decided(old("n1"), old("n2"), stuck("n3"), rev=OLD)

    assert ["ScaleToZero"] == [stage for stage, _, _ in leaving(decision)]
    assert not decision.holds


def test_a_stuck_old_replica_makes_room_for_the_fix_on_a_full_pool():
    broken = old("n1", a_replica("x", "n1", "Stuck"))
    decision = decided(broken, nodes=one_gpu("n1"), replicas=1)

    assert [("ScaleToZero", ("x",), 0)] == leaving(decision)
    assert not decision.holds


def test_a_stuck_old_replica_leaves_when_others_fill_its_place():
    broken = old("n3", a_replica("x", "n3", "Stuck"))
    decision = decided(old("n1"), old("n2"), broken)

    assert [("ScaleToZero", ("x",), 0)] == leaving(decision)


def test_of_warming_old_replicas_only_those_beyond_the_wanted_count_are_given_up():
    nodes = one_gpu("n1", "n2", "n3", "n4")
    first = old("n1", a_replica("a", "n1", "Starting", age=200))
    second = old("n2", a_replica("b", "n2", "Starting", age=100))

    enough = decided(first, second, nodes=nodes)
    assert ([], {"n3": 1}) == (leaving(enough), created(enough))
    one = decided(first, second, nodes=nodes, replicas=1)
    assert [("ScaleToZero", ("b",), 0)] == leaving(one)


def test_below_the_floor_the_new_rev_may_start_beyond_the_budget():
    """All old replicas are stuck: nothing serves, so the floor comes first."""
    broken = [old(n, a_replica(f"x-{n}", n, "Stuck")) for n in ("n1", "n2", "n3")]
    nodes = one_gpu("n1", "n2", "n3", "n4", "n5", "n6")
    decision = decided(*broken, nodes=nodes, replicas=3)

    assert 2 == len(created(decision))


def test_more_replicas_and_a_new_rev_in_one_commit_go_one_at_a_time():
    nodes = one_gpu("n1", "n2", "n3", "n4", "n5")
    decision = decided(old("n1"), old("n2"), replicas=4, nodes=nodes)

    assert 1 == len(created(decision))
