"""Where weights come from decides which nodes are near, and by how much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import IMAGE, MODEL_REVISION, a_node, a_placement, a_service, a_unit
from stoker.decide.ready_in import Facts, estimate
from stoker.model.cache import Cache, CacheType
from stoker.model.plan import WarmthClass
from stoker.model.prefetch import PrefetchState
from unit.decide.index import a_case, an_index
from unit.decide.test_prefetch import a_job, made, the_plan, three

WEIGHTS_IMAGE = "registry.example/weights:1"
IN_AN_IMAGE = Cache(CacheType.IMAGE, image=WEIGHTS_IMAGE)
IN_THE_ENGINE = Cache(CacheType.IMAGE)
STREAMED = Cache(CacheType.STREAM)


def readiness(node, cache, **service):
    service.setdefault("model_uri", "s3://models/x" if cache is STREAMED else "file:///models/x")
    case = a_case(a_unit(pools=("l4",), cache=cache, **service))
    return an_index(node, cases=(case,)).readiness(case, node.name)


@pytest.mark.parametrize("cache", [STREAMED, Cache(CacheType.PVC, claim="c")])
def test_what_is_read_from_afar_is_equally_near_everywhere(cache):
    case = a_service(cache=cache)

    near, far = estimate(case, Facts(image=True, weights=True)), estimate(case, Facts(image=True))

    assert near.p50_ms == far.p50_ms


def test_a_stream_is_faster_than_a_download_to_a_cold_node():
    streamed = readiness(a_node("n1"), STREAMED)
    fetched = readiness(a_node("n1"), Cache(), model_uri="hf://example/qwen-7b")

    assert streamed.p50_ms < fetched.p50_ms


def test_a_node_that_holds_the_image_of_the_weights_is_warm():
    bare = readiness(a_node("n1", images=(IMAGE,)), IN_AN_IMAGE)
    warm = readiness(a_node("n1", images=(IMAGE, WEIGHTS_IMAGE)), IN_AN_IMAGE)

    assert (WarmthClass.COLD, WarmthClass.WARM) == (bare.warmth, warm.warmth)
    assert warm.p50_ms < bare.p50_ms


def test_weights_in_the_engines_image_are_there_with_it():
    bare = readiness(a_node("n1"), IN_THE_ENGINE)
    warm = readiness(a_node("n1", images=(IMAGE,)), IN_THE_ENGINE)

    assert (WarmthClass.COLD, WarmthClass.WARM) == (bare.warmth, warm.warmth)


def test_a_copy_in_a_folder_is_no_copy_of_weights_in_an_image():
    found = readiness(a_node("n1", weights=(MODEL_REVISION,)), IN_AN_IMAGE)

    assert WarmthClass.COLD is found.warmth


def test_an_image_of_weights_is_fetched_ahead_and_warm_when_done():
    cache = Cache(CacheType.IMAGE, image=WEIGHTS_IMAGE, prefetch_nodes=1)
    units = (a_unit(cache=cache, model_uri="file:///models/x"),)
    job = a_job("n2", model_uri="image", model_revision=WEIGHTS_IMAGE)
    done = a_job("n2", PrefetchState.DONE, model_uri="image", model_revision=WEIGHTS_IMAGE)
    two = (a_unit(cache=cache, model_uri="file:///models/x", replicas=2),)

    assert ["n2"] == made(the_plan(nodes=three(), units=units))
    assert [] == made(the_plan(job, nodes=three(), units=units))
    placements = the_plan(done, nodes=three(), units=two).decisions[0].placements
    (started,) = [p for p in placements if not p.exists]
    assert "n2" == started.node
    assert started.readiness is not None
    assert WarmthClass.WARM is started.readiness.warmth


@given(st.sampled_from(list(CacheType)), st.booleans(), st.booleans())
def test_holding_more_never_takes_longer(kind, image, weights):
    spec = a_service(cache=Cache(kind))

    bare = estimate(spec, Facts())
    held = estimate(spec, Facts(image=image, weights=weights))

    assert held.p50_ms <= bare.p50_ms


def test_kinds_of_starts_tell_caches_apart():
    caches = (Cache(), STREAMED, IN_AN_IMAGE, IN_THE_ENGINE)
    cases = [a_case(a_unit(f"s{n}", cache=each)) for n, each in enumerate(caches)]
    index = an_index(a_node("n1"), cases=tuple(cases))
    keys = [index.start_key(case, "n1") for case in cases]

    assert len(keys) == len(set(keys))


def test_placements_of_others_stay_out_of_it():
    """A replica of the same weights still makes its node Serving, whatever the cache is."""
    plan = the_plan(
        nodes=three(),
        units=(a_unit(cache=STREAMED, model_uri="s3://m/x", replicas=1),),
    )

    assert [a_placement("n1").node] == [p.node for p in plan.decisions[0].placements]
