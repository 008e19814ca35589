"""Estimated time to Ready: priors, buckets, classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import a_service
from stoker.decide.ready_in import BUCKET_BOUNDS_MS, Facts, estimate, ready_in_bucket
from stoker.model.fleet import Cache, CacheType, CudaGraphs
from stoker.model.plan import WarmthClass

booleans = st.booleans()


@pytest.mark.parametrize(
    ("facts", "p50_ms"),
    [
        (Facts(image=True, weights=True), 2_000 + 1_000 + 9_523 + 8_300),
        (Facts(image=True), 2_000 + 1_000 + 9_523 + 60_000 + 8_300),
        (Facts(weights=True), 2_000 + 225_000 + 1_000 + 9_523 + 8_300),
        (Facts(), 2_000 + 225_000 + 1_000 + 9_523 + 60_000 + 8_300),
    ],
    ids=["all", "image only", "weights only", "nothing"],
)
def test_the_prior_is_sizes_over_bandwidths(facts, p50_ms):
    """3 GB of weights, a 9 GB image: the figures of the EKS lab (seed 003)."""
    found = estimate(a_service(model_size_bytes=3_000_000_000), facts)

    assert p50_ms == found.p50_ms
    assert p50_ms * 3 // 2 == found.p90_ms
    assert found.prior


def test_graph_capture_starts_slower_than_eager():
    eager = estimate(a_service(), Facts())
    graphs = estimate(a_service(cuda_graphs=CudaGraphs.CAPTURE), Facts())

    assert 30_400 - 8_300 == graphs.p50_ms - eager.p50_ms


def test_weights_on_a_shared_volume_are_equally_near_everywhere():
    shared = a_service(cache=Cache(CacheType.PVC, claim="models"))

    assert estimate(shared, Facts(weights=True)).p50_ms == estimate(shared, Facts()).p50_ms


def test_a_model_of_unknown_size_is_taken_for_eight_billion_parameters():
    unknown = estimate(a_service(model_size_bytes=None), Facts())

    assert estimate(a_service(model_size_bytes=16_000_000_000), Facts()) == unknown


@pytest.mark.parametrize(
    ("facts", "warmth"),
    [
        (Facts(serving=True, warming=True), WarmthClass.SERVING),
        (Facts(weights=True, warming=True), WarmthClass.WARM),
        (Facts(image=True, warming=True), WarmthClass.WARMING),
        (Facts(image=True), WarmthClass.COLD),
    ],
)
def test_the_class_is_the_warmest_fact(facts, warmth):
    assert warmth == estimate(a_service(), facts).warmth


def test_a_serving_replica_is_a_word_not_a_head_start():
    """A service's own Ready replicas never attract its own scale-up."""
    served, not_served = Facts(serving=True, warming=True), Facts()

    assert estimate(a_service(), not_served).p50_ms == estimate(a_service(), served).p50_ms


def test_facts_are_spelled_out_for_people():
    assert "image yes, weights no" == estimate(a_service(), Facts(image=True)).facts


@pytest.mark.parametrize(
    ("p50_ms", "bucket"),
    [
        (0, -8),
        (1_000, -8),
        (1_048, -8),
        (1_049, -7),
        (4_999, -1),
        (5_000, 0),
        (6_249, 0),
        (6_250, 1),
    ],
)
def test_bucket_bounds_are_five_seconds_times_powers_of_one_and_a_quarter(p50_ms, bucket):
    """Estimates below 1 s count as 1 s (design section 4)."""
    assert bucket == ready_in_bucket(p50_ms)


def test_bucket_bounds_grow_and_cover_weeks():
    assert sorted(set(BUCKET_BOUNDS_MS)) == list(BUCKET_BOUNDS_MS)
    assert BUCKET_BOUNDS_MS[-1] > 30 * 24 * 3_600_000


@given(st.integers(1_000, 10**9))
def test_a_bucket_holds_its_estimate(p50_ms):
    k = ready_in_bucket(p50_ms)

    lower, upper = 5_000 * 5 ** max(k, 0) * 4 ** max(-k, 0), 5_000 * 5 ** max(k + 1, 0)
    assert lower <= p50_ms * 4 ** max(k, 0) * 5 ** max(-k, 0)
    assert p50_ms * 4 ** max(k + 1, 0) * 5 ** max(-k - 1, 0) < upper * 4 ** max(-k - 1, 0)


@given(booleans, booleans)
def test_one_fact_more_never_makes_a_start_slower(image, weights):
    less = estimate(a_service(), Facts(image=image, weights=weights)).p50_ms

    assert estimate(a_service(), Facts(image=True, weights=weights)).p50_ms <= less
    assert estimate(a_service(), Facts(image=image, weights=True)).p50_ms <= less
