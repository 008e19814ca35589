"""Replicas that must leave their node: notices, cordons, and names on their way out."""

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
)
from stoker.model.plan import RetireStage
from stoker.model.snapshot import Notice
from unit.decide.one import (
    OLD,
    created,
    decided,
    held,
    kept,
    leaving,
    old,
    one_gpu,
    planned,
    ready,
    warming,
)


# --------------------------------------------------------------------- notices
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


# ---------------------------------------------------------------------- vacate
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


@pytest.mark.parametrize("kind", ["disruption", "scale-down", "deletion"])
def test_a_node_that_its_autoscaler_drains_is_left_under_the_budget(kind):
    """No deadline: the drainer waits for the disruption budget."""
    drained = Notice(kind, NOW_MS, vacates=True)
    nodes = [*one_gpu("n1", "n2", notice=drained), *one_gpu("n3", "n4")]
    first = decided(ready("n1"), ready("n2"), nodes=nodes)
    later = decided(ready("n1"), ready("n2"), ready("n3"), nodes=nodes)

    assert (1, []) == (len(created(first)), leaving(first))
    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(later)]
    assert f"is drained ({kind})" in later.retirements[0].reason


def test_no_replica_starts_on_a_node_that_is_drained():
    drained = Notice("disruption", NOW_MS, vacates=True)
    decision = decided(nodes=one_gpu("n1", notice=drained), replicas=1)

    assert ({}, ["HeldNoCapacity"]) == (created(decision), held(decision))


# ----------------------------------------------------------------- the leaving
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
