"""A placement baked into the neutral Deployment."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.fleet import Pin, Pool, Requirement
from stoker.model.plan import Placement, Readiness, WarmthClass
from stoker.model.refs import UnitRef
from stoker.objects import names
from stoker.render.bake import Site, bake, leftover_placeholder
from unit.render.builders import POOL, service

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = UnitRef("ModelService", "llm", "web")

NEUTRAL: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"team": "a"}},
    "spec": {
        "replicas": 1,
        "template": {
            "metadata": {"labels": {"app.kubernetes.io/name": "mine"}},
            "spec": {
                "containers": [
                    {
                        "name": "engine",
                        "env": [
                            {"name": "NODE", "value": "on stoker-decides-node (stoker-decides-uid)"}
                        ],
                    }
                ]
            },
        },
    },
}


def site(*pools, **spec):
    return Site("prod-eu", WEB, service(**spec), pools or (POOL,), "models/web.yaml")


def on(node="n1.example", *, count=2):
    name = names.deployment_name("web", node, "12345678")
    return Placement(name, "12345678", node, "uid-1" if node else "", "l4-od", count)


def baked(neutral=None, placement=None, place=None):
    neutral = neutral or NEUTRAL
    before = copy.deepcopy(neutral)
    body = bake(neutral, placement or on(), place or site())
    assert before == neutral
    return body


def node_affinity(body):
    return body["spec"]["template"]["spec"].get("affinity", {}).get("nodeAffinity", {})


def in_pool(*values, key="pool"):
    return {"key": key, "operator": "In", "values": list(values)}


NAMED = {"key": "metadata.name", "operator": "In", "values": ["n1.example"]}


def test_name_count_and_selector_are_unique_to_the_placement():
    body = baked()

    assert names.deployment_name("web", "n1.example", "12345678") == body["metadata"]["name"]
    assert 2 == body["spec"]["replicas"]
    value = names.placement_label("web", "n1.example", "12345678")
    assert {"matchLabels": {names.PLACEMENT_LABEL: value}} == body["spec"]["selector"]
    assert value == body["spec"]["template"]["metadata"]["labels"][names.PLACEMENT_LABEL]


def test_labels_and_annotations_follow_the_contract():
    body = baked()
    value = names.placement_label("web", "n1.example", "12345678")

    assert {
        "team": "a",
        "app.kubernetes.io/name": "web",
        names.MANAGED_BY: "stoker",
        names.FLEET_LABEL: "prod-eu",
        names.SERVICE_LABEL: "web",
        names.PLACEMENT_LABEL: value,
    } == body["metadata"]["labels"]
    assert {
        names.NODE: "n1.example",
        names.NODE_UID: "uid-1",
        names.REV: "12345678",
        names.SOURCE: "models/web.yaml",
    } == body["metadata"]["annotations"]
    assert {
        "app.kubernetes.io/name": "mine",
        names.FLEET_LABEL: "prod-eu",
        names.SERVICE_LABEL: "web",
        names.PLACEMENT_LABEL: value,
        names.TRAFFIC_LABEL: "true",
        names.MODEL_REVISION_LABEL: service().model_revision,
    } == body["spec"]["template"]["metadata"]["labels"]


def test_the_node_is_preferred_inside_the_required_pool():
    """design.md section 4: pods heal alone, and node autoscalers can act."""
    affinity = node_affinity(baked())

    assert [{"matchExpressions": [in_pool("l4")]}] == affinity[REQUIRED]["nodeSelectorTerms"]
    assert [{"weight": 100, "preference": {"matchFields": [NAMED]}}] == affinity[PREFERRED]


def test_a_static_pool_requires_the_node():
    pinned = Pool("l4-od", match_labels=(("pool", "l4"),), pin=Pin.REQUIRED)
    affinity = node_affinity(baked(place=site(pinned)))

    assert [{"matchExpressions": [in_pool("l4")], "matchFields": [NAMED]}] == affinity[REQUIRED][
        "nodeSelectorTerms"
    ]
    assert PREFERRED not in affinity


def test_a_replica_without_a_node_is_tied_to_its_pool_alone():
    """whenFull: Unpinned (decision note 25): a node autoscaler must be free to add a node."""
    place = names.place_in_pool("l4-od")
    name = names.deployment_name("web", place, "12345678")
    body = baked(placement=Placement(name, "12345678", place, "", "l4-od", 1))
    engine = body["spec"]["template"]["spec"]["containers"][0]

    terms = [{"matchExpressions": [in_pool("l4")]}]
    assert {REQUIRED: {"nodeSelectorTerms": terms}} == node_affinity(body)
    assert "pool/l4-od" == body["metadata"]["annotations"][names.NODE]
    assert names.NODE_UID not in body["metadata"]["annotations"]
    assert "on  ()" == engine["env"][0]["value"]
    assert name not in {"web", names.deployment_name("web", "l4-od", "12345678")}


def test_a_pool_without_a_selector_asks_for_nothing():
    """An empty term would match no node at all."""
    assert {PREFERRED} == set(node_affinity(baked(place=site(Pool("all")))))


def test_a_pinned_pool_without_a_selector_requires_the_node_alone():
    affinity = node_affinity(baked(place=site(Pool("all", pin=Pin.REQUIRED))))

    assert [{"matchFields": [NAMED]}] == affinity[REQUIRED]["nodeSelectorTerms"]


def test_the_users_affinity_holds_beside_the_pools():
    """Terms are alternatives: each of the user's must be joined with each of the pools'."""
    neutral = copy.deepcopy(NEUTRAL)
    own = {"weight": 1, "preference": {"matchExpressions": [in_pool("x", key="a")]}}
    neutral["spec"]["template"]["spec"]["affinity"] = {
        "podAntiAffinity": {"kept": True},
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [in_pool("a", key="zone")]},
                    {"matchExpressions": [in_pool("b", key="zone")]},
                ]
            },
            PREFERRED: [own],
        },
    }
    body = baked(neutral)

    assert [
        {"matchExpressions": [in_pool("a", key="zone"), in_pool("l4")]},
        {"matchExpressions": [in_pool("b", key="zone"), in_pool("l4")]},
    ] == node_affinity(body)[REQUIRED]["nodeSelectorTerms"]
    assert own == node_affinity(body)[PREFERRED][1]
    assert {"kept": True} == body["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]


def test_mode_scheduler_needs_the_pools_only():
    other = Pool("h100", match_expressions=(Requirement("gpu", "Exists"),))
    body = baked(placement=on("", count=3), place=site(POOL, other))

    assert ("web", 3) == (body["metadata"]["name"], body["spec"]["replicas"])
    assert {
        REQUIRED: {
            "nodeSelectorTerms": [
                {"matchExpressions": [in_pool("l4")]},
                {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
            ]
        }
    } == node_affinity(body)
    assert names.NODE not in body["metadata"]["annotations"]
    assert names.placement_label("web", "", "") == body["metadata"]["labels"][names.PLACEMENT_LABEL]


def test_mode_scheduler_with_one_pool_of_all_nodes_asks_for_nothing():
    assert {} == node_affinity(baked(placement=on(""), place=site(POOL, Pool("all"))))


def test_placeholders_are_filled_in_wherever_they_stand():
    body = baked()
    (variable,) = body["spec"]["template"]["spec"]["containers"][0]["env"]

    assert "on n1.example (uid-1)" == variable["value"]
    assert not leftover_placeholder(body)


@pytest.mark.parametrize("value", ["STOKER-DECIDES-NODE", ["x", {"stoker-decides-pool": 1}]])
def test_a_placeholder_that_was_respelled_is_noticed(value):
    assert leftover_placeholder({"a": value})


@pytest.mark.parametrize("revision", ["feature/x", "a" * 64, "-x"])
def test_a_revision_that_is_no_label_value_is_hashed(revision):
    labels = baked(place=site(model_revision=revision))["spec"]["template"]["metadata"]["labels"]

    assert 16 == len(labels[names.MODEL_REVISION_LABEL])


def test_a_model_without_a_revision_has_no_label_for_it():
    labels = baked(place=site(model_revision=""))["spec"]["template"]["metadata"]["labels"]

    assert names.MODEL_REVISION_LABEL not in labels


def test_the_engines_version_is_a_label_and_restarts_nothing():
    """spec.engine.version tells people and selectors; rev leaves labels out."""
    labels = baked(place=site(engine_version="0.28"))["spec"]["template"]["metadata"]["labels"]

    assert "0.28" == labels["app.kubernetes.io/version"]


def test_gpu_products_and_memory_hold_wherever_a_pod_heals():
    """The labels and the tolerance of 8 % are those that decide reads."""
    place = site(gpu_products=("B", "A"), gpu_min_memory_bytes=75 * 2**30)
    (term,) = node_affinity(baked(place=place))[REQUIRED]["nodeSelectorTerms"]

    assert [
        in_pool("l4"),
        in_pool("A", "B", key="nvidia.com/gpu.product"),
        {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["70655"]},
    ] == term["matchExpressions"]


def test_gpu_products_hold_without_any_pool_selector():
    place = site(Pool("all"), gpu_products=("A",))
    (term,) = node_affinity(baked(placement=on(""), place=place))[REQUIRED]["nodeSelectorTerms"]

    assert {"matchExpressions": [in_pool("A", key="nvidia.com/gpu.product")]} == term


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 12), st.booleans())
def test_no_rendered_byte_hangs_on_what_is_learned_of_starts(p50_ms, p90_ms, samples, prior):
    """Else each start that ends would restart the others."""
    learned = Readiness(WarmthClass.COLD, p50_ms, p90_ms, prior, "image no", samples)

    assert baked() == baked(placement=replace(on(), readiness=learned))
