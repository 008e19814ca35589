"""The five orders of `placement.order`: seed 000 and semantics 1.1 to the letter for two of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import (
    IMAGE,
    MODEL,
    MODEL_REVISION,
    NOW_MS,
    a_node,
    a_placement,
    a_replica,
    a_state,
    a_unit,
)
from stoker.decide import warmth
from stoker.decide.booking import misfit
from stoker.decide.eligible import first_rejection
from stoker.decide.order import fresh
from stoker.decide.ready_in import Facts, estimate, ready_in_bucket
from stoker.model.fleet import PlacementOrder
from stoker.model.snapshot import NodeWarmth, Signals, WeightCopy
from unit.decide.index import a_case, an_index, chosen, warm

BIN_PACK, SPREAD = PlacementOrder.BIN_PACK, PlacementOrder.SPREAD
WARMTH_FIRST, EFFICIENCY = PlacementOrder.WARMTH_FIRST, PlacementOrder.EFFICIENCY_AWARE
MINUTE = 60_000


def ordered(order, **fields):
    return a_case(a_unit(pools=("l4", "h100"), placement_order=order, **fields))


def telling(name, *, holds=(), **signals):
    return a_node(name, weights=holds, signals=Signals(**signals))


# ------------------------------------------------------------- BinPack, Spread
def test_bin_pack_fills_the_fullest_node_whatever_its_pool_and_warmth():
    nodes = (warm("warm"), a_node("tight", used=7, pool="h100"), a_node("half", used=4))

    assert "tight" == chosen(*nodes, case=ordered(BIN_PACK))


def test_bin_pack_takes_the_warm_one_of_two_equally_full_nodes():
    assert "b" == chosen(a_node("a", used=4), warm("b", used=4), case=ordered(BIN_PACK))


def test_spread_takes_the_emptiest_node_and_one_without_a_replica_first():
    nodes = (a_node("empty"), a_node("half", used=4), warm("tight", used=7))

    assert "empty" == chosen(*nodes, case=ordered(SPREAD))
    assert "half" == chosen(*nodes, case=ordered(SPREAD), own=("empty",))


# ------------------------------------------------------ WarmthFirst, Efficiency
@pytest.mark.parametrize("order", [WARMTH_FIRST, EFFICIENCY])
def test_no_signal_beats_a_higher_class(order):
    """Semantics 1.1: no efficiency signal may beat a higher warmth class."""
    best = {"tokens_per_joule": 9.0, "kv_hit_rate": 1.0, "gpu_utilization": 0.0}
    cold = telling("cold", active_services=0, **best)
    holds = telling("holds", holds=(MODEL_REVISION,), active_services=9, gpu_utilization=3.0)

    assert "holds" == chosen(cold, holds, case=ordered(order))


@pytest.mark.parametrize(
    ("order", "worse", "better"),
    [
        (WARMTH_FIRST, {"active_services": 2, "gpu_utilization": 0.0}, {"active_services": 1}),
        (WARMTH_FIRST, {"gpu_utilization": 0.0}, {"active_services": 7}),
        (WARMTH_FIRST, {"gpu_utilization": 0.5}, {"gpu_utilization": 0.25}),
        (WARMTH_FIRST, {}, {"gpu_utilization": 0.9}),
        (EFFICIENCY, {"tokens_per_joule": 1.0, "kv_hit_rate": 1.0}, {"tokens_per_joule": 1.5}),
        (EFFICIENCY, {"kv_hit_rate": 1.0, "active_services": 0}, {"tokens_per_joule": 0.0}),
        (EFFICIENCY, {"kv_hit_rate": 0.2, "gpu_utilization": 0.0}, {"kv_hit_rate": 0.3}),
        (EFFICIENCY, {"gpu_utilization": 0.4, "active_services": 0}, {"gpu_utilization": 0.3}),
        (EFFICIENCY, {"active_services": 3}, {"active_services": 2}),
        (EFFICIENCY, {}, {"active_services": 30}),
    ],
)
def test_signals_rank_in_their_order_and_absent_ones_last(order, worse, better):
    assert "b" == chosen(telling("a", **worse), telling("b", **better), case=ordered(order))


@pytest.mark.parametrize("order", [WARMTH_FIRST, EFFICIENCY])
def test_what_a_node_says_of_itself_counts_where_we_know_less(order):
    nodes = (
        telling("a", warmth=NodeWarmth.COLD),
        telling("b", warmth=NodeWarmth.WARMING),
        telling("c", warmth=NodeWarmth.WARM),
    )

    assert "c" == chosen(*nodes, case=ordered(order))
    assert "b" == chosen(*nodes[:2], case=ordered(order))
    half = replace(nodes[0], weights=(WeightCopy(MODEL, MODEL_REVISION, complete=False),))
    assert "a" == chosen(half, telling("b"), case=ordered(order)), "a copy is on its way there"


def test_services_are_counted_with_those_placed_in_this_pass():
    """The planner of the seed: one more active service after each pick, none becomes one."""
    case = ordered(WARMTH_FIRST)
    index = an_index(
        telling("a", active_services=1), telling("b", active_services=0), cases=(case,)
    )
    picks = []
    for _ in range(4):
        picks.append(index.pick(case, urgent=False, own=(), barred={}).node.name)
        index.book(picks[-1], case.need)

    assert ["b", "a", "b", "a"] == picks


def test_services_that_stand_on_a_node_count_where_nobody_reports_them():
    stands = a_state(a_placement("b", a_replica("p", "b"), service="other"), name="other")
    case = ordered(WARMTH_FIRST)
    index = an_index(a_node("a"), a_node("b"), cases=(case,), services=(stands,))

    assert "b" == index.pick(case, urgent=False, own=(), barred={}).node.name
    reported = (telling("a", active_services=0), a_node("b"))
    index = an_index(*reported, cases=(case,), services=(stands,))
    assert "a" == index.pick(case, urgent=False, own=(), barred={}).node.name


# --------------------------------------------------------------------- freshness
@pytest.mark.parametrize(
    ("at_ms", "max_age_ms", "kept"),
    [
        (None, None, True),
        (NOW_MS - MINUTE, None, True),
        (None, MINUTE, False),
        (NOW_MS, MINUTE, True),
        (NOW_MS - MINUTE, MINUTE, True),
        (NOW_MS - MINUTE - 1, MINUTE, False),
        (NOW_MS + 1, MINUTE, False),
    ],
)
def test_a_signal_is_kept_up_to_its_age_and_never_from_the_future(at_ms, max_age_ms, kept):
    signals = Signals(
        kv_hit_rate=0.5, kv_hit_rate_at_ms=at_ms, tokens_per_joule=2.0, tokens_per_joule_at_ms=at_ms
    )
    found = fresh(signals, NOW_MS, max_age_ms)

    assert (0.5, 2.0) == (found.kv_hit_rate, found.tokens_per_joule) if kept else (None, None)
    assert kept == (found.kv_hit_rate is not None) == (found.tokens_per_joule is not None)


@pytest.mark.parametrize(
    ("reported_at_ms", "max_age_ms", "kept"),
    [
        (NOW_MS - 2 * MINUTE, None, True),
        (None, MINUTE, True),
        (NOW_MS - MINUTE, MINUTE, True),
        (NOW_MS - MINUTE - 1, MINUTE, False),
        (NOW_MS + 1, MINUTE, False),
    ],
)
def test_what_a_silent_reporter_said_last_is_kept_up_to_the_same_age(
    reported_at_ms, max_age_ms, kept
):
    """A node that was idle when its reporter died would draw every replica."""
    said = Signals(NodeWarmth.WARM, 0, 0.0, reported_at_ms=reported_at_ms)
    found = fresh(said, NOW_MS, max_age_ms)

    expected = (NodeWarmth.WARM, 0, 0.0) if kept else (None, None, None)
    assert expected == (found.warmth, found.active_services, found.gpu_utilization)


def test_a_stale_signal_ranks_as_an_absent_one():
    stale = telling("a", tokens_per_joule=9.0, tokens_per_joule_at_ms=NOW_MS - 2 * MINUTE)
    lately = telling("b", tokens_per_joule=1.0, tokens_per_joule_at_ms=NOW_MS - 1)

    assert "a" == chosen(stale, lately, case=ordered(EFFICIENCY))
    assert "b" == chosen(stale, lately, case=ordered(EFFICIENCY, signal_max_age_ms=MINUTE))


# -------------------------------------------------------------------- invariants
share = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])
signals = st.builds(
    Signals,
    warmth=st.sampled_from([None, *NodeWarmth]),
    active_services=st.none() | st.integers(0, 3),
    gpu_utilization=share,
    kv_hit_rate=share,
    kv_hit_rate_at_ms=st.none() | st.just(NOW_MS - MINUTE),
    tokens_per_joule=share,
    tokens_per_joule_at_ms=st.none() | st.just(NOW_MS - MINUTE),
)
nodes = st.lists(
    st.builds(
        lambda number, gpus, used, pool, copy, image, cordoned, cpu, signals: replace(
            a_node(
                f"n{number:03}",
                gpus=gpus,
                used=used,
                pool=pool,
                images=(IMAGE,) if image else (),
                cordoned=cordoned,
                cpu=cpu,
                signals=signals,
            ),
            weights=copy,
        ),
        st.integers(0, 999),
        st.integers(0, 8),
        st.integers(0, 8),
        st.sampled_from(["l4", "h100", "other"]),
        st.sampled_from(
            [(), (WeightCopy(MODEL, MODEL_REVISION),), (WeightCopy(MODEL, MODEL_REVISION, False),)]
        ),
        st.booleans(),
        st.booleans(),
        st.sampled_from([8_500, 64_000]),
        signals,
    ),
    max_size=12,
    unique_by=lambda node: node.name,
)


@given(
    nodes,
    st.sampled_from(PlacementOrder),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([None, MINUTE // 2, MINUTE]),
    st.sampled_from([0, 2, 64]),
    st.data(),
)
def test_the_index_gives_the_node_that_looking_at_each_would_give(
    found, order, urgent, gpus, max_age_ms, common, data
):
    """The index is only faster: the same minimum over all nodes, by keys written out here."""
    case = ordered(order, gpu_count=gpus, signal_max_age_ms=max_age_ms)
    names = [node.name for node in found]
    own = set(data.draw(st.lists(st.sampled_from(names), max_size=2))) if names else set()
    active = {node.name: node.signals.active_services for node in found}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(warmth, "COMMON", common)
        index = an_index(*found, cases=(case,))
        while True:
            choice = index.pick(case, urgent=urgent, own=own, barred={})
            best = by_hand(case, found, index, own, active, urgent=urgent)
            assert best == (choice.node.name if choice is not None else None)
            if choice is None:
                return
            index.book(best, case.need)
            own.add(best)
            active[best] = (active[best] or 0) + 1


def by_hand(case, found, index, own, active, *, urgent):
    keys = []
    for node in found:
        room = index._rooms[node.name]
        if first_rejection(node, dict(node.labels), case.ask) or misfit(room, case.need):
            continue
        keys.append(
            key_of(
                case.spec,
                node,
                free=room.device("nvidia.com/gpu"),
                own=node.name in own,
                urgent=urgent,
                active=active[node.name],
            )
        )
    return min(keys)[-1] if keys else None


def key_of(spec, node, *, free, own, urgent, active):
    here = {copy.complete for copy in node.weights} if urgent or not own else set()
    image = IMAGE in node.images if urgent or not own else False
    bucket = ready_in_bucket(estimate(spec, Facts(image=image, weights=True in here)).p50_ms)
    pool = spec.pools.index(dict(node.labels)["pool"])
    soonest = (bucket, pool) if urgent else (pool, bucket)
    said = node.signals
    reported = {NodeWarmth.WARM: 0, NodeWarmth.WARMING: 1}.get(said.warmth, 2)
    known = 0 if True in here else 1 if False in here else 2

    def aged(value, at_ms):
        limit = spec.signal_max_age_ms
        return value if limit is None or (at_ms is not None and NOW_MS - at_ms <= limit) else None

    joules = aged(said.tokens_per_joule, said.tokens_per_joule_at_ms)
    hits = aged(said.kv_hit_rate, said.kv_hit_rate_at_ms)
    least = [math.inf if value is None else value for value in (active, said.gpu_utilization)]
    most = [math.inf if value is None else -value for value in (joules, hits)]
    return {
        PlacementOrder.READY_POOL_PACK: (*soonest, own, free, node.name),
        PlacementOrder.BIN_PACK: (free, *soonest, node.name),
        PlacementOrder.SPREAD: (own, -free, *soonest, node.name),
        PlacementOrder.WARMTH_FIRST: (min(known, reported), *least, node.name),
        PlacementOrder.EFFICIENCY_AWARE: (
            min(known, reported),
            *most,
            *reversed(least),
            node.name,
        ),
    }[spec.placement_order]


@given(nodes)
def test_without_efficiency_signals_it_is_warmth_first_on_warmth(found):
    """Semantics 1.1: with all signals absent EfficiencyAware equals WarmthFirst on warmth."""
    silent = [replace(node, signals=Signals(warmth=node.signals.warmth)) for node in found]
    picks = {chosen(*silent, case=ordered(order)) for order in (WARMTH_FIRST, EFFICIENCY)}

    assert 1 == len(picks)


@given(nodes, st.sampled_from(PlacementOrder), st.randoms())
def test_the_choice_depends_on_facts_not_on_their_order(found, order, random):
    case = ordered(order)
    first = chosen(*found, case=case)
    random.shuffle(found)

    assert first == chosen(*found, case=case)
