"""From the replicas that stand to those that are wanted, one step at a time (mode Nodes)."""

from __future__ import annotations

import pytest

from builders import (
    a_node,
    a_placement,
    a_pool,
    a_replica,
    a_spot_pool,
    a_taint,
)
from stoker.objects.names import deployment_name
from unit.decide.one import (
    created,
    decided,
    held,
    homeless,
    kept,
    leaving,
    old,
    one_gpu,
    ready,
    stuck,
    warming,
)


# ---------------------------------------------------------------- steady state
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


# ------------------------------------------------------------------ scale down
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


# -------------------------------------------------------------- stuck replicas
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


# -------------------------------------------------------------------- capacity
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
