"""From the replicas that stand to those that are wanted, one step at a time (mode Nodes)."""

from __future__ import annotations

import pytest

from builders import (
    MODEL_REVISION,
    NOW_MS,
    a_node,
    a_notice,
    a_placement,
    a_pool,
    a_replica,
    a_spot_pool,
    a_taint,
)
from stoker.model.plan import RetireStage
from stoker.objects.names import deployment_name
from unit.decide.one import OLD, created, decided, held, kept, leaving, planned


def old(node="n1", *pods, **fields):
    return a_placement(node, *(pods or (a_replica(f"old-{node}", node),)), rev=OLD, **fields)


def ready(node="n1", **fields):
    return a_placement(node, a_replica(f"p-{node}", node), **fields)


def warming(node="n1", **fields):
    return a_placement(node, a_replica(f"p-{node}", node, "Starting", **fields))


def stuck(node="n1", **fields):
    fields.setdefault("reason", "CrashLoopBackOff")
    return a_placement(node, a_replica(f"p-{node}", node, "Stuck", **fields))


def homeless(node="n1"):
    """A pod that no node takes."""
    return a_placement(node, a_replica(f"p-{node}", "", "Stuck", reason="Unschedulable"))


def one_gpu(*names, **fields):
    return [a_node(name, gpus=1, **fields) for name in names]


# ------------------------------------------------------------ steady state
def test_nothing_changes_when_everything_stands():
    decision = decided(ready("n1"), ready("n2"))

    assert ({"n1": 1, "n2": 1}, {}, []) == (kept(decision), created(decision), leaving(decision))
    assert (2, 0, 1, False) == (decision.ready, decision.warming, decision.floor, decision.updating)
    assert not decision.holds


def test_a_new_service_starts_all_replicas_at_once():
    decision = decided()

    assert {"n1": 1, "n2": 1} == created(decision)
    assert deployment_name("qwen", "n1", decision.rev) in decision.deployment_names


def test_two_replicas_on_one_node_are_one_deployment():
    assert {"n1": 2} == created(decided(nodes=[a_node("n1", gpus=2)]))


def test_warming_replicas_are_capacity_bought():
    """cases.md row 117: no scale-up while replicas are on their way."""
    decision = decided(warming("n1"), a_placement("n2", replicas=1))

    assert ({}, 2) == (created(decision), decision.warming)


def test_where_a_pod_landed_is_where_it_is():
    """Its Deployment keeps its name, and nobody starts a second one there."""
    decision = decided(a_placement("n1", a_replica("p", "n2")), replicas=1)

    assert {"n1": 1} == kept(decision)
    assert not decision.retirements


def test_a_deployment_scaled_by_hand_goes_back():
    """A bare `kubectl scale` is drift."""
    down = decided(a_placement("n1", replicas=0), replicas=1, nodes=one_gpu("n1"))
    up = decided(a_placement("n1", a_replica("p", "n1"), replicas=3), replicas=1)

    assert {"n1": 1} == kept(down)
    assert not down.retirements
    assert {"n1": 1} == kept(up)


def test_a_name_in_use_is_added_to_not_created_again():
    """The node of a Deployment whose pod landed elsewhere is free again."""
    live = a_placement("n1", a_replica("p", "n2"))
    decision = decided(live, nodes=one_gpu("n1", "n2"))

    assert ({"n1": 2}, {}) == (kept(decision), created(decision))


def test_a_deployment_being_deleted_is_left_alone_and_its_name_not_used():
    live = a_placement("n1", a_replica("p", "n1"), terminating=True)
    decision = decided(live, replicas=1, nodes=[a_node("n1", gpus=4), a_node("n2", used=7)])

    assert (live.name,) == decision.untouched
    assert {"n2": 1} == created(decision)


# -------------------------------------------------------------- scale down
def test_scale_down_takes_the_unhealthy_first_at_once_and_beyond_the_budget():
    decision = decided(
        ready("n1"),
        ready("n2"),
        stuck("n3"),
        warming("n4"),
        a_placement("n5", replicas=1),
        nodes=one_gpu("n1", "n2", "n3", "n4", "n5"),
    )

    assert {"n1": 1, "n2": 1} == kept(decision)
    assert {"ScaleToZero"} == {stage for stage, _, _ in leaving(decision)}


def test_scale_down_drains_one_at_a_time_newest_first():
    decision = decided(
        a_placement("n1", a_replica("a", "n1", age=300)),
        a_placement("n2", a_replica("b", "n2", age=100)),
        a_placement("n3", a_replica("c", "n3", age=200)),
        replicas=1,
    )

    assert [("StopTraffic", ("b",), 0)] == leaving(decision)


@pytest.mark.parametrize(
    ("prices", "leaves"),
    [
        (("0.80", "0.30"), "n1"),
        (("0.30", "0.80"), "n2"),
        ((None, None), "n2"),
        (("x", "NaN"), "n2"),
    ],
    ids=["first dearer", "second dearer", "no prices", "no numbers"],
)
def test_scale_down_prefers_the_dearer_pool_else_the_one_listed_last(prices, leaves):
    first, second = prices
    decision = decided(
        a_placement("n1", a_replica("n1", "n1", age=300)),
        a_placement("n2", a_replica("n2", "n2", age=400)),
        replicas=1,
        pools=("l4", "spot"),
        nodes=[a_node("n1"), a_node("n2", pool="spot")],
        fleet_pools=[a_pool("l4", price_per_gpu_hour=first), a_spot_pool(price=second)],
    )

    assert [("StopTraffic", (leaves,), 0)] == leaving(decision)


def test_scale_to_zero_drains_all_at_once():
    """There is no capacity left to protect."""
    decision = decided(ready("n1"), ready("n2"), replicas=0)

    assert ["StopTraffic", "StopTraffic"] == [stage for stage, _, _ in leaving(decision)]
    assert (0, 0) == (decision.replicas, decision.floor)


def test_some_replicas_of_one_deployment_leave_and_its_count_follows_the_drain():
    def pods(**b):
        return [a_replica("a", "n1", age=200), a_replica("b", "n1", age=100, **b)]

    begun = decided(a_placement("n1", *pods()), replicas=1, nodes=[a_node("n1")])
    drained = decided(a_placement("n1", *pods(draining_for=60)), replicas=1, nodes=[a_node("n1")])

    assert ([("StopTraffic", ("b",), 1)], {"n1": 2}) == (leaving(begun), kept(begun))
    assert ([("ScaleToZero", ("b",), 1)], {"n1": 1}) == (leaving(drained), kept(drained))


# ------------------------------------------------------------------ update
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


def test_a_failed_new_replica_holds_and_the_old_keep_serving():
    nodes = one_gpu("n1", "n2", "n3", "n4")
    decision = decided(old("n1"), old("n2"), stuck("n3"), nodes=nodes)

    assert {"old:n1": 1, "old:n2": 1, "n3": 1} == kept(decision)
    assert ({}, [], ["UpdateFailed"]) == (created(decision), leaving(decision), held(decision))
    assert "n3 (CrashLoopBackOff); 2 of the old rev still serving" in decision.holds[0].message


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


# ----------------------------------------------------------- stuck replicas
def test_a_stuck_replica_earns_one_substitute_elsewhere():
    decision = decided(ready("n1"), stuck("n2"))

    assert {"n3": 1} == created(decision)
    assert {"n1": 1, "n2": 1} == kept(decision)


def test_a_stuck_replica_leaves_once_its_substitute_is_ready():
    decision = decided(ready("n1"), stuck("n2"), ready("n3"))

    assert [("ScaleToZero", ("p-n2",), 0)] == leaving(decision)


def test_a_rev_that_fails_on_two_nodes_is_not_bought_again():
    nodes = one_gpu("n1", "n2", "n3", "n4")
    decision = decided(stuck("n1"), stuck("n2"), nodes=nodes)

    assert ({}, ["StartsFailing"]) == (created(decision), held(decision))


def test_where_more_replicas_serve_than_fail_the_nodes_are_to_blame():
    nodes = one_gpu("n1", "n2", "n3", "n4", "n5", "n6")
    decision = decided(
        ready("n1"), ready("n2"), ready("n3"), stuck("n4"), stuck("n5"), nodes=nodes, replicas=4
    )

    assert {"n6": 1} == created(decision)


def test_a_pod_that_no_node_takes_is_given_up_when_a_place_is_found():
    decision = decided(
        ready("n1"), homeless("n2"), nodes=[*one_gpu("n1", "n3"), *one_gpu("n2", used=1)]
    )

    assert {"n3": 1} == created(decision)
    assert [("ScaleToZero", ("p-n2",), 0)] == leaving(decision)


def test_a_surge_that_no_node_takes_makes_an_old_replica_leave_first():
    nodes = [*one_gpu("n1", "n2"), *one_gpu("n3", used=1)]
    first = old("n1", a_replica("newest", "n1", age=10))
    decision = decided(first, old("n2"), homeless("n3"), nodes=nodes)

    assert [("StopTraffic", ("newest",), 0)] == leaving(decision)
    assert {} == created(decision)


# ---------------------------------------------------------------- capacity
def test_what_fits_nowhere_is_held_with_reason_and_remedy():
    decision = decided(nodes=[*one_gpu("n1"), *one_gpu("n2", cordoned=True)], replicas=3)

    assert {"n1": 1} == created(decision)
    (hold,) = decision.holds
    assert "HeldNoCapacity" == hold.code
    assert (
        hold.message
        == "2 of 3 replicas have no place: 1 node by rule cordoned, 1 node by rule gpus"
    )
    assert (
        "1 free GPU on one node of l4; whenFull is Hold, so no new node is asked for" == hold.remedy
    )
    assert (("cordoned", 1), ("gpus", 1)) == decision.rejected


def test_at_most_three_rejections_are_named_each_by_another_rule():
    nodes = [
        *one_gpu("n1", "n2", used=1),
        *one_gpu("n3", cordoned=True),
        *one_gpu("n4", pool="h100"),
        *one_gpu("n5", ready=False),
    ]
    named = [a for a in decided(nodes=nodes).attempts if a.rule]

    assert ["gpus", "cordoned", "not-ready"] == [attempt.rule for attempt in named]


def test_a_service_without_any_pool_says_so():
    decision = decided(pools=[a_pool("other")])

    assert "one node of any pool (the service has none)" in decision.holds[0].remedy


def test_capacity_is_what_is_reachable_by_selector_and_taints():
    """cases.md row 125: 8 GPUs stand, 2 of them can be reached."""
    nodes = [
        a_node("n1", gpus=2),
        a_node("n2", gpus=3, pool="h100"),
        a_node("n3", gpus=3, taints=(a_taint("team"),)),
    ]
    decision = decided(nodes=nodes, replicas=4)

    assert ({"n1": 2}, ["HeldNoCapacity"]) == (created(decision), held(decision))


def test_a_node_without_gpus_takes_nothing():
    """cases.md row 161: a node is Ready but its GPUs never appear."""
    decision = decided(nodes=[a_node("n1", gpus=0)], replicas=1)

    assert ({}, ["HeldNoCapacity"]) == (created(decision), held(decision))


# ----------------------------------------------------------------- notices
def test_a_notice_starts_the_replacement_at_once_beside_any_update():
    """Budgets cap voluntary moves only; the replica serves on until the new one is Ready."""
    nodes = [*one_gpu("n1", notice=a_notice()), *one_gpu("n2", "n3", "n4")]
    decision = decided(ready("n1"), old("n2"), warming("n3"), nodes=nodes, replicas=3)

    assert {"n4": 1} == created(decision)
    assert [] == leaving(decision)


def test_a_replacement_for_a_notice_goes_where_it_is_ready_soonest():
    nodes = [
        *one_gpu("n1", notice=a_notice()),
        *one_gpu("n2"),
        *one_gpu("n3", pool="h100", weights=(MODEL_REVISION,)),
    ]
    pools = {"pools": ("l4", "h100"), "fleet_pools": [a_pool("l4"), a_pool("h100")]}

    assert {"n3": 1} == created(decided(ready("n1"), nodes=nodes, replicas=1, **pools))
    assert {"n2": 1} == created(
        decided(ready("n4"), nodes=[*nodes, *one_gpu("n4")], replicas=2, min_ready=1, **pools)
    )


def test_a_noticed_replica_leaves_when_its_replacement_is_ready():
    nodes = [*one_gpu("n1", notice=a_notice()), *one_gpu("n2")]
    decision = decided(ready("n1"), ready("n2"), nodes=nodes, replicas=1)

    assert [("StopTraffic", ("p-n1",), 0)] == leaving(decision)
    assert "node n1 goes away (SpotNotice)" == decision.retirements[0].reason


def test_a_noticed_replica_leaves_at_once_when_the_rest_carries_the_load():
    nodes = [*one_gpu("n1", notice=a_notice()), *one_gpu("n2", "n3")]
    decision = decided(ready("n1"), ready("n2"), ready("n3"), nodes=nodes)

    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(decision)]


@pytest.mark.parametrize(("seconds_left", "stops"), [(76, False), (75, True), (-10, True)])
def test_at_the_latest_it_stops_in_time_for_endpoints_and_shutdown(seconds_left, stops):
    """cases.md row 129: endpointSync 15 s and shutdown 60 s before the node goes."""
    nodes = one_gpu("n1", notice=a_notice(seconds_left))
    plan = planned(ready("n1"), nodes=nodes, replicas=1)
    (decision,) = plan.decisions

    assert stops == bool(decision.retirements)
    assert ["HeldNoCapacity"] == held(decision)
    assert (None if stops else NOW_MS + 1_000) == plan.wake_at_ms


def test_without_a_deadline_a_noticed_replica_serves_on_until_it_is_replaced():
    plan = planned(ready("n1"), nodes=one_gpu("n1", notice=a_notice(None)), replicas=1)

    assert not plan.decisions[0].retirements
    assert plan.wake_at_ms is None


def test_a_warming_replica_on_a_noticed_node_goes_when_another_is_under_way():
    nodes = [*one_gpu("n1", notice=a_notice()), *one_gpu("n2")]
    decision = decided(warming("n1"), nodes=nodes, replicas=1)

    assert ({"n2": 1}, [("ScaleToZero", ("p-n1",), 0)]) == (created(decision), leaving(decision))


def test_a_pod_that_waits_for_a_node_that_is_gone_is_replaced():
    decision = decided(a_placement("gone", a_replica("p", "", "Pending")), replicas=1)

    assert {"n1": 1} == created(decision)
    assert "node gone is gone" == decision.retirements[0].reason


def test_a_pod_on_a_node_that_the_snapshot_lacks_is_not_touched():
    """The node may be newer than the snapshot; if it is gone, Kubernetes removes the pod."""
    decision = decided(a_placement("new", a_replica("p", "new")), replicas=1)

    assert ({"new": 1}, {}, []) == (kept(decision), created(decision), leaving(decision))


# ------------------------------------------------------------------ vacate
def test_a_cordoned_node_is_left_under_the_budget():
    nodes = [*one_gpu("n1", "n2", cordoned=True), *one_gpu("n3", "n4")]
    decision = decided(ready("n1"), ready("n2"), nodes=nodes)

    assert (1, []) == (len(created(decision)), leaving(decision))


def test_draining_a_cordoned_node_first_would_free_nothing():
    nodes = [*one_gpu("n1", cordoned=True), *one_gpu("n2")]
    decision = decided(ready("n1"), ready("n2"), nodes=nodes, min_ready=0)

    assert (["HeldNoCapacity"], []) == (held(decision), leaving(decision))


def test_a_replica_outside_its_pools_moves():
    nodes = [*one_gpu("n1", pool="h100"), *one_gpu("n2")]
    decision = decided(ready("n1"), nodes=nodes, replicas=1)

    assert {"n2": 1} == created(decision)
    assert "kept until its successor is Ready: node n1 is in none of its pools" in [
        attempt.verdict for attempt in decision.attempts
    ]


def test_moving_within_one_deployment_waits_for_the_new_pod_before_it_lowers_the_count():
    """The ReplicaSet takes pods that are not Ready first: it would take the wrong one."""
    nodes = [*one_gpu("n1"), *one_gpu("n2", notice=a_notice())]
    landed = a_placement("n1", a_replica("p", "n2", "Starting"))
    decision = decided(landed, nodes=nodes, replicas=1)

    assert ({"n1": 2}, [("Drain", ("p",), 1)]) == (kept(decision), leaving(decision))


# -------------------------------------------------------------- the leaving
def test_a_service_that_wants_more_again_does_not_use_a_name_on_its_way_out():
    draining = a_placement("n1", a_replica("a", "n1", draining_for=5, in_flight=1))
    decision = decided(draining, replicas=1, nodes=[a_node("n1"), a_node("n2", used=7)])

    assert {"n2": 1} == created(decision)
    assert (("leaving-here", 1),) == decision.rejected


def test_the_reason_of_a_departure_is_read_from_the_facts():
    gone = a_placement("n1", a_replica("a", "n1", draining_for=5, in_flight=1))
    outdated = a_placement("n2", a_replica("b", "n2", draining_for=5, in_flight=1), rev=OLD)
    reasons = [r.reason for r in decided(gone, outdated, replicas=0).retirements]

    assert ["no longer wanted", f"rev {OLD} -> aaaaaaaa"] == sorted(reasons)


def test_an_empty_deployment_is_deleted_when_its_last_pod_is_gone():
    decision = decided(a_placement("n1", replicas=0), replicas=0)

    assert [(RetireStage.DELETE.value, (), 0)] == leaving(decision)
