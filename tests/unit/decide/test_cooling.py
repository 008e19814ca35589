"""Pools cool down after a hint: the next start is placed elsewhere first, and nothing moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import NOW_MS, a_node, a_notice, a_pool, a_ref, a_spot_pool
from stoker.decide.cooling import COOL_MS
from stoker.model.fleet import PlacementMode, PlacementOrder, WhenFull
from stoker.model.history import History, PoolHint, UnitHistory
from stoker.model.limits import PlacementLimits
from unit.decide.one import created, leaving, planned, ready

POOLS = (a_pool("l4"), a_spot_pool("spot"))
HINT = "rebalance"
WARM = ("a" * 40,)
MINUTE = 60_000


def a_plan(*placements, nodes, cooling=(), pools=("spot", "l4"), **fields):
    """Spot is the first pool of the service."""
    history = History(((a_ref(), UnitHistory(cooling=tuple(cooling))),))
    fields.setdefault("fleet_pools", POOLS)
    return planned(*placements, nodes=nodes, history=history, pools=pools, **fields)


def remembered(plan):
    return History.from_records(plan.history).of(a_ref()).cooling


def spot(name, **fields):
    return a_node(name, gpus=1, pool="spot", **fields)


def on_demand(name, **fields):
    return a_node(name, gpus=1, pool="l4", **fields)


# s1 was drained by another tool for its hint; s2 is of the same pool, warm, and the first choice.
DRAINED = [spot("s1", hint=HINT, cordoned=True), spot("s2", weights=WARM), on_demand("l1")]


def test_a_successor_is_not_placed_in_the_pool_whose_node_was_hinted():
    """cases.md row 133: a tool drains hinted nodes, and each successor went to the same doomed
    pool, to be drained in turn. The floor and its ready-in do not outrank that.
    """
    plan = a_plan(nodes=DRAINED, replicas=1)
    without = a_plan(nodes=[*DRAINED[1:]], replicas=1)

    assert {"s2": 1} == created(without.decisions[0])
    assert {"l1": 1} == created(plan.decisions[0])
    (attempt,) = plan.decisions[0].attempts[:1]
    assert "spot cooling down after a hint" in attempt.verdict


def test_it_cools_down_for_ten_minutes_after_the_node_is_gone():
    """cases.md row 133."""
    (hint,) = remembered(a_plan(nodes=DRAINED, replicas=1))
    gone = DRAINED[1:]
    before = a_plan(nodes=gone, replicas=1, cooling=[hint], now_ms=NOW_MS + COOL_MS)
    after = a_plan(nodes=gone, replicas=1, cooling=[hint], now_ms=hint.until_ms)

    assert {"l1": 1} == created(before.decisions[0])
    assert {"s2": 1} == created(after.decisions[0])
    assert (COOL_MS, COOL_MS + MINUTE) == (600_000, hint.until_ms - NOW_MS)
    assert () == remembered(after)


def test_a_hint_that_stands_is_noted_once_a_minute():
    """Else every pass would write the history."""
    first = remembered(a_plan(nodes=DRAINED))
    soon = remembered(a_plan(nodes=DRAINED, cooling=first, now_ms=NOW_MS + MINUTE - 1))
    later = remembered(a_plan(nodes=DRAINED, cooling=first, now_ms=NOW_MS + MINUTE + 1))

    assert first == soon
    assert later[0].until_ms > first[0].until_ms


def test_where_there_is_no_other_room_the_pool_is_used():
    """A hint may never come true; a replica that does not start serves for sure nobody."""
    plan = a_plan(nodes=[*DRAINED[:2]], replicas=1)

    assert {"s2": 1} == created(plan.decisions[0])


def test_it_moves_nobody():
    """Design section 4: hints pre-warm only."""
    plan = a_plan(ready("s1"), nodes=[spot("s1", hint=HINT), on_demand("l1")], replicas=1)

    assert ({}, []) == (created(plan.decisions[0]), leaving(plan.decisions[0]))


def test_a_base_comes_before_it():
    """Limits are promises of Git; that a pool cools down is a guess."""
    limits = PlacementLimits(bases=(("spot", 1),))

    assert {"s2": 1} == created(a_plan(nodes=DRAINED, replicas=1, limits=limits).decisions[0])


@pytest.mark.parametrize("order", PlacementOrder)
def test_every_order_leaves_it_alone(order):
    plan = a_plan(nodes=DRAINED, replicas=1, placement_order=order)

    assert {"l1": 1} == created(plan.decisions[0])


def test_a_node_is_asked_for_in_another_pool_first():
    cold = (spot("s1", hint=HINT, used=1), on_demand("l1", used=1))
    plan = a_plan(nodes=cold, replicas=1, when_full=WhenFull.UNPINNED)

    assert {"pool/l4": 1} == created(plan.decisions[0])


@pytest.mark.parametrize(
    "fields",
    [{"pools": ("spot",)}, {"placement_mode": PlacementMode.SCHEDULER}],
    ids=["one pool", "Scheduler"],
)
def test_who_has_no_other_pool_to_choose_remembers_nothing(fields):
    assert () == remembered(a_plan(nodes=DRAINED, **fields))


def test_a_pool_that_left_git_is_forgotten():
    known = [PoolHint("gone", NOW_MS + MINUTE), PoolHint("l4", NOW_MS + MINUTE)]

    assert (known[1],) == remembered(a_plan(nodes=[on_demand("l1")], cooling=known))


def test_what_is_remembered_survives_the_cluster_and_nonsense_is_lost():
    known = UnitHistory(cooling=(PoolHint("spot", 5),))
    ((ref, text),) = History(((a_ref(), known),)).records()

    assert known == History.from_records([(ref, text)]).of(ref)
    for wrong in (text.replace("5", '"x"'), text.replace('"spot"', "7"), '{"cooling":7}'):
        assert () == History.from_records([(ref, wrong)]).entries


def test_a_preview_knows_which_pools_cool_down():
    """Or plan would promise a place that the controller leaves alone."""
    known = UnitHistory(3, cooling=(PoolHint("spot", 5),))
    history = History(((a_ref(), known),))

    assert known.cooling == history.of_updates().of(a_ref()).cooling


@given(
    spots=st.lists(st.sampled_from(["free", "full", "hinted", "noticed"]), max_size=4),
    others=st.integers(0, 3),
    replicas=st.integers(0, 6),
    share=st.sampled_from([None, 0, 50, 100]),
    base=st.integers(0, 2),
    cools=st.sets(st.sampled_from(["spot", "l4"])),
)
def test_cooling_changes_where_and_never_how_many(spots, others, replicas, share, base, cools):
    """Whatever cools down, as many replicas start as if nothing did, and within the limits."""

    def nodes(hint):
        found = [
            spot(
                f"s{number}",
                used=int(kind == "full"),
                hint=hint if kind == "hinted" else "",
                notice=a_notice() if kind == "noticed" else None,
            )
            for number, kind in enumerate(spots)
        ]
        return [*found, *(on_demand(f"l{number}") for number in range(others)), a_node("x", gpus=0)]

    limits = PlacementLimits((("l4", base),) if base else (), share)
    fields = {"replicas": replicas, "limits": limits, "min_ready": 0}
    warm = created(a_plan(nodes=nodes(""), **fields).decisions[0])
    cooling = [PoolHint(name, NOW_MS + MINUTE) for name in sorted(cools)]
    cool = created(a_plan(nodes=nodes(HINT), cooling=cooling, **fields).decisions[0])

    assert sum(warm.values()) == sum(cool.values())
    on_spot = sum(count for name, count in cool.items() if name.startswith("s"))
    assert on_spot <= limits.most_on_spot(replicas)
