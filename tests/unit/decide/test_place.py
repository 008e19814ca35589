"""The choice of a node: order ReadyPoolPack over what fits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    IMAGE,
    MODEL,
    MODEL_REVISION,
    a_node,
    a_placement,
    a_replica,
    a_state,
    a_unit,
    some_resources,
)
from stoker.decide.case import canonical_image
from stoker.decide.warmth import COMMON
from stoker.model.plan import WarmthClass
from stoker.model.snapshot import WeightCopy
from unit.decide.index import a_case, an_index, chosen, warm


# ----------------------------------------------------------------------- order
def test_a_start_for_the_floor_goes_where_it_is_ready_soonest():
    """Ready-in bucket outranks the pool: the service is below its floor."""
    assert "h" == chosen(a_node("l"), warm("h", pool="h100"), urgent=True)


def test_any_other_start_goes_to_the_better_pool():
    assert "l" == chosen(a_node("l"), warm("h", pool="h100"))


def test_within_a_pool_the_warm_node_wins():
    assert "warm" == chosen(a_node("cold"), warm("warm"))


def test_weights_of_another_revision_warm_nothing():
    stale = a_node("b", weights=("b" * 40,))
    half = replace(a_node("c"), weights=(WeightCopy(MODEL, MODEL_REVISION, complete=False),))

    assert "a" == chosen(a_node("a"), stale, half)


def test_large_replicas_keep_whole_nodes_because_small_ones_pack():
    assert "tight" == chosen(a_node("empty"), a_node("tight", used=7), a_node("full", used=8))


def test_ties_break_by_name():
    assert "a" == chosen(a_node("b"), a_node("a"), a_node("c"))


def test_a_node_without_an_own_replica_is_preferred_where_bucket_and_pool_are_equal():
    assert "b" == chosen(a_node("a", used=7), a_node("b"), own=("a",))


def test_replicas_share_a_node_only_when_no_other_fits():
    assert "a" == chosen(a_node("a"), a_node("b", used=8), own=("a",))


def test_own_replicas_never_attract_their_own_scale_up():
    """The node is warm because the service runs there: ranked as if it held nothing."""
    assert "b" == chosen(warm("a"), a_node("b"), own=("a",))


def test_an_urgent_start_may_use_what_an_own_replica_left_on_disk():
    """A notice: the weights beside an own replica make the replacement Ready sooner."""
    assert "a" == chosen(warm("a"), a_node("b"), own=("a",), urgent=True)


def test_barred_nodes_are_not_used():
    assert "b" == chosen(warm("a"), a_node("b"), barred={"a": "failed-here"})
    assert chosen(a_node("a"), own=("a",), barred={"a": "leaving-here"}) is None


def test_an_image_that_most_nodes_hold_counts_as_well_as_a_rare_one():
    """Common facts are part of a node's class, rare ones single nodes out: same result."""
    many = [a_node(f"m{number:03}", images=(IMAGE,)) for number in range(COMMON + 1)]

    assert "m000" == chosen(a_node("a"), *many)
    assert "m001" == chosen(a_node("a"), *many[:2], barred={"m000": "failed-here"})


def test_classes_stay_few_where_each_node_holds_other_weights():
    """Else every service looks at nearly as many classes as there are nodes."""
    revisions = [f"{number:040x}" for number in range(40)]
    cases = tuple(
        a_case(a_unit(f"s{number}", model_revision=revision, pools=("l4",)))
        for number, revision in enumerate(revisions)
    )
    nodes = [
        replace(
            a_node(f"n{number:03}"),
            weights=tuple(
                WeightCopy(MODEL, revisions[(number + (number // 40 + 1) * step) % 40])
                for step in range(10)
            ),
        )
        for number in range(400)
    ]
    index = an_index(*nodes, cases=cases)
    picked = [index.pick(case, urgent=False, own=(), barred={}) for case in cases]

    assert len({frozenset(node.weights) for node in nodes}) > 200
    assert len(index._classes) <= 20
    for case, choice in zip(cases, picked, strict=True):
        assert WeightCopy(*case.weights) in choice.node.weights


def test_the_choice_says_class_estimate_pool_and_room():
    case = a_case()
    choice = an_index(warm("a", used=5), cases=(case,)).pick(case, urgent=True, own=(), barred={})

    assert ("l4", 3) == (choice.pool, choice.free_gpus)
    assert WarmthClass.WARM is choice.readiness.warmth


def test_serving_and_warming_name_the_class():
    state = a_state(
        a_placement("a"),
        a_placement("b", a_replica("p", "b", "Starting")),
        a_placement("c", rev="old"),
    )
    case = a_case(state=state)
    index = an_index(a_node("a"), a_node("b"), a_node("c"), cases=(case,), services=(state,))

    classes = [index.readiness(case, name).warmth for name in "abc"]
    assert [WarmthClass.SERVING, WarmthClass.WARMING, WarmthClass.COLD] == classes


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("vllm/vllm-openai", "docker.io/vllm/vllm-openai:latest"),
        ("nginx:1", "docker.io/library/nginx:1"),
        ("nginx:1@sha256:ab", "docker.io/library/nginx@sha256:ab"),
        ("registry.example/vllm:1", "registry.example/vllm:1"),
        ("localhost/vllm", "localhost/vllm:latest"),
        ("host:5000/team/vllm:1@sha256:ab", "host:5000/team/vllm@sha256:ab"),
    ],
)
def test_images_are_compared_by_their_whole_names(written, listed):
    assert listed == canonical_image(written)
    assert listed == canonical_image(listed)


# ------------------------------------------------------------------- questions
def test_would_fit_asks_what_a_departure_frees():
    case = a_case()
    index = an_index(a_node("a", used=8), a_node("b", used=8, cordoned=True), cases=(case,))

    assert index.would_fit(case, "a", some_resources(1))
    assert not index.would_fit(case, "a", some_resources(0))
    assert not index.would_fit(case, "b", some_resources(1))
    assert not index.would_fit(case, "gone", some_resources(1))


def test_a_service_without_pools_may_use_all_of_the_fleet_in_its_order():
    case = a_case(a_unit(pools=()))

    assert ["l4", "h100"] == [pool.name for pool in case.ask.pools]


def test_pools_that_the_fleet_does_not_know_are_left_out():
    case = a_case(a_unit(pools=("gone", "l4")))

    assert ["l4"] == [pool.name for pool in case.ask.pools]


def test_node_and_pool_of_a_name():
    case = a_case()
    index = an_index(a_node("a"), a_node("x", pool="other"), cases=(case,))

    assert "a" == index.node("a").name
    assert index.node("gone") is None
    assert ["l4", "", ""] == [index.pool(case, name) for name in ("a", "x", "gone")]
