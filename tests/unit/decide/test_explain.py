"""The decision in words."""

from __future__ import annotations

import pytest

from builders import (
    MODEL_REVISION,
    REV,
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
    some_shapes,
)
from stoker.decide import decide, explain
from stoker.model.fleet import Bundle, PlacementMode, PlacementOrder, WhenFull
from stoker.model.history import History
from stoker.model.limits import PlacementLimits, Reclaim
from stoker.model.scaling import ScalingMode
from unit.decide.one import OLD, decided, one_gpu

EXPLAINED = """\
llm/qwen  wants 3: 1 Ready, 0 warming, HeldNoCapacity      decision 7f21ac3 at 2025-11-24T16:00:00Z

COUNT  3   spec.replicas  models/qwen.yaml:21 @ 9be0a17
       floor 2 Ready while anything moves
PLACE  order ReadyPoolPack; pools l4
  NODE  CLASS    READY IN  VERDICT
  n1    Serving  -         kept
  n2    Warm     4m06s     soonest: create, 1 free GPUs (image no, weights yes; prior)
  n1    -        -         gpus: 0 of 1 GPUs free, a replica needs 1
  n3    -        -         cordoned: cordoned
  nodes turned away, by rule: gpus 2, cordoned 1
NOW
  create qwen-640fe7a3-aaaaaaaa x1 on n2
WOULD CHANGE THE ANSWER
  HeldNoCapacity: 1 of 3 replicas have no place: 2 nodes by rule gpus, 1 node by rule cordoned
    1 free GPU on one node of l4; whenFull is Hold, so no new node is asked for
    stoker override qwen --when-full Unpinned --for 4h --reason TEXT   ask for a node: about 11m38s"""


@pytest.mark.parametrize(
    ("order", "rules"),
    [
        (PlacementOrder.READY_POOL_PACK, ["soonest", "pool-order", "pool-order"]),
        (PlacementOrder.BIN_PACK, ["bin-pack"] * 3),
        (PlacementOrder.SPREAD, ["spread"] * 3),
        (PlacementOrder.WARMTH_FIRST, ["warmth-first"] * 3),
        (PlacementOrder.EFFICIENCY_AWARE, ["efficiency-aware"] * 3),
    ],
)
def test_every_placement_names_the_rule_that_chose_it(order, rules):
    """And who was turned away is counted by rule, three of them by name."""
    nodes = [
        a_node("x1", cordoned=True),
        a_node("x2", ready=False),
        a_node("x3", pool="other"),
        a_node("x4", gpus=0),
        a_node("x5", notice=a_notice()),
        *one_gpu("n1", "n2", "n3"),
    ]
    decision = decided(nodes=nodes, replicas=3, min_ready=1, placement_order=order)
    starts = [each for each in decision.attempts if each.verdict.startswith("create")]
    turned = [each for each in decision.attempts if each not in starts]

    assert rules == [each.rule for each in starts]
    counts = {"cordoned": 1, "not-ready": 1, "pool": 1, "gpus": 1, "noticed": 1}
    assert counts == dict(decision.rejected)
    assert 3 == len(turned) == len({each.rule for each in turned})


def test_a_replica_without_a_node_names_the_rule_too():
    lines = explained(nodes=[a_node("n1", gpus=0)], replicas=1, when_full=WhenFull.UNPINNED)

    assert any("unpinned: create, no node has room" in line for line in lines)


def test_limits_are_told_beside_the_pools():
    """ux.md: `PLACE  order ReadyPoolPack; pools l4-od > l4-spot, spot at most 50 %`."""
    limits = PlacementLimits((("l4", 2),), 50, "zone", 2)
    lines = explained(
        pools=("l4", "spot"), limits=limits, placement_order=PlacementOrder.SPREAD, replicas=0
    )
    important = explained(
        priority=7, reclaim=Reclaim.LOWER_PRIORITY, when_full=WhenFull.UNPINNED, replicas=0
    )

    told = "PLACE  order Spread; pools l4 (base 2) > spot, spot at most 50 %, spread over zone"
    assert f"{told} (maxSkew 2)" in lines
    asked = "PLACE  order ReadyPoolPack; pools l4; priority 7; takes room from lower priorities"
    assert f"{asked}; asks for nodes" in important


def explained(*placements, nodes=(), unknown=None, record="", rev=REV, **service):
    unit = a_unit(**service)
    desired = a_desired(unit)
    snapshot = a_snapshot(*nodes, services=[a_state(*placements)], unknown=unknown)
    plan = decide(desired, (a_shape(unit, rev=rev),), snapshot, History(), snapshot.taken_at_ms)
    return explain(desired, plan, unit.ref, record=record)


def test_it_reads_like_the_page_people_know():
    nodes = [
        a_node("n1", gpus=1),
        a_node("n2", gpus=1, weights=(MODEL_REVISION,)),
        a_node("n3", gpus=1, cordoned=True),
    ]
    lines = explained(a_placement("n1"), nodes=nodes, record="7f21ac3", replicas=3)

    assert EXPLAINED.splitlines() == list(lines)


def test_a_service_at_rest_has_nothing_to_do_and_nothing_to_wish_for():
    lines = explained(a_placement("n1"), nodes=[a_node("n1")], replicas=1)

    assert "llm/qwen  wants 1: 1 Ready, 0 warming      decided at 2025-11-24T16:00:00Z" == lines[0]
    assert not {"NOW", "WOULD CHANGE THE ANSWER"} & set(lines)


def test_a_service_of_no_replicas_has_no_table():
    lines = explained(nodes=[a_node("n1")], replicas=0)

    assert "PLACE  order ReadyPoolPack; pools l4" == lines[-1]


def test_who_leaves_is_told_with_the_reason_and_who_is_replaced_with_the_name():
    old = a_placement("n1", a_replica("a", "n1"), a_replica("b", "n1"), rev=OLD)
    surge = explained(old, nodes=[a_node("n1"), a_node("n2")], replicas=2)
    new = a_placement("n2", a_replica("c", "n2"))
    leave = explained(old, new, nodes=[a_node("n1"), a_node("n2")], replicas=2)

    assert f"  create {new.name} x1 on n2 for {old.name}" in surge
    assert f"  StopTraffic {old.name}, keeps 1: rev {OLD} -> {REV}" in leave


def test_a_starting_replica_says_how_long_a_start_takes_there():
    starting = a_placement("n1", a_replica("a", "n1", "Starting"))
    lines = explained(starting, nodes=[a_node("n1")], replicas=1)

    assert "  n1    Warming  5m06s     starting (image no, weights no; prior)" in lines


def test_an_external_count_names_its_owner_not_a_line():
    lines = explained(nodes=[a_node("n1")], replicas=None, scaling_mode=ScalingMode.EXTERNAL)

    assert "COUNT  1   External: nothing stands yet" in lines


def test_mode_scheduler_has_no_node_to_tell():
    lines = explained(placement_mode=PlacementMode.SCHEDULER, replicas=1)

    assert "PLACE  placement.mode is Scheduler: nodes are the scheduler's choice" in lines
    assert "  (any)  -      -         count 0 -> 1" in lines
    assert "  create qwen x1" in lines


def test_an_unread_cluster_leaves_the_count_open():
    lines = explained(a_placement("n1"), unknown={"nodes": "forbidden"}, replicas=1)

    assert lines[0].startswith("llm/qwen  wants ?: 1 Ready, 0 warming, SnapshotUnknown")
    assert "COUNT  ?   unknown: the cluster could not be read" in lines


def test_pools_left_open_are_all_of_the_fleet():
    assert "PLACE  order ReadyPoolPack; pools all of the fleet" in explained(pools=(), replicas=0)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("gone", "not decided: not in Git"),
        ("bad", "not decided: its files are wrong (stoker validate); what stands is left as it is"),
        ("bundle", "nothing to decide about a ModelService"),
        ("unrendered", "not decided: it did not render; what stands is left as it is"),
    ],
)
def test_without_a_decision_one_line_says_why(name, why):
    desired = a_desired(
        a_unit("bundle", spec=Bundle()), a_unit("unrendered"), broken=[a_ref("bad")]
    )
    plan = decide(desired, (), a_snapshot(), History(), 0)

    assert (f"llm/{name}  {why}",) == explain(desired, plan, a_ref(name))


def test_every_service_of_a_fleet_can_be_explained():
    desired = a_desired(a_unit("a"), a_unit("b"))
    plan = decide(desired, some_shapes(desired), a_snapshot(a_node("n1")), History(), 0)

    for unit in desired.units:
        assert explain(desired, plan, unit.ref)[0].startswith(unit.ref.short)
