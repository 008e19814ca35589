"""Interruptions that a service has seen, and what explain makes of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    NOW_MS,
    a_desired,
    a_node,
    a_notice,
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
from stoker.model.history import History, UnitHistory
from stoker.model.spot_history import NO_SPOT, SpotHistory, spot_history_from

HOUR = 3_600_000
POOLS = (a_pool("l4", price_per_gpu_hour="1.00"), a_spot_pool("spot", "0.40"))


def planned(*nodes, history=None, now_ms=NOW_MS, pools=("spot", "l4"), fleet=POOLS):
    unit = a_unit(replicas=2, pools=pools)
    placements = [
        a_placement(node.name, a_replica(f"p-{node.name}", node.name)) for node in nodes[:2]
    ]
    snapshot = a_snapshot(*nodes, services=[a_state(*placements)])
    desired = a_desired(unit, pools=fleet)
    plan = decide(desired, (a_shape(unit),), snapshot, history or History(), now_ms)
    return desired, plan


def spot_of(plan) -> SpotHistory:
    return History.from_records(plan.history).of(a_ref()).spot


def spot_nodes(notice=None):
    return (
        a_node("s1", gpus=1, pool="spot", notice=notice),
        a_node("s2", gpus=1, pool="spot"),
        a_node("n1", gpus=2),
    )


def test_replica_time_is_added_up_only_when_something_changes():
    _, first = planned(*spot_nodes())
    same = planned(*spot_nodes(), history=History.from_records(first.history), now_ms=NOW_MS + HOUR)

    assert SpotHistory(replicas=2, at_ms=NOW_MS) == spot_of(first) == spot_of(same[1])
    assert 2.0 == spot_of(first).replica_hours(NOW_MS + HOUR)


def test_an_interruption_counts_once_however_long_its_notice_stands():
    history = History(((a_ref(), UnitHistory(spot=SpotHistory(replicas=2, at_ms=NOW_MS - HOUR))),))
    _, first = planned(*spot_nodes(a_notice()), history=history)
    _, again = planned(*spot_nodes(a_notice()), history=History.from_records(first.history))

    assert SpotHistory(1, 2 * HOUR, 2, NOW_MS, ("uid-s1",)) == spot_of(first)
    assert spot_of(first) == spot_of(again)


def test_a_new_node_of_the_same_name_is_another_interruption():
    known = SpotHistory(1, 2 * HOUR, 2, NOW_MS, ("uid-old",))
    history = History(((a_ref(), UnitHistory(spot=known)),))
    _, plan = planned(*spot_nodes(a_notice()), history=history)

    assert (2, ("uid-s1",)) == (spot_of(plan).lost, spot_of(plan).noticed)


def test_a_service_without_spot_pools_has_no_such_history():
    known = UnitHistory(spot=SpotHistory(lost=3, replicas=1, at_ms=NOW_MS))
    _, plan = planned(
        a_node("n1"), a_node("n2"), pools=("l4",), history=History(((a_ref(), known),))
    )

    assert NO_SPOT == spot_of(plan)


def told(spot: SpotHistory, **fields) -> list[str]:
    history = History(((a_ref(), UnitHistory(spot=spot)),))
    desired, plan = planned(*spot_nodes(), history=history, **fields)
    return [
        line for line in explain(desired, plan, a_ref()) if "discount" in line or "SPOT" in line
    ]


SEEN = SpotHistory(lost=4, replica_ms=40 * HOUR, replicas=2, at_ms=NOW_MS)


def test_explain_says_from_which_discount_on_spot_pays():
    lines = told(SEEN)

    assert "SPOT   4 interruptions in 40 replica-hours (0.100 an hour)" == lines[0]
    assert "(HardKill)" in lines[1]
    assert "0.07 % (migrating, not built)" in lines[1], "26 s of a replica, a tenth an hour"


@pytest.mark.parametrize(
    ("spot", "fleet"),
    [
        (NO_SPOT, POOLS),
        (replace(SEEN, lost=0), POOLS),
        (SEEN, tuple(replace(pool, price_per_gpu_hour=None) for pool in POOLS)),
    ],
    ids=["nothing seen", "no interruption", "no price"],
)
def test_without_an_interruption_or_a_price_nothing_is_said(spot, fleet):
    assert [] == told(spot, fleet=fleet)


@pytest.mark.parametrize(
    "data", [5, {"lost": "1"}, {"lost": -1}, {"lost": True}, {"noticed": "u"}, {"other": 1}]
)
def test_what_was_not_written_by_us_is_lost(data):
    with pytest.raises(ValueError):  # noqa: PT011 - any is an unreadable entry
        spot_history_from(data)
