"""What fits on a node and what does not: room, bookings, and the words for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    GIB,
    GPU,
    a_node,
    a_notice,
    a_placement,
    a_state,
    a_unit,
    some_resources,
)
from stoker.model.shape import Resources
from unit.decide.index import a_case, an_index, chosen


# -------------------------------------------------------------------- capacity
@pytest.mark.parametrize(
    ("rule", "node"),
    [
        ("gpus", {"used": 8}),
        ("cpu", {"cpu": 500}),
        ("memory", {"memory": GIB // 2}),
        ("pods", {"pods": 0}),
    ],
)
def test_what_does_not_fit_is_not_chosen_and_says_why(rule, node):
    case = a_case()
    index = an_index(a_node("a", **node), cases=(case,))

    assert index.pick(case, urgent=False, own=(), barred={}) is None
    (tally,) = index.rejections(case, {}, thorough=True)
    assert (rule, 1, "a", "l4") == (tally.rule, tally.count, tally.node, tally.pool)
    assert tally.reason


def test_other_devices_must_fit_too():
    requests = Resources(pods=1, extended=(("nvidia.com/gpu", 1), ("rdma/ib", 1)))
    case = a_case(requests=requests)
    index = an_index(a_node("a"), cases=(case,))

    assert index.pick(case, urgent=False, own=(), barred={}) is None
    assert "devices" == index.rejections(case, {}, thorough=True)[0].rule


def test_booking_takes_room_for_the_rest_of_the_pass():
    case = a_case()
    index = an_index(a_node("a", used=6), a_node("b", used=5), cases=(case,))

    names = []
    while (choice := index.pick(case, urgent=False, own=(), barred={})) is not None:
        index.book(choice.node.name, case.need)
        names.append(choice.node.name)

    assert ["a", "a", "b", "b", "b"] == names


def test_services_with_other_gpus_share_nodes_and_their_room():
    node = replace(
        a_node("a"), allocatable=Resources(64_000, 512 * GIB, 110, (("amd.com/gpu", 2), (GPU, 2)))
    )
    green = a_case(a_unit("green", pools=("l4",)))
    red = a_case(
        a_unit("red", pools=("l4",), gpu_resource="amd.com/gpu"),
        requests=Resources(1_000, GIB, 1, (("amd.com/gpu", 2),)),
    )
    index = an_index(node, cases=(green, red))

    for case in (green, red):
        assert "a" == index.pick(case, urgent=False, own=(), barred={}).node.name
        index.book("a", case.need)
    assert 1 == index.pick(green, urgent=False, own=(), barred={}).free_gpus
    assert index.pick(red, urgent=False, own=(), barred={}) is None


def test_a_class_found_full_is_not_searched_again_but_its_skipped_nodes_are():
    """Room only shrinks within a pass; nodes that one service skips may do for another."""
    case = a_case()
    index = an_index(a_node("a"), a_node("b", used=8), cases=(case,))

    assert index.pick(case, urgent=False, own=(), barred={"a": "failed-here"}) is None
    assert index.pick(case, urgent=False, own=(), barred={"a": "failed-here"}) is None
    assert "a" == index.pick(case, urgent=False, own=(), barred={}).node.name


def test_pods_that_are_still_to_come_are_booked_where_they_were_decided():
    """A write of ours that the watch has not shown yet is never given away twice."""
    state = a_state(a_placement("a", replicas=2, service="other"), name="other")

    case = a_case()
    index = an_index(a_node("a", used=6), a_node("b"), cases=(case,), services=(state,))
    assert "b" == index.pick(case, urgent=False, own=(), barred={}).node.name


def test_missing_pods_of_an_old_rev_are_booked_by_their_own_requests():
    live = a_placement("a", replicas=1, rev="old", requests=some_resources(4))
    case = a_case(a_unit(pools=("l4",), gpu_count=1))
    index = an_index(a_node("a", used=4), cases=(case,), services=(a_state(live),))

    assert index.pick(case, urgent=False, own=(), barred={}) is None


def test_missing_pods_of_unknown_size_close_their_node():
    """Another unit's shape did not render: unknown is not zero."""
    state = a_state(a_placement("a", replicas=1, service="other"), name="other")
    case = a_case()
    index = an_index(a_node("a"), a_node("b", used=7), cases=(case,), services=(state,))

    assert "b" == index.pick(case, urgent=False, own=(), barred={}).node.name


def test_missing_pods_on_a_node_that_is_gone_are_booked_nowhere():
    state = a_state(a_placement("gone", replicas=1))

    assert (
        "a"
        == an_index(a_node("a"), services=(state,))
        .pick(a_case(), urgent=False, own=(), barred={})
        .node.name
    )


def test_overbooked_nodes_take_nothing():
    assert chosen(a_node("a", used=9)) is None


# ------------------------------------------------------------------ rejections
def test_tallies_count_by_rule_and_name_the_nearest_first():
    case = a_case(a_unit(pools=("l4",)))
    index = an_index(
        a_node("a", used=8),
        a_node("b", used=8),
        a_node("c", cordoned=True),
        a_node("d", pool="h100"),
        a_node("e", notice=a_notice()),
        a_node("f"),
        cases=(case,),
    )

    tallies = index.rejections(case, {"f": "failed-here", "gone": "failed-here"}, thorough=True)
    expected = [("gpus", 2), ("failed-here", 1), ("noticed", 1), ("cordoned", 1), ("pool", 1)]
    assert expected == [(tally.rule, tally.count) for tally in tallies]
    assert "0 of 8 GPUs free, a replica needs 1" == tallies[0].reason


def test_nodes_that_fit_are_in_no_tally():
    case = a_case()

    assert () == an_index(a_node("a"), cases=(case,)).rejections(case, {}, thorough=True)


def test_a_quick_tally_counts_gpus_only_and_a_thorough_one_is_kept_until_room_is_taken():
    case = a_case(requests=some_resources(1, cpu=1_000))
    index = an_index(a_node("a", cpu=500), a_node("b", cpu=1_500), cases=(case,))

    assert () == index.rejections(case, {}, thorough=False)
    first = index.rejections(case, {}, thorough=True)
    assert first == index.rejections(case, {}, thorough=True)
    index.book("b", case.need)
    assert [("cpu", 2)] == [(t.rule, t.count) for t in index.rejections(case, {}, thorough=True)]
