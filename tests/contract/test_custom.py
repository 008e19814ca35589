"""Group F of research/ssa-facts.md: custom resources, CRDs, status."""

from __future__ import annotations

import pytest

from contract.api import BAD_UID, deployment, owners_of


def gizmo(**spec):
    return {"spec": spec}


def test_49_an_apply_creates_a_custom_resource(server):
    """Why a ScalePolicy writes only the scale subresource."""
    made = server.apply("Gizmo", "g", gizmo(replicas=2))

    assert (made.status, made["metadata.generation"]) == (201, 1)
    assert made["spec.mode"] == "A"
    assert made.owners == "stoker:A{spec.replicas}"
    assert server.apply("Gizmo", "g", gizmo(replicas=2)).rv == made.rv


def test_49_generation_counts_spec_changes_only(server):
    server.apply("Gizmo", "g", gizmo(replicas=2))
    labelled = server.patch("Gizmo", "g", {"metadata": {"labels": {"x": "1"}}})
    assert labelled["metadata.generation"] == 1
    status = server.patch("Gizmo", "g", {"status": {"replicas": 1}}, sub="status")
    assert status["metadata.generation"] == 1

    assert server.apply("Gizmo", "g", gizmo(replicas=3))["metadata.generation"] == 2


def test_50_apply_on_a_custom_scale_is_a_500(server):
    server.apply("Gizmo", "g", gizmo(replicas=2))

    def applied(name):
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": server.ns},
            "spec": {"replicas": 4},
        }
        content = "application/apply-patch+yaml"
        path = server.path("Gizmo", name, "scale")
        return server.send(
            "PATCH", path, body, content_type=content, fieldManager="stoker", force="true"
        )

    refused = applied("g")
    assert (refused.status, refused.message) == (
        500,
        (
            f"failed to convert new object ({server.ns}/g; autoscaling/v1, Kind=Scale) to proper"
            " version: request to convert CR to an invalid group/version: autoscaling/v1"
        ),
    )
    assert applied("nope").status == 404


def test_51_a_merge_on_a_custom_scale_ignores_the_uid(server):
    """Only its resourceVersion is checked."""
    live = server.apply("Gizmo", "g", gizmo(replicas=2), by="stoker-a1b2")
    answer = server.scale("Gizmo", "g", 6, by="stoker-a1b2", uid=BAD_UID, resourceVersion=live.rv)

    assert (answer.status, answer["spec.replicas"]) == (200, 6)
    assert server.get("Gizmo", "g").owners == "stoker-a1b2:U/scale{spec.replicas}"
    assert server.scale("Gizmo", "g", 7, resourceVersion=live.rv).status == 409
    scale = server.get("Gizmo", "g", "scale")
    body = {**scale.body, "metadata": {**scale.body["metadata"], "uid": BAD_UID}}
    wrong = server.put("Gizmo", "g", body, sub="scale")
    assert (wrong.status, "StorageError" in wrong.message) == (409, True)
    assert server.scale("Gizmo", "nope", 6).status == 404


def test_52_a_custom_resource_without_replicas(server):
    server.apply("Gizmo", "g", gizmo(mode="B"))
    absent = server.get("Gizmo", "g", "scale")
    assert (absent.status, absent.message) == (
        500,
        'Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
    )

    assert server.scale("Gizmo", "g", 4).status == 200
    live = server.get("Gizmo", "g")
    assert (live["spec.replicas"], live.owners) == (4, "stoker:A{spec.mode}")


def test_53_a_custom_resource_scaled_to_zero(server):
    server.apply("Gizmo", "more", gizmo(replicas=2, mode="B"))
    server.apply("Gizmo", "only", gizmo(replicas=2))
    for name in ("more", "only"):
        assert server.scale("Gizmo", name, 0).status == 200

    assert server.apply("Gizmo", "more", gizmo(replicas=2, mode="B")).status == 200
    refused = server.apply("Gizmo", "only", gizmo(replicas=2))
    assert refused.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using'
        " stoker.dev/v1alpha1: .spec.replicas"
    )


@pytest.mark.parametrize(
    ("field", "ours", "theirs", "path"),
    [
        ("plain", ["a"], ["b"], ".spec.plain"),
        ("things", [{"a": "1"}], [{"a": "2"}], ".spec.things"),
        ("whole", {"a": "1"}, {"b": "1"}, ".spec.whole"),
        ("byname", [{"name": "n", "v": "1"}], [{"name": "n", "v": "2"}], None),
    ],
)
def test_54_conflicts_over_lists_and_maps(server, field, ours, theirs, path):
    server.apply("Gizmo", "g", gizmo(**{field: ours}))
    refused = server.apply("Gizmo", "g", gizmo(**{field: theirs}), by="b")

    assert refused.status == 409
    assert refused.causes[0][2] == (path or '.spec.byname[name="n"].v')


def test_54_sets_keyed_lists_and_maps_merge(server):
    ours = gizmo(set=["a"], byname=[{"name": "m", "v": "1"}], map={"k": "1"})
    theirs = gizmo(set=["b"], byname=[{"name": "n", "v": "1"}], map={"l": "1"})
    server.apply("Gizmo", "g", ours)
    merged = server.apply("Gizmo", "g", theirs, by="b")

    assert merged["spec.set"] == ["a", "b"]
    assert merged["spec.map"] == {"k": "1", "l": "1"}
    assert [item["name"] for item in merged["spec.byname"]] == ["m", "n"]
    assert merged.owners == (
        'b:A{spec.byname[name="n"]. spec.byname[name="n"].name spec.byname[name="n"].v spec.map.l'
        ' spec.set[="b"]} stoker:A{spec.byname[name="m"]. spec.byname[name="m"].name'
        ' spec.byname[name="m"].v spec.map.k spec.set[="a"]}'
    )


def test_54_a_defaulted_list_belongs_to_nobody(server):
    server.apply("Gizmo", "g", gizmo(replicas=1))
    taken = server.apply("Gizmo", "g", gizmo(defaulted=["y"]), by="b")
    assert taken["spec.defaulted"] == ["y"]

    assert server.apply("Gizmo", "g", {}, by="b")["spec.defaulted"] == ["x"]


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        ({"nope": 1}, 500, ".spec.nope: field not declared in schema"),
        ({"replicas": "1"}, 500, ".spec.replicas: expected numeric (int or float), got string"),
        (
            {"mode": "C"},
            422,
            'spec.mode: Unsupported value: "C": supported values: "A", "B"',
        ),
        (
            {"replicas": None},
            422,
            (
                'spec.replicas: Invalid value: "null": spec.replicas in body must be of type integer:'
                ' "null"'
            ),
        ),
        (
            {"byname": [{"v": "1"}]},
            500,
            (
                ".spec.byname: element 0: associative list with keys has an element that omits all key"
                ' fields ["name"] (and doesn\'t have default values for any key fields)'
            ),
        ),
        ({"set": ["a", "a"]}, 500, '.spec.set: duplicate entries for key [="a"]'),
    ],
    ids=["unknown", "type", "enum", "null", "no key", "duplicates"],
)
def test_55_values_a_custom_resource_refuses(server, spec, status, message):
    refused = server.apply("Gizmo", "g", gizmo(**spec))

    assert refused.status == status
    assert message in refused.message


def test_55_a_fraction_is_no_integer(server):
    refused = server.apply("Gizmo", "g", gizmo(replicas=1.5))

    assert refused.status == 422
    assert 'spec.replicas in body must be of type integer: "number"' in refused.message


@pytest.mark.parametrize(
    ("spec", "stored", "owned"),
    [
        ({"replicas": 1.0}, {"replicas": 1}, "spec.replicas"),
        ({"mode": None}, {"mode": "A"}, "spec.mode"),
        ({"nothing": None}, {"nothing": None}, "spec.nothing"),
        ({"any": {"a": [1, {"b": None}]}}, {"any": {"a": [1, {"b": None}]}}, "spec.any.a"),
        ({"set": []}, {"set": []}, ""),
        ({"plain": []}, {"plain": []}, "spec.plain"),
        ({"map": {}}, {"map": {}}, "spec.map"),
        ({"share": "10%"}, {"share": "10%"}, "spec.share"),
    ],
    ids=["1.0", "default", "nullable", "any", "empty set", "empty list", "empty map", "share"],
)
def test_55_values_a_custom_resource_takes(server, spec, stored, owned):
    made = server.apply("Gizmo", "g", gizmo(**spec))

    assert made.status == 201
    assert {**made["spec"], **stored} == made["spec"]
    assert made.owners == (f"stoker:A{{{owned}}}" if owned else "")


def test_55_an_int_or_string_compares_as_it_is(server):
    server.apply("Gizmo", "g", gizmo(share="10%"))

    assert server.apply("Gizmo", "g", gizmo(share=10), by="b").status == 409


def test_56_status_on_the_main_path_is_ignored(server):
    made = server.apply("Gizmo", "g", {**gizmo(replicas=2), "status": {"replicas": 9}})

    assert (made["status"], made.owners) == (None, "stoker:A{spec.replicas}")


def test_56_apply_on_status(server):
    server.apply("Gizmo", "g", gizmo(replicas=2))

    def applied(*conditions, by="stoker", **more):
        body = {"status": {"conditions": list(conditions)}, **more}
        return server.apply("Gizmo", "g", body, by=by, sub="status")

    ours = applied({"type": "Ready", "status": "True"}, **gizmo(replicas=9))
    assert (ours["spec.replicas"], ours["metadata.generation"]) == (2, 1)
    owned = 'status.conditions[type="Ready"]'
    assert ours.owners in (
        f"stoker:A/status{{{owned}. {owned}.status {owned}.type}} stoker:A{{spec.replicas}}",
        f"stoker:A{{spec.replicas}} stoker:A/status{{{owned}. {owned}.status {owned}.type}}",
    )
    both = applied({"type": "Warm", "status": "True"}, by="b")
    assert [c["type"] for c in both["status.conditions"]] == ["Ready", "Warm"]
    refused = applied({"type": "Ready", "status": "False"}, by="b")
    assert refused.causes == [
        (
            "FieldManagerConflict",
            'conflict with "stoker" with subresource "status"',
            '.status.conditions[type="Ready"].status',
        )
    ]
    left = server.apply("Gizmo", "g", {}, sub="status")
    assert [c["type"] for c in left["status.conditions"]] == ["Warm"]


def test_56_a_custom_status_write_changes_status_only(server):
    server.apply("Gizmo", "g", gizmo(replicas=2))
    body = {"metadata": {"labels": {"x": "1"}, "annotations": {"q": "1"}}, **gizmo(replicas=9)}
    answer = server.patch("Gizmo", "g", {**body, "status": {"replicas": 1}}, sub="status")

    assert answer["metadata.labels"] is None
    assert answer["metadata.annotations"] is None
    assert (answer["spec.replicas"], answer["status.replicas"]) == (2, 1)


def test_56_a_wrong_uid_on_a_custom_status_passes(server):
    server.apply("Gizmo", "g", gizmo(replicas=2))
    body = {"metadata": {"uid": BAD_UID}, "status": {"replicas": 1}}

    assert server.patch("Gizmo", "g", body, sub="status").status == 200
    assert server.patch("Gizmo", "nope", body, sub="status").status == 404


def test_56_annotations_pass_through_a_deployments_status(server):
    server.apply("Deployment", "d", deployment())
    body = {
        "metadata": {"annotations": {"q": "1"}, "labels": {"x": "1"}},
        "spec": {"replicas": 9},
        "status": {"replicas": 1},
    }
    answer = server.patch("Deployment", "d", body, by="k", sub="status")

    assert answer["metadata.annotations"] == {"q": "1"}
    assert answer["metadata.labels"] is None
    assert answer["spec.replicas"] == 1
    entry = "k:U/status{metadata.annotations. metadata.annotations.q status.replicas}"
    assert entry in owners_of(answer.body)
    wrong = server.patch("Deployment", "d", {"metadata": {"uid": BAD_UID}}, sub="status")
    assert wrong.status == 422


def test_57_a_crd_applied_again_stays_at_its_version(server):
    name = f"things.{server.ns}.stoker.dev"
    crd = _crd(server, replicas={"type": "integer"})
    assert server.apply("CustomResourceDefinition", name, crd).status == 201
    _until_served(server, f"/apis/{server.ns}.stoker.dev/v1alpha1")
    live = server.get("CustomResourceDefinition", name)

    assert server.apply("CustomResourceDefinition", name, crd).rv == live.rv
    assert "kube-apiserver:U/status{" in live.owners
    assert live["status.conditions.1.type"] == "Established"


def test_57_a_field_that_left_the_crd_is_a_500_for_applies_that_send_it(server):
    group = f"{server.ns}.stoker.dev"
    name = f"things.{group}"
    server.apply("CustomResourceDefinition", name, _crd(server, a={"type": "string"}))
    _until_served(server, f"/apis/{group}/v1alpha1")
    path = f"/apis/{group}/v1alpha1/namespaces/{server.ns}/things/t"

    def applied(**spec):
        body = {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "Thing",
            "metadata": {"name": "t", "namespace": server.ns},
            "spec": spec,
        }
        content = "application/apply-patch+yaml"
        return server.send("PATCH", path, body, content_type=content, fieldManager="stoker")

    assert applied(a="1").status == 201
    server.apply("CustomResourceDefinition", name, _crd(server, b={"type": "string"}))
    for _ in range(500):
        if applied(b="1").status == 200:
            break
    assert applied(b="1").status == 200
    assert applied(a="1").message.endswith(".spec.a: field not declared in schema")


def test_57_a_deleted_crd_takes_its_kind_along(server):
    group = f"{server.ns}.stoker.dev"
    name = f"things.{group}"
    server.apply("CustomResourceDefinition", name, _crd(server, a={"type": "string"}))
    _until_served(server, f"/apis/{group}/v1alpha1")
    assert server.delete("CustomResourceDefinition", name).status == 200

    path = f"/apis/{group}/v1alpha1/things"
    for _ in range(2000):
        if server.send("GET", path).status == 404:
            break
    absent = server.send("GET", path)
    assert (absent.status, absent.body) == (404, "404 page not found\n")


def _crd(server, **properties):
    group = f"{server.ns}.stoker.dev"
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}},
            }
        },
    }
    names = {"kind": "Thing", "plural": "things"}
    spec = {"scope": "Namespaced", "group": group, "names": names, "versions": [version]}
    return {"spec": spec}


def _until_served(server, path):
    for _ in range(2000):
        answer = server.send("GET", f"{path}/things")
        if answer.status == 200:
            return
    raise AssertionError(f"{path} is never served: {answer}")
