"""Bases of pools, the share on spot and the spread: where starts may go, and who goes first."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import (
    a_desired,
    a_node,
    a_notice,
    a_pool,
    a_ref,
    a_shape,
    a_spot_pool,
    a_unit,
)
from stoker.decide import decide
from stoker.model.fleet import Drain
from stoker.model.history import History
from stoker.model.limits import PlacementLimits
from unit.decide.one import created, decided, held, kept, leaving, old, ready, warming
from unit.decide.world import World

POOLS = (a_pool("l4"), a_spot_pool("spot"))
ZONE = "topology.kubernetes.io/zone"


def nodes(*names, gpus=1, **fields):
    """Nodes named by pool and number: `l1` is of pool l4, `s1` of pool spot; `a.l1` in zone a."""
    return [_node(name, gpus, fields) for name in names]


def _node(name, gpus, fields):
    zone, _, short = name.rpartition(".")
    labels = {ZONE: zone} if zone else {}
    pool = "l4" if short.startswith("l") else "spot"
    return a_node(name, gpus=gpus, pool=pool, labels=labels, **fields)


def shared(*placements, bases=None, spot=None, skew=None, **fields):
    """A decision with limits; pools are l4, then spot, unless told otherwise."""
    limits = PlacementLimits(
        bases=tuple((bases or {}).items()),
        spot_max_percent=spot,
        spread_key=ZONE if skew else "",
        max_skew=skew or 1,
    )
    fields.setdefault("pools", ("l4", "spot"))
    return decided(*placements, fleet_pools=POOLS, limits=limits, **fields)


def rejected(decision):
    return dict(decision.rejected)


# ------------------------------------------------------------------------ base
def test_the_base_is_filled_first_whatever_the_order_of_pools():
    decision = shared(
        replicas=3, nodes=nodes("l1", "l2", "s1"), pools=("spot", "l4"), bases={"l4": 2}
    )

    assert {"l1": 1, "l2": 1, "s1": 1} == created(decision)


def test_the_base_comes_before_ready_in_also_for_the_floor():
    """A floor start goes where it is ready soonest, but within the pool whose base lacks it."""
    cold, warm = nodes("l1"), nodes("s1", weights=("a" * 40,))

    assert {"l1": 1} == created(shared(replicas=1, nodes=cold + warm, bases={"l4": 1}))
    assert {"s1": 1} == created(shared(replicas=1, nodes=cold + warm))


def test_several_bases_are_filled_in_the_order_of_the_pools():
    bases = {"l4": 1, "spot": 1}
    decision = shared(replicas=3, nodes=nodes("l1", "s1", "s2"), bases=bases)

    assert {"l1": 1, "s1": 1, "s2": 1} == created(decision)


def test_above_the_floor_an_unmet_base_holds_and_says_so():
    decision = shared(replicas=3, min_ready=1, nodes=nodes("l1", "s1", "s2"), bases={"l4": 2})

    assert {"l1": 1} == created(decision)
    assert ["HeldNoCapacity"] == held(decision)
    assert 2 == rejected(decision)["pool-base"]
    (attempt,) = [each for each in decision.attempts if each.rule == "pool-base"]
    assert "l4 has 1 of its base of 2, which comes first" == attempt.verdict


def test_the_floor_comes_before_the_base():
    """Two must serve: one starts on spot rather than not at all."""
    decision = shared(replicas=2, min_ready=2, nodes=nodes("l1", "s1"), bases={"l4": 2})

    assert {"l1": 1, "s1": 1} == created(decision)
    assert [] == held(decision)
    assert any("beyond its limits, for the floor" in each.verdict for each in decision.attempts)


def test_a_replica_goes_back_to_the_base_when_room_comes_free():
    serving = [ready("l1"), ready("s1")]
    many = nodes("l1", "l2", "s1")
    first = shared(*serving, nodes=many, bases={"l4": 2})
    second = shared(*serving, warming("l2"), nodes=many, bases={"l4": 2})
    third = shared(*serving, ready("l2"), nodes=many, bases={"l4": 2})

    assert {"l2": 1} == created(first)
    assert ({}, []) == (created(second), leaving(second)), "the successor is not taken for surplus"
    assert [("StopTraffic", ("p-s1",), 0)] == leaving(third)
    assert {} == created(shared(*serving, nodes=nodes("l1", "s1"), bases={"l4": 2}))


def test_scale_down_leaves_the_base_although_it_is_dearer():
    pools = (a_pool("l4", price_per_gpu_hour="0.80"), a_spot_pool("spot"))
    limits = PlacementLimits(bases=(("l4", 1),))
    decision = decided(
        ready("l1"),
        ready("s1"),
        replicas=1,
        nodes=nodes("l1", "s1"),
        fleet_pools=pools,
        pools=("l4", "spot"),
        limits=limits,
    )

    assert [("StopTraffic", ("p-s1",), 0)] == leaving(decision)


# ------------------------------------------------------------------------ spot
@pytest.mark.parametrize(
    ("percent", "replicas", "most"),
    [(50, 1, 0), (50, 3, 1), (50, 4, 2), (34, 3, 1), (33, 3, 0), (100, 3, 3), (0, 9, 0)],
)
def test_a_share_is_rounded_down_because_it_is_a_maximum(percent, replicas, most):
    assert most == PlacementLimits(spot_max_percent=percent).most_on_spot(replicas)


def test_no_more_than_the_share_starts_on_spot():
    decision = shared(
        replicas=4, nodes=nodes("l1", "l2", "s1", "s2", "s3"), pools=("spot", "l4"), spot=50
    )

    assert {"s1": 1, "s2": 1, "l1": 1, "l2": 1} == created(decision)


def test_above_the_floor_the_share_holds_and_says_so():
    decision = shared(replicas=4, min_ready=1, nodes=nodes("l1", "s1", "s2", "s3"), spot=50)

    assert {"l1": 1, "s1": 1, "s2": 1} == created(decision)
    assert ["HeldNoCapacity"] == held(decision)
    (attempt,) = [each for each in decision.attempts if each.rule == "spot-share"]
    assert "2 of 4 replicas on spot, at most 50 %" == attempt.verdict
    assert "1 free GPU on one node of l4; whenFull" in decision.holds[0].remedy


def test_the_floor_comes_before_the_share():
    decision = shared(replicas=2, min_ready=2, nodes=nodes("s1", "s2"), spot=50)

    assert {"s1": 1, "s2": 1} == created(decision)


def test_the_successor_of_a_noticed_spot_replica_may_stand_on_spot_and_no_more():
    """The share is counted as it is once the noticed one is gone."""
    going = [*nodes("s1", notice=a_notice()), *nodes("l1", "l2", "s2", "s3")]
    standing = [ready("s1"), ready("l1"), ready("l2")]

    assert {"s2": 1} == created(shared(*standing, replicas=3, nodes=going, spot=34))
    crowded = shared(
        *standing, ready("s2"), replicas=4, min_ready=2, nodes=going, spot=34, pools=("spot", "l4")
    )
    assert ({}, ["HeldNoCapacity"]) == (created(crowded), held(crowded))


def test_an_update_keeps_the_share_while_old_and_new_stand_together():
    """Half may be spot: the new one may not start there before an old one has left it."""
    standing = [old("l1"), old("s1")]
    decision = shared(*standing, min_ready=1, nodes=nodes("l1", "s1", "s2"), spot=50)

    assert {} == created(decision)
    assert [("StopTraffic", ("old-s1",), 0)] == leaving(decision)
    gone = shared(old("l1"), min_ready=1, nodes=nodes("l1", "s1", "s2"), spot=50)
    assert {"s1": 1} == created(gone)


def test_an_update_that_may_not_leave_first_waits_and_names_the_share():
    standing = [old("l1"), old("s1")]
    decision = shared(*standing, min_ready=2, nodes=nodes("l1", "s1", "s2"), spot=50)

    assert ({}, ["HeldNoCapacity"]) == (created(decision), held(decision))
    assert 2 == rejected(decision)["spot-share"]


def test_too_many_on_spot_move_one_by_one_when_room_comes_free():
    """The floor let them start there; a smaller count or a changed share does the same."""
    standing = [ready("s1"), ready("s2")]
    many = nodes("l1", "s1", "s2")

    assert {"l1": 1} == created(shared(*standing, nodes=many, spot=50))
    after = shared(*standing, ready("l1"), nodes=many, spot=50)
    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(after)]
    assert kept(after) == {"l1": 1, "s1": 1}


def test_scale_down_takes_spot_first_while_there_are_too_many():
    standing = [ready("l1"), ready("l2"), ready("s1"), ready("s2")]
    pools = (a_pool("l4", price_per_gpu_hour="0.80"), a_spot_pool("spot"))
    decision = decided(
        *standing,
        nodes=nodes("l1", "l2", "s1", "s2"),
        max_concurrent_moves=2,
        fleet_pools=pools,
        pools=("l4", "spot"),
        limits=PlacementLimits(spot_max_percent=50),
    )

    assert 2 == len(leaving(decision))
    assert {"l4": 1, "spot": 1} == {p.pool: p.count for p in decision.placements if p.count}


# ---------------------------------------------------------------------- spread
def test_starts_are_spread_over_the_domains():
    many = nodes("a.l1", "a.l2", "a.l3", "b.l1", "c.l1")

    assert {"a.l1": 1, "b.l1": 1, "c.l1": 1} == created(shared(replicas=3, nodes=many, skew=1))
    assert {"a.l1": 1, "a.l2": 1, "b.l1": 1} == created(shared(replicas=3, nodes=many, skew=2))


def test_a_node_without_the_label_is_in_no_domain_and_takes_nothing():
    decision = shared(replicas=2, min_ready=1, nodes=nodes("a.l1", "l2"), skew=1)

    assert {"a.l1": 1} == created(decision)
    (attempt,) = [each for each in decision.attempts if each.rule == "topology-spread"]
    assert f"has no label {ZONE}, by which the service spreads" == attempt.verdict


def test_a_full_domain_holds_what_is_above_the_floor():
    many = [*nodes("a.l1", "a.l2"), *nodes("b.l1", used=1)]
    decision = shared(replicas=2, min_ready=1, nodes=many, skew=1)

    assert {"a.l1": 1} == created(decision)
    assert {"topology-spread": 2, "gpus": 1} == rejected(decision)
    (attempt,) = [each for each in decision.attempts if each.rule == "topology-spread"]
    assert "1 replicas in a, 0 elsewhere: maxSkew" == attempt.verdict
    assert {"a.l1": 1, "a.l2": 1} == created(shared(replicas=2, min_ready=2, nodes=many, skew=1))


def test_a_domain_that_rules_close_does_not_count():
    """A cordoned zone must not stop the service from growing elsewhere."""
    many = [*nodes("a.l1", "a.l2"), *nodes("b.l1", cordoned=True)]

    assert {"a.l1": 1, "a.l2": 1} == created(shared(replicas=2, min_ready=0, nodes=many, skew=1))


def test_scale_down_takes_from_the_fullest_domain():
    standing = [ready(name) for name in ("a.l1", "b.l1", "b.l2")]
    decision = shared(*standing, nodes=nodes("a.l1", "b.l1", "b.l2"), skew=1)

    assert ["StopTraffic"] == [stage for stage, _, _ in leaving(decision)]
    assert "a.l1" in kept(decision)


def test_an_update_lets_one_leave_first_where_its_successor_may_stand():
    """Zone a is full of others; the old one in b makes the place that the spread allows."""
    standing = [old("a.l1"), old("b.l1")]
    many = nodes("a.l1", "b.l1")
    decision = shared(*standing, min_ready=1, nodes=many, skew=1)
    beyond = shared(ready("a.l1"), replicas=2, min_ready=2, nodes=nodes("a.l1", "a.l2"), skew=1)

    assert 1 == len(leaving(decision))
    assert {"a.l2": 1} == created(beyond), "one domain alone is never crowded"
    uneven = [*nodes("a.l1", "a.l2"), *nodes("b.l1", used=1)]
    told = shared(ready("a.l1"), replicas=2, min_ready=2, nodes=uneven, skew=1)
    assert any("beyond its limits, for the floor" in each.verdict for each in told.attempts)


# -------------------------------------------------------------------- promises
NAMES = ("a.l1", "a.l2", "b.l3", "b.s1", "c.s2", "c.s3")
limits = st.builds(
    PlacementLimits,
    bases=st.sampled_from([(), (("l4", 1),), (("l4", 2),), (("l4", 1), ("spot", 1))]),
    spot_max_percent=st.none() | st.integers(0, 100),
    spread_key=st.sampled_from(["", ZONE]),
    max_skew=st.integers(1, 2),
)
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("replicas"), st.integers(0, 5)),
        st.tuples(st.just("rev"), st.sampled_from(["aaaaaaaa", "bbbbbbbb"])),
        st.tuples(st.just("notice"), st.sampled_from(NAMES)),
        st.tuples(st.just("calm"), st.sampled_from(NAMES)),
        st.tuples(st.just("wait"), st.integers(1, 8)),
    ),
    max_size=6,
)
DRAIN = Drain(endpoint_sync_ms=15_000, max_ms=60_000, shutdown_ms=30_000)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(limits, st.none() | st.integers(0, 3), st.integers(1, 2), happenings)
def test_no_start_breaks_a_limit_except_for_the_floor_and_all_come_to_rest(
    bounds, floor, moves, events
):
    """In every pass of every world: what starts keeps the share, or restores the floor."""
    from dataclasses import replace  # noqa: PLC0415

    world = World(nodes(*NAMES))
    world.pools, world.pinned = {"l4", "spot"}, True
    rev, replicas = "aaaaaaaa", 3
    history = History()
    quiet = 0
    waits = [*events, *[("wait", 1)] * 200]
    while waits and quiet < 16:
        match waits.pop(0):
            case ("replicas", count):
                replicas = count
            case ("rev", name):
                rev = name
            case ("notice", name):
                world.nodes[name] = replace(world.nodes[name], notice=a_notice(None))
            case ("calm", name):
                world.nodes[name] = replace(world.nodes[name], notice=None)
        unit = a_unit(
            replicas=replicas,
            min_ready=floor,
            max_concurrent_moves=moves,
            drain=DRAIN,
            pools=("l4", "spot"),
            limits=bounds,
        )
        shapes = (a_shape(unit, rev=rev),)
        snapshot = world.snapshot()
        plan = decide(a_desired(unit, pools=POOLS), shapes, snapshot, history, world.now_ms)
        history = History.from_records(plan.history, plan.starts)
        decision = plan.decisions[0]
        before = _remaining(world)
        starts = [p.node for p in decision.placements if not p.exists for _ in range(p.count)]
        beyond = any("beyond its limits" in each.verdict for each in decision.attempts)
        on_spot = [name for name in (*before, *starts) if name[2] == "s"]
        if starts and not beyond and bounds.spot_max_percent is not None:
            most = max(bounds.most_on_spot(replicas), sum(name[2] == "s" for name in before))
            assert len(on_spot) <= most, decision
        assert not beyond or len(before) < decision.floor, decision
        changed = world.act(plan)
        quiet = 0 if changed else quiet + 1
        world.tick()
    assert quiet >= 16, "does not come to rest"


def _remaining(world):
    """Nodes of replicas that serve or start, and neither leave nor are noticed."""
    return [
        deployment.node
        for deployment in world.deployments.values()
        if deployment.ref == a_ref()
        for number in range(deployment.replicas)
        if (number >= len(deployment.active()) or deployment.active()[number].traffic)
        and world.nodes[deployment.node].notice is None
    ]
