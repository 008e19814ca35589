"""Who leaves first where the count follows load: the coldest cache, after what goes anyway."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    NOW_MS,
    REV,
    a_desired,
    a_node,
    a_notice,
    a_placement,
    a_pool,
    a_ref,
    a_replica,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
)
from stoker.decide import decide
from stoker.decide.coldness import heats
from stoker.model.fleet import PlacementMode, WhenFull
from stoker.model.flow import Override
from stoker.model.history import History
from stoker.model.readings import EngineReading, ServiceReadings
from stoker.model.scaling import PrometheusQuery, ScaleDown, ScaleDownBehavior, Scaling
from stoker.model.snapshot import ReplicaPhase
from unit.decide.scaling import a_capacity, a_ratio

REF = a_ref("qwen")
KARPENTER = {"karpenter.sh/nodepool": "gpu"}
CAPACITY, RATIO = a_capacity(prior=None), a_ratio()
QUERY = ScaleDown(deletion_cost=PrometheusQuery("main", "kv * 100"))
UNAWARE = ScaleDown(behavior=ScaleDownBehavior.NONE)


def kv(**usage):
    """KV use by node of the replica there."""
    engines = tuple(
        EngineReading(f"pod-{node}", f"pod-{node}", NOW_MS, kv_usage=use)
        for node, use in usage.items()
    )
    return ServiceReadings(REF, engines=engines)


def costs(**cost):
    named = tuple(sorted((f"pod-{node}", float(each)) for node, each in cost.items()))
    return ServiceReadings(REF, deletion_costs=named)


def pod(node, age_s=600, **fields):
    """A Ready replica, so old."""
    fields = {"created_ms": NOW_MS - age_s * 1_000, **fields}
    return a_replica(f"pod-{node}", node, **fields)


def leaving(*pods, spec: Scaling = CAPACITY, given=None, count=2, nodes=None, **service):
    """The node that the first to leave is on, when one fewer is asked for."""
    found = nodes or [a_node(each.node, gpus=1) for each in pods]
    pools = service.pop("pools", (a_pool("l4"),))
    unit = a_unit(replicas=None, scaling_mode="Stoker", scaling=spec, min_ready=1, **service)
    placements = [a_placement(each.node, each) for each in pods]
    snapshot = a_snapshot(*found, services=[a_state(*placements)])
    override = Override(REF, count, NOW_MS + 60_000, "")
    snapshot = replace(snapshot, overrides=(override,), readings=(given,) if given else ())
    shapes = (a_shape(unit, rev=REV),)
    plan = decide(a_desired(unit, pools=pools), shapes, snapshot, History(), NOW_MS)
    names = {r.name for r in plan.decisions[0].retirements}
    return [p.node for p in placements if p.name in names]


THREE = (pod("a", 900), pod("b", 800), pod("c", 700))


@pytest.mark.parametrize(
    ("spec", "given", "first"),
    [
        pytest.param(CAPACITY, kv(a=0.5, b=0.1, c=0.9), "b", id="least KV use"),
        pytest.param(CAPACITY, kv(a=0.5), "a", id="unknown may be the warmest"),
        pytest.param(CAPACITY, None, "c", id="nothing known: the newest"),
        pytest.param(RATIO, kv(a=0.5, b=0.1, c=0.9), "c", id="Ratio: the newest"),
        pytest.param(
            replace(RATIO, scale_down=QUERY), costs(a=3, b=2, c=9), "b", id="Ratio: the query"
        ),
        pytest.param(
            replace(CAPACITY, scale_down=QUERY), costs(a=1, b=2, c=9), "a", id="the query"
        ),
        pytest.param(
            replace(CAPACITY, scale_down=UNAWARE), kv(a=0.1, b=0.5, c=0.9), "c", id="None"
        ),
    ],
)
def test_the_coldest_leaves_first(spec, given, first):
    """Deleting a pod with a hot cache throws away what someone paid for."""
    assert [first] == leaving(*THREE, spec=spec, given=given)


def test_equal_caches_leave_by_age_then_name():
    """Total and the same in every pass."""
    twins, given = [pod("a"), pod("b"), pod("c", 900)], kv(a=0.5, b=0.5, c=0.5)
    first = leaving(*twins, given=given)

    assert first in (["a"], ["b"])
    assert first == leaving(*reversed(twins), given=given)


def test_what_does_not_serve_leaves_before_all():
    """It has no cache to lose."""
    warming = pod("c", phase=ReplicaPhase.STARTING)

    assert ["c"] == leaving(pod("a"), pod("b"), warming, given=kv(a=0.1, b=0.2, c=0.9))


def test_a_node_that_may_be_taken_back_comes_before_a_colder_cache():
    """Its cache may be lost anyway."""
    nodes = [a_node("a", gpus=1), a_node("b", gpus=1, hint="rebalance"), a_node("c", gpus=1)]

    assert ["b"] == leaving(*THREE, given=kv(a=0.1, b=0.9, c=0.5), nodes=nodes)


@pytest.mark.parametrize(
    ("labels", "when_full"),
    [
        pytest.param(KARPENTER, WhenFull.HOLD, id="made by Karpenter"),
        pytest.param({}, WhenFull.UNPINNED, id="asked for by Stoker"),
    ],
)
def test_the_last_of_an_autoscaled_node_comes_before_a_colder_cache(labels, when_full):
    """The node goes too: that is the money."""
    nodes = [
        a_node("a", gpus=2, used=1, labels=labels),
        a_node("b", gpus=2, labels=labels),
        a_node("c", gpus=2, used=1, labels=labels),
    ]
    given = kv(a=0.1, b=0.9, c=0.5)

    assert ["b"] == leaving(*THREE, given=given, nodes=nodes, when_full=when_full)


def test_a_node_that_stays_is_not_worth_emptying():
    """Nobody takes it away."""
    nodes = [a_node("a", gpus=2, used=1), a_node("b", gpus=2), a_node("c", gpus=2, used=1)]

    assert ["a"] == leaving(*THREE, given=kv(a=0.1, b=0.9, c=0.5), nodes=nodes)


def test_a_dearer_pool_comes_before_a_colder_cache():
    """A price is paid every hour, a cache once."""
    pools = (a_pool("l4", price_per_gpu_hour="1"), a_pool("h100", price_per_gpu_hour="9"))
    nodes = [a_node("a", gpus=1), a_node("b", gpus=1, pool="h100"), a_node("c", gpus=1)]

    assert ["b"] == leaving(*THREE, given=kv(a=0.1, b=0.9, c=0.5), nodes=nodes, pools=pools)


def test_a_notice_still_comes_first():
    """Its replica must leave whatever its cache holds."""
    nodes = [a_node("a", gpus=1), a_node("b", gpus=1, notice=a_notice()), a_node("c", gpus=1)]

    assert ["b"] == leaving(*THREE, given=kv(a=0.1, b=0.9, c=0.5), nodes=nodes)


def test_odd_values_are_not_known():
    """NaN sorts nowhere."""
    assert {"pod-b": 0.5} == heats(CAPACITY, kv(a=float("nan"), b=0.5, c=None))
    assert {} == heats(None, kv(a=0.5))


# Mode Scheduler: the ReplicaSet chooses, and is told.


def told(*pods, count, spec=CAPACITY, given=None, **service):
    unit = a_unit(
        replicas=None,
        scaling_mode="Stoker",
        scaling=spec,
        placement_mode=PlacementMode.SCHEDULER,
        **service,
    )
    found = [a_node(each.node, gpus=4) for each in pods]
    size = service.get("nodes", 1)
    home = a_placement("", *pods, size=size)
    snapshot = a_snapshot(*found, services=[a_state(home)])
    override = Override(REF, count, NOW_MS + 60_000, "")
    snapshot = replace(snapshot, overrides=(override,), readings=(given,) if given else ())
    plan = decide(a_desired(unit), (a_shape(unit, rev=REV),), snapshot, History(), NOW_MS)
    return plan.decisions[0].coldest


def test_a_lower_count_says_which_pods_it_should_take():
    """The coldest first, and only as many as leave."""
    given = kv(a=0.5, b=0.1, c=0.9)

    assert ("pod-b", "pod-a") == told(*THREE, count=1, given=given)
    assert () == told(*THREE, count=3, given=given)
    assert () == told(*THREE, count=4, given=given)


def test_groups_and_services_without_regard_for_caches_say_nothing():
    """A LeaderWorkerSet removes its last groups, whatever is marked."""
    given = kv(a=0.5, b=0.1, c=0.9)

    assert () == told(*THREE, count=1, given=given, nodes=2)
    assert () == told(*THREE, count=1, given=given, spec=replace(CAPACITY, scale_down=UNAWARE))
