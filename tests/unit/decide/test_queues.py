"""Starts that share one source queue behind each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import IMAGE, MODEL_REVISION, NOW_MS, a_node, a_placement, a_replica, a_state, a_unit
from stoker.decide.estimates import Estimates
from stoker.decide.queues import Fetches, Queues
from stoker.decide.ready_in import Facts, estimate, fetch_ms
from stoker.model.fleet import Cache, CacheType
from stoker.model.start_samples import NO_STARTS, Starts, StartSample
from unit.decide.index import a_case, an_index

COLD = Facts()
WARM = Facts(image=True, weights=True)
times = st.integers(0, 600_000)
fetches = st.builds(
    Fetches, st.sampled_from("ab"), times, st.sampled_from("xy"), times, times, times
)


# ------------------------------------------------------------------ the queues
@given(st.lists(fetches, max_size=6), fetches)
def test_nobody_is_quicker_for_having_others_in_front(before, start):
    queues = Queues()
    told = 0
    for each in before:
        queues.join(each)
        assert queues.delay(start) >= told
        told = queues.delay(start)


@given(st.lists(fetches, max_size=6), fetches)
def test_who_fetches_nothing_waits_for_nobody(before, start):
    queues = Queues()
    for each in before:
        queues.join(each)

    nothing = Fetches(start.registry, 0, start.weights_source, 0, start.image_after_ms)
    assert 0 == queues.delay(nothing)


@given(st.lists(fetches, max_size=6), fetches)
def test_other_sources_delay_nobody(before, start):
    queues = Queues()
    for each in before:
        queues.join(each)

    elsewhere = Fetches("c", start.image_ms, "z", start.weights_ms, start.image_after_ms)
    assert 0 == queues.delay(elsewhere)


@given(st.integers(1, 6), st.integers(1, 600_000), times)
def test_equal_starts_end_one_fetch_apart(count, image_ms, after_ms):
    """A registry serves one after the other: the n-th waits for n - 1."""
    queues = Queues()
    for _ in range(count):
        queues.join(Fetches("a", image_ms, "x", 0, after_ms))

    assert count * image_ms == queues.delay(Fetches("a", image_ms, "x", 0, after_ms))


@given(st.lists(fetches, min_size=1, max_size=6), fetches)
def test_nobody_waits_for_longer_than_all_that_is_in_front_takes(before, start):
    queues = Queues()
    for each in before:
        queues.join(each)
    whole = sum(
        each.image_after_ms + each.image_ms + each.weights_after_ms + each.weights_ms
        for each in before
    )

    assert 0 <= queues.delay(start) <= 2 * whole


# ------------------------------------------------------------------ estimates
def begun(*starts, case=None, learned=NO_STARTS):
    """Estimates after these starts (facts, pod) began."""
    found = Estimates(learned)
    for facts, pod in starts:
        found.begin(case or a_case(), facts, {}, pod, NOW_MS)
    return found


def test_a_second_cold_start_waits_for_the_firsts_image_and_weights():
    case = a_case()
    image_ms, weights_ms = fetch_ms(case.spec, COLD)
    alone = begun().next(case, COLD, {})
    behind = begun((COLD, None)).next(case, COLD, {})

    assert estimate(case.spec, COLD) == alone
    assert max(image_ms, weights_ms) == behind.queued_ms == behind.p50_ms - alone.p50_ms
    assert behind.p50_ms * 3 // 2 == behind.p90_ms
    assert f"{-(-behind.queued_ms // 1000)}s behind other starts" in behind.told
    assert "behind" not in alone.told


def test_a_warm_node_waits_for_nobody():
    case = a_case()

    assert estimate(case.spec, WARM) == begun((COLD, None), (COLD, None)).next(case, WARM, {})


def test_starts_share_a_volume_and_only_their_own():
    shared = a_case(a_unit(cache=Cache(CacheType.PVC, claim="models")))
    other = a_case(a_unit(cache=Cache(CacheType.PVC, claim="others")))
    image_only = Facts(image=True)

    assert 0 < begun((image_only, None), case=shared).next(shared, image_only, {}).queued_ms
    assert 0 == begun((image_only, None), case=other).next(shared, image_only, {}).queued_ms


def test_hubs_are_told_apart():
    hub = a_case(a_unit(model_uri="hf://one/model"))
    same = a_case(a_unit(model_uri="hf://two/model"))
    bucket = a_case(a_unit(model_uri="s3://weights/model"))
    image_only = Facts(image=True)

    assert 0 < begun((image_only, None), case=hub).next(same, image_only, {}).queued_ms
    assert 0 == begun((image_only, None), case=hub).next(bucket, image_only, {}).queued_ms


def pod(phase, *, scheduled=0, started=0):
    """Seconds ago; 0 is not yet."""
    stamps = {
        f"{name}_ms": NOW_MS - 1_000 * ago
        for name, ago in (("scheduled", scheduled), ("started", started))
        if ago
    }
    return a_replica("p", "n1", phase, age=600, **stamps)


@pytest.mark.parametrize(
    ("standing", "gone_ms"),
    [
        (pod("Pending"), 0),
        (pod("ImagePull", scheduled=60), 60_000),
        (pod("ImagePull", scheduled=9_999), 9_999_000),
    ],
    ids=["not bound", "a minute into it", "overdue"],
)
def test_of_a_start_under_way_only_the_rest_is_waited_for(standing, gone_ms):
    case = a_case(a_unit(model_size_bytes=1))
    image_ms, _ = fetch_ms(case.spec, COLD)
    new = begun((COLD, None), case=case).next(case, COLD, {}).queued_ms
    queued_ms = begun((COLD, standing), case=case).next(case, COLD, {}).queued_ms

    assert image_ms == new
    if not gone_ms:
        assert new == queued_ms
    else:
        # The new start asks for its image when it is scheduled, 2 s from now.
        assert max(0, image_ms - gone_ms - 2_000) == queued_ms


def test_where_nobody_knows_when_the_engine_began_image_and_weights_are_done_in_turn():
    """Init containers run, or the forecast plays on: image first, then weights."""
    case = a_case()
    image_ms, weights_ms = fetch_ms(case.spec, COLD)
    gone_s = image_ms // 1000 + 20
    starting = pod("Starting", scheduled=gone_s)
    left = begun((COLD, starting), case=case).next(case, Facts(image=True), {}).queued_ms

    assert weights_ms - 20_000 - 3_000 == left


def test_a_start_whose_engine_runs_holds_up_no_image():
    case = a_case()
    running = pod("Starting", scheduled=300, started=9_999)

    assert 0 == begun((COLD, running), case=case).next(case, COLD, {}).queued_ms


def test_a_fetch_is_never_taken_for_longer_than_it_was_found_to_be():
    """A fast registry: five starts had their engines running after 10 s."""
    case = a_case()
    key = Estimates(NO_STARTS).key(case, COLD, {})
    ring = [StartSample(NOW_MS + n, 1_000, 10_000, 20_000) for n in range(5)]
    quick = begun((COLD, None), learned=Starts.bounded({key: ring}, ()))

    assert 20_000 >= quick.next(case, COLD, {}).queued_ms > 0


# ------------------------------------------------------------------ the index
def test_starts_of_other_services_under_way_count():
    """Two services of one registry: the second sees the first on its way."""
    waiting = a_state(
        a_placement("n1", a_replica("p", "n1", "ImagePull", scheduled_ms=NOW_MS - 1_000)),
        name="other",
    )
    other = a_case(a_unit("other"), waiting)
    case = a_case()
    nodes = [a_node("n1"), a_node("n2")]
    ask = {"urgent": True, "own": set(), "barred": {}}

    alone = an_index(*nodes, cases=(case,)).pick(case, **ask).readiness
    behind = an_index(*nodes, cases=(case, other), services=(waiting,)).pick(case, **ask)
    assert behind.readiness.queued_ms > 0 == alone.queued_ms


def test_a_warm_node_of_a_later_pool_wins_when_the_queue_is_long():
    """Alone the download is noise (one bucket); behind four others it is not."""
    case = a_case(a_unit(pools=("l4", "h100"), model_size_bytes=20_000_000))
    nodes = [
        a_node("cold", images=(IMAGE,)),
        a_node("warm", pool="h100", images=(IMAGE,), weights=(MODEL_REVISION,)),
    ]
    index = an_index(*nodes, cases=(case,))
    ask = {"urgent": True, "own": set(), "barred": {}}
    before = index.pick(case, **ask)
    for _ in range(4):
        index.begin(case, "cold")
    after = index.pick(case, **ask)

    assert ("cold", "warm") == (before.node.name, after.node.name)
    assert 0 == after.readiness.queued_ms
