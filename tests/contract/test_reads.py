"""Lists, selectors, pages and discovery, as stages rely on them; row 85."""

from __future__ import annotations

import pytest

from contract.api import METADATA, data
from stoker.kube.requests import ACCEPT_DISCOVERY


@pytest.fixture
def filled(server):
    """Five ConfigMaps; the odd ones have label x=1."""
    for number in range(5):
        labels = {"x": "1", "n": str(number)} if number % 2 else {"n": str(number)}
        server.apply("ConfigMap", f"c{number}", {"metadata": {"labels": labels}, **data(a="1")})
    return server


def listed(server, **query):
    answer = server.send("GET", server.path("ConfigMap"), **query)
    assert answer.status == 200, answer
    return [item["metadata"]["name"] for item in answer["items"]]


def test_85_a_metadata_list_has_managed_fields(filled):
    answer = filled.send("GET", filled.path("ConfigMap"), accept=METADATA)

    assert answer["kind"] == "PartialObjectMetadataList"
    assert answer["apiVersion"] == "meta.k8s.io/v1"
    first = answer["items.0"]
    assert (first["kind"], first["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert set(first) == {"kind", "apiVersion", "metadata"}
    assert {"uid", "resourceVersion", "managedFields"} <= set(first["metadata"])


def test_85_the_accept_parameter_is_v_equals_v1(filled):
    refused = filled.send("GET", filled.path("ConfigMap"), accept=METADATA.replace("v=v1", "v=1"))

    assert (refused.status, refused.reason) == (406, "NotAcceptable")


def test_items_of_built_in_lists_have_no_kind_and_those_of_custom_ones_do(filled):
    filled.apply("Gizmo", "g", {"spec": {}})
    plain = filled.send("GET", filled.path("ConfigMap"))
    custom = filled.send("GET", filled.path("Gizmo"))

    assert (plain["kind"], "kind" in plain["items.0"]) == ("ConfigMapList", False)
    assert (custom["kind"], custom["items.0.kind"]) == ("GizmoList", "Gizmo")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("x=1", ["c1", "c3"]),
        ("x==1,n=3", ["c3"]),
        ("x!=1", ["c0", "c2", "c4"]),
        ("x", ["c1", "c3"]),
        ("!x", ["c0", "c2", "c4"]),
        ("n in (0,3)", ["c0", "c3"]),
        ("n notin (0,3)", ["c1", "c2", "c4"]),
        ("nope", []),
    ],
)
def test_label_selectors(filled, selector, expected):
    assert listed(filled, labelSelector=selector) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=c3", ["c3"]),
        ("metadata.name!=c3", ["c0", "c1", "c2", "c4"]),
        ("metadata.namespace=nope", []),
    ],
)
def test_field_selectors(filled, selector, expected):
    assert listed(filled, fieldSelector=selector) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"fieldSelector": "spec.x=y"}, '"spec.x" is not a known field selector: only'),
        ({"labelSelector": "a==="}, "unable to parse requirement: found '='"),
        ({"continue_": "zzz"}, "invalid continue token"),
    ],
    ids=["field", "label", "continue"],
)
def test_bad_list_options_are_400(filled, query, message):
    refused = filled.send("GET", filled.path("ConfigMap"), **query)

    assert refused.status == 400
    assert message in refused.message


def test_pages_are_one_list_at_one_version(filled):
    """What changes between pages isn't seen: the list is whole at the first page's version."""
    first = filled.send("GET", filled.path("ConfigMap"), limit=2)
    assert [item["metadata"]["name"] for item in first["items"]] == ["c0", "c1"]
    assert first["metadata.remainingItemCount"] == 3

    filled.delete("ConfigMap", "c3")
    filled.apply("ConfigMap", "c9", data(a="1"))
    token = first["metadata.continue"]
    second = filled.send("GET", filled.path("ConfigMap"), limit=2, continue_=token)
    third = filled.send(
        "GET", filled.path("ConfigMap"), limit=2, continue_=second["metadata.continue"]
    )
    names = [item["metadata"]["name"] for page in (second, third) for item in page["items"]]
    assert names == ["c2", "c3", "c4"]
    assert third["metadata.continue"] in {None, ""}
    assert first["metadata.resourceVersion"] == third["metadata.resourceVersion"]


def test_a_list_from_the_future_is_a_timeout(memory):
    """The real server gives the same answer after 3 s (seen 2026-11-29)."""
    refused = memory.send("GET", memory.path("ConfigMap"), resourceVersion="99999999")

    assert (refused.status, refused.reason) == (504, "Timeout")
    assert "Too large resource version" in refused.message


def test_an_expired_page_is_gone(memory):
    for name in "abc":
        memory.apply("ConfigMap", name, data(a="1"))
    first = memory.send("GET", memory.path("ConfigMap"), limit=1)
    memory.transport.compact()

    token = first["metadata.continue"]
    refused = memory.send("GET", memory.path("ConfigMap"), limit=1, continue_=token)
    assert (refused.status, refused.reason) == (410, "Expired")


def test_a_collection_is_deleted_by_selector(filled):
    answer = filled.send("DELETE", filled.path("ConfigMap"), labelSelector="x=1")

    assert answer.status == 200
    assert listed(filled) == ["c0", "c2", "c4"]


# ----------------------------------------------------------------------- discovery


def test_the_version(server):
    answer = server.send("GET", "/version")

    assert answer["gitVersion"] == "v1.37.2"


def test_groups_and_their_preferred_versions(server):
    groups = {group["name"]: group for group in server.send("GET", "/apis")["groups"]}

    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert groups["autoscaling"]["preferredVersion"]["version"] == "v2"
    assert "stoker.dev" in groups


@pytest.mark.parametrize(
    ("path", "name", "kind", "namespaced"),
    [
        ("/api/v1", "pods", "Pod", True),
        ("/api/v1", "nodes", "Node", False),
        ("/api/v1", "pods/eviction", "Eviction", True),
        ("/apis/apps/v1", "deployments", "Deployment", True),
        ("/apis/apps/v1", "deployments/scale", "Scale", True),
        ("/apis/stoker.dev/v1alpha1", "gizmos", "Gizmo", True),
        ("/apis/stoker.dev/v1alpha1", "gizmos/status", "Gizmo", True),
    ],
)
def test_kinds_are_discovered(server, path, name, kind, namespaced):
    found = {entry["name"]: entry for entry in server.send("GET", path)["resources"]}

    assert (found[name]["kind"], found[name]["namespaced"]) == (kind, namespaced)


@pytest.mark.parametrize(
    ("root", "group", "version", "resource", "kind", "scope", "below"),
    [
        ("/api", "", "v1", "pods", "Pod", "Namespaced", {"eviction": "Eviction"}),
        ("/api", "", "v1", "nodes", "Node", "Cluster", {"status": "Node"}),
        ("/apis", "apps", "v1", "deployments", "Deployment", "Namespaced", {"scale": "Scale"}),
        ("/apis", "stoker.dev", "v1alpha1", "gizmos", "Gizmo", "Namespaced", {"status": "Gizmo"}),
    ],
)
def test_all_kinds_below_a_root_come_in_one_answer(  # noqa: PLR0913 - one row of the table
    server, root, group, version, resource, kind, scope, below
):
    """A new definition shows a moment later."""
    for _ in range(200):
        answer = server.send("GET", root, accept=ACCEPT_DISCOVERY)
        groups = {item["metadata"].get("name", ""): item for item in answer["items"]}
        if group in groups:
            break
        server.wait(0.05)
    first = groups[group]["versions"][0]
    found = {entry["resource"]: entry for entry in first["resources"]}[resource]

    assert (answer["kind"], answer["apiVersion"]) == (
        "APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    )
    assert (first["version"], first["freshness"]) == (version, "Current")
    assert (found["responseKind"]["kind"], found["scope"]) == (kind, scope)
    kinds = {one["subresource"]: one["responseKind"]["kind"] for one in found["subresources"]}
    assert below.items() <= kinds.items()


def test_the_preferred_version_is_the_first_told(server):
    answer = server.send("GET", "/apis", accept=ACCEPT_DISCOVERY)
    groups = {item["metadata"]["name"]: item for item in answer["items"]}

    assert groups["autoscaling"]["versions"][0]["version"] == "v2"


def test_all_in_one_is_preferred_to_the_groups_alone_however_they_are_offered(server):
    first, second = ACCEPT_DISCOVERY.split(",")
    offers = (f"{first},{second}", f"{second},{first}", first)
    kinds = {server.send("GET", "/apis", accept=offer)["kind"] for offer in offers}

    assert kinds == {"APIGroupDiscoveryList"}
    assert server.send("GET", "/apis", accept=second)["kind"] == "APIGroupList"


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/stoker.dev/v9", "/nope"])
def test_what_is_not_there_is_plain_text(server, path):
    answer = server.send("GET", path)

    assert (answer.status, answer.body) == (404, "404 page not found\n")


def test_the_server_says_when_it_is_ready(server):
    assert server.send("GET", "/readyz").body == "ok"
