"""`stoker override --when-full`: a node is asked for, or not, for as long as people said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_placement,
    a_pool,
    a_ref,
    a_replica,
    a_shape,
    a_snapshot,
    a_spot_pool,
    a_state,
    a_unit,
)
from stoker.decide import decide, explain
from stoker.model.fleet import Pin, PlacementMode, WhenFull
from stoker.model.flow import UnreadOverride, WhenFullOverride
from stoker.model.history import History
from stoker.model.limits import PlacementLimits
from stoker.model.snapshot import ReplicaPhase
from stoker.model.times import rfc3339
from stoker.objects.names import place_in_pool
from unit.decide.one import created, held, kept, leaving

UNTIL_MS = NOW_MS + 4 * 3_600_000
FULL = (a_node("n1", gpus=1, used=1),)
L4 = place_in_pool("l4")


def planned(*placements, asked=None, on=FULL, pools=(), now_ms=NOW_MS, **service):
    """The plan of a service of one replica beside what people ask; whenFull is Hold in Git."""
    service.setdefault("replicas", 1)
    unit = a_unit(**service)
    snapshot = a_snapshot(*on, services=[a_state(*placements)])
    if isinstance(asked, UnreadOverride):
        snapshot = replace(snapshot, unread_overrides=(asked,))
    elif asked is not None:
        snapshot = replace(snapshot, when_full_overrides=(asked,))
    desired = a_desired(unit, pools=pools or (a_pool("l4"),))
    return desired, decide(desired, (a_shape(unit),), snapshot, History(), now_ms)


def decided(*placements, **fields):
    return planned(*placements, **fields)[1].decisions[0]


def asks(when_full=WhenFull.UNPINNED, reason=""):
    return WhenFullOverride(a_ref(), when_full, UNTIL_MS, reason)


def test_a_node_is_asked_for_while_the_override_lasts():
    desired, plan = planned(asked=asks(reason="launch day"))
    (decision,) = plan.decisions

    assert ({L4: 1}, []) == (created(decision), held(decision))
    told = f"Unpinned until {rfc3339(UNTIL_MS)}, Git says Hold: launch day"
    assert told == decision.when_full
    assert f"       override whenFull {told}" in explain(desired, plan, a_ref())
    assert plan.wake_at_ms == UNTIL_MS, "it lapses while nothing else happens"


def test_what_has_lapsed_asks_for_nothing():
    decision = decided(asked=asks(), now_ms=UNTIL_MS)

    assert ({}, ["HeldNoCapacity"], "") == (created(decision), held(decision), decision.when_full)


def test_what_came_of_it_stays_when_it_lapses():
    """Otherwise the node that was bought would be given back with the replica on it."""
    landed = a_placement(L4, a_replica("free-1", "n9"))
    decision = decided(landed, on=(*FULL, a_node("n9", gpus=1, used=1)))

    assert ({L4: 1}, {}, []) == (kept(decision), created(decision), leaving(decision))


def test_a_pod_that_still_waits_for_a_node_goes_when_it_lapses():
    """Left Pending it would go on asking; a free place is taken for it meanwhile."""
    waiting = a_placement(L4, a_replica("free-1", "", ReplicaPhase.PENDING))
    full = decided(waiting)
    free = decided(waiting, on=(*FULL, a_node("n2", gpus=1)))

    assert ({}, [("ScaleToZero", ("free-1",), 0)]) == (kept(full), leaving(full))
    assert ({"n2": 1}, [("ScaleToZero", ("free-1",), 0)]) == (created(free), leaving(free))
    assert ["HeldNoCapacity"] == held(full)


def test_it_stays_while_nobody_can_read_what_is_asked():
    """Unknown takes nothing away."""
    waiting = a_placement(L4, a_replica("free-1", "", ReplicaPhase.PENDING))
    decision = decided(waiting, asked=UnreadOverride(a_ref(), "{oops", of_when_full=True))

    assert ({L4: 1}, []) == (kept(decision), leaving(decision))


def test_a_service_that_asks_for_nodes_may_be_told_not_to():
    decision = decided(asked=asks(WhenFull.HOLD), when_full=WhenFull.UNPINNED)

    assert ({}, ["HeldNoCapacity"]) == (created(decision), held(decision))
    assert f"Hold until {rfc3339(UNTIL_MS)}, Git says Unpinned" == decision.when_full


def test_an_override_that_cannot_be_read_changes_neither_the_count_nor_this():
    unread = UnreadOverride(a_ref(), "{oops", of_when_full=True)
    decision = decided(asked=unread)

    assert ({}, ["HeldNoCapacity"]) == (created(decision), held(decision))
    assert "not obeyed, its annotation cannot be read: {oops" == decision.when_full
    assert ("Git", "") == (decision.count.source, decision.count.refused)


@pytest.mark.parametrize(
    ("service", "why"),
    [
        ({"placement_mode": PlacementMode.SCHEDULER}, "placement.mode Scheduler leaves nodes"),
        ({"nodes": 2}, "a group starts whole in one domain or not at all"),
    ],
    ids=["scheduler", "groups"],
)
def test_where_no_node_may_be_asked_for_it_is_refused_by_name(service, why):
    decision = decided(asked=asks(reason="x"), **service)

    assert f"Unpinned until {rfc3339(UNTIL_MS)}: refused, {why}" in decision.when_full
    assert decision.when_full.endswith("(x)")
    assert not any(place.node == L4 for place in decision.placements)


def test_what_a_new_node_would_take_is_told_where_one_may_be_asked_for():
    """ux.md, stoker status: `ask for a node: about 6m, +0.80 USD/h`."""
    (hold,) = decided(pools=(a_pool("l4", price_per_gpu_hour="0.8"),)).holds
    (free,) = decided().holds

    assert "about 7m53s, +0.80 USD/h" == hold.new_node
    assert "about 7m53s" == free.new_node


@pytest.mark.parametrize(
    "fields",
    [
        {"pools": (a_pool("l4", pin=Pin.REQUIRED),)},
        {"limits": PlacementLimits(spot_max_percent=0), "pools": (a_spot_pool("l4"),)},
        {"when_full": WhenFull.UNPINNED, "pools": (a_pool("l4", pin=Pin.REQUIRED),)},
        {"nodes": 2},
    ],
    ids=["static", "closed", "asked-already", "groups"],
)
def test_no_node_is_proposed_where_none_would_come(fields):
    decision = decided(**fields)

    assert ["HeldNoCapacity"] == held(decision)
    assert [""] == [hold.new_node for hold in decision.holds]
