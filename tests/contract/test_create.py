"""Group A of research/ssa-facts.md: creating, adopting, the envelope of an apply."""

from __future__ import annotations

import pytest

from contract.api import data, deployment

NOT_SERVED = "the server could not find the requested resource"


def test_01_apply_creates_and_owns_what_was_sent(server):
    made = server.apply("ConfigMap", "c", data(a="1"))
    forced = server.apply("ConfigMap", "d", data(a="1"), force=True)

    assert (made.status, forced.status) == (201, 201)
    assert made.owners == "stoker:A{data.a}"
    assert made["metadata.generation"] is None


def test_01_a_config_map_keeps_a_generation_that_was_sent(server):
    made = server.apply("ConfigMap", "c", {"metadata": {"generation": 77}, **data(a="1")})

    assert made["metadata.generation"] == 77
    assert made.owners == "stoker:A{data.a}"


def test_02_applying_the_same_again_changes_nothing(server):
    first = server.apply("ConfigMap", "c", data(a="1"))
    server.wait(1.1)
    again = server.apply("ConfigMap", "c", data(a="1"))
    known = server.apply(
        "ConfigMap",
        "c",
        {"metadata": {"uid": first.uid, "resourceVersion": first.rv}, **data(a="1")},
    )

    assert (again.status, known.status) == (200, 200)
    assert first.body == again.body == known.body


def test_02_a_deployment_applied_again_stays_at_its_version(server):
    first = server.apply("Deployment", "d", deployment(replicas=2))
    again = server.apply("Deployment", "d", deployment(replicas=2))

    assert first.rv == again.rv
    assert again["metadata.generation"] == 1


def test_03_a_dry_run_shows_the_result_and_stores_nothing(server):
    absent = server.apply("ConfigMap", "c", data(a="1"), dry=True)
    assert absent.status == 201
    assert absent.uid
    assert absent.rv == ""
    assert server.get("ConfigMap", "c").status == 404

    stored = server.apply("ConfigMap", "c", data(a="1"))
    changed = server.apply("ConfigMap", "c", data(a="2"), dry=True)
    assert (changed.status, changed.data, changed.rv) == (200, {"a": "2"}, stored.rv)
    assert server.get("ConfigMap", "c").body == stored.body


def test_04_apply_merges_silently_into_a_foreign_object(server):
    """Why creating a name that nobody knows needs a look first."""
    server.post("ConfigMap", {"metadata": {"name": "c"}, **data(theirs="1")}, by="terraform")
    merged = server.apply("ConfigMap", "c", {"metadata": {"labels": {"x": "1"}}, **data(ours="2")})

    assert (merged.status, merged.data) == (200, {"ours": "2", "theirs": "1"})
    assert merged.owners == ("stoker:A{data.ours metadata.labels.x} terraform:U{data. data.theirs}")


def test_04_ports_of_a_foreign_service_stand_beside_ours(server):
    theirs = {"ports": [{"name": "80", "port": 80}], "selector": {"a": "b"}}
    server.post("Service", {"metadata": {"name": "s"}, "spec": theirs})
    merged = server.apply("Service", "s", {"spec": {"ports": [{"name": "ours", "port": 8000}]}})

    assert merged.status == 200
    assert sorted(port["port"] for port in merged["spec.ports"]) == [80, 8000]


def test_05_the_same_manager_name_is_the_same_owner(server):
    mark = {"metadata": {"annotations": {"stoker.dev/owner": "A"}}}
    server.apply("ConfigMap", "c", {**mark, **data(a="1")})
    other = {"metadata": {"annotations": {"stoker.dev/owner": "B"}}, **data(b="1")}

    refused = server.apply("ConfigMap", "c", other, by="stoker-c")
    assert refused.status == 409
    assert refused.message == (
        'Apply failed with 1 conflict: conflict with "stoker":'
        " .metadata.annotations.stoker.dev/owner"
    )
    assert server.apply("ConfigMap", "c", other).data == {"b": "1"}


@pytest.mark.parametrize(
    ("manager", "message"),
    [
        ("", "fieldManager: Required value: is required for apply patch"),
        ("m" * 129, "fieldManager: Too long: may not be more than 128 bytes"),
    ],
    ids=["empty", "129 bytes"],
)
def test_06_a_bad_field_manager_is_422(server, manager, message):
    refused = server.apply("ConfigMap", "c", data(a="1"), by=manager)

    assert refused.status == 422
    assert refused.message == f'PatchOptions.meta.k8s.io "" is invalid: {message}'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
        (
            {"metadata": {"name": "other"}},
            "the name of the object (other) does not match the name on the URL (c)",
        ),
        (
            {"metadata": {"namespace": "kube-system"}},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ({"kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"kind": None}, "invalid object type: /v1, Kind="),
        ({"apiVersion": "v2"}, "invalid object type: /v2, Kind=ConfigMap"),
    ],
    ids=["managedFields", "name", "namespace", "kind", "no kind", "version"],
)
def test_06_a_bad_envelope_is_400(server, changes, message):
    refused = server.apply("ConfigMap", "c", {**data(a="1"), **changes})

    assert (refused.status, refused.message) == (400, message)


def test_06_managed_fields_null_passes(server):
    made = server.apply("ConfigMap", "c", {"metadata": {"managedFields": None}, **data(a="1")})

    assert made.status == 201


def test_06_an_existing_object_needs_no_name_in_the_body(server):
    server.apply("ConfigMap", "c", data(a="1"))
    body = {"apiVersion": "v1", "kind": "ConfigMap", **data(a="1")}
    content = "application/apply-patch+yaml"
    path = server.path("ConfigMap", "c")

    applied = server.send("PATCH", path, body, content_type=content, fieldManager="stoker")
    assert applied.status == 200


def test_06_a_patch_of_plain_json_is_415(server):
    path = server.path("ConfigMap", "c")

    refused = server.send("PATCH", path, data(a="1"), fieldManager="stoker")
    assert (refused.status, refused.reason) == (415, "UnsupportedMediaType")


def test_06_broken_yaml_is_400(server):
    path = server.path("ConfigMap", "c")
    content = "application/apply-patch+yaml"

    refused = server.send("PATCH", path, b"{a: [", content_type=content, fieldManager="stoker")
    assert refused.status == 400
    assert refused.message.startswith("error decoding patch: error converting YAML to JSON: yaml: ")


def test_06_yaml_is_taken_as_well_as_json(server):
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: {server.ns}}}\n"
    body += "data: {when: 2026-11-29}\n"
    content = "application/apply-patch+yaml"
    path = server.path("ConfigMap", "c")

    refused = server.send("PATCH", path, body.encode(), content_type=content, fieldManager="s")
    assert refused.status == 201
    assert refused.data == {"when": "2026-11-29"}


def test_07_generate_name(server):
    body = server.whole("ConfigMap", {"metadata": {"generateName": "g-"}, **data(a="1")})
    content = "application/apply-patch+yaml"
    on_collection = server.send(
        "PATCH", server.path("ConfigMap"), body, content_type=content, fieldManager="stoker"
    )
    assert (on_collection.status, on_collection.reason) == (405, "MethodNotAllowed")

    applied = server.apply("ConfigMap", "c", {"metadata": {"generateName": "g-"}, **data(a="1")})
    assert applied.owners == "stoker:A{data.a metadata.generateName}"

    posted = server.post("ConfigMap", {"metadata": {"generateName": "g-"}, **data(a="1")}, by="p")
    assert posted.status == 201
    assert posted["metadata.name"].startswith("g-")
    assert len(posted["metadata.name"]) == 7
    assert posted.owners == "p:U{data. data.a metadata.generateName}"


def test_08_managed_fields_in_a_post_are_ignored(server):
    entry = {
        "manager": "stoker",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    body = {"metadata": {"name": "c", "managedFields": [entry]}, **data(a="1")}
    posted = server.post("ConfigMap", body, by="stoker")
    assert posted.owners == "stoker:U{data. data.a}"

    applied = server.apply("ConfigMap", "c", data(b="1"))
    assert applied.data == {"a": "1", "b": "1"}


def test_09_a_missing_namespace(server):
    body = server.whole("ConfigMap", {"metadata": {"namespace": "nope", "name": "x"}})
    path = server.path("ConfigMap", "x", ns="nope")
    content = "application/apply-patch+yaml"

    for query in ({}, {"dryRun": "All"}):
        applied = server.send("PATCH", path, body, content_type=content, fieldManager="s", **query)
        assert (applied.status, applied.message) == (404, 'namespaces "nope" not found')
    posted = server.send("POST", server.path("ConfigMap", ns="nope"), body)
    assert (posted.status, posted.message) == (404, 'namespaces "nope" not found')
    got = server.send("GET", path)
    assert (got.status, got.message) == (404, 'configmaps "x" not found')
    listed = server.send("GET", server.path("ConfigMap", ns="nope"))
    assert (listed.status, listed["items"]) == (200, [])


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_10_an_unknown_group_is_plain_text(server, method):
    body = {"apiVersion": "nope.dev/v1", "kind": "X", "metadata": {"name": "x"}}
    path = f"/apis/nope.dev/v1/namespaces/{server.ns}/xs/x"
    content = "application/apply-patch+yaml"

    absent = server.send(method, path, body, content_type=content, fieldManager="s")
    assert (absent.status, absent.body) == (404, "404 page not found\n")


@pytest.mark.parametrize("path", ["/apis/apps/v1/nopes/x", "/apis/apps/v9/deployments/x"])
def test_10_an_unknown_resource_of_a_known_group_is_a_status(server, path):
    absent = server.send("GET", path)

    assert (absent.status, absent.reason, absent.message) == (404, "NotFound", NOT_SERVED)


def test_11_a_dying_namespace_takes_nothing_new(server):
    held = {"metadata": {"finalizers": ["a.io/x"]}}
    server.apply("ConfigMap", "held", held)
    gone = server.delete("Namespace", server.ns)
    assert (gone.status, gone["status.phase"]) == (200, "Terminating")

    for dry in (False, True):
        refused = server.apply("ConfigMap", "new", data(a="1"), dry=dry)
        assert (refused.status, refused.reason) == (403, "Forbidden")
        assert refused.message == (
            f'configmaps "new" is forbidden: unable to create new content in namespace {server.ns}'
            " because it is being terminated"
        )
        assert refused.causes == [
            (
                "NamespaceTerminating",
                f"namespace {server.ns} is being terminated",
                "metadata.namespace",
            )
        ]
    assert server.apply("ConfigMap", "held", {**held, **data(a="1")}).status == 200


def test_11_the_servers_own_namespaces_cannot_be_deleted(server):
    refused = server.delete("Namespace", "kube-system")

    assert refused.status == 403
    assert refused.message == (
        'namespaces "kube-system" is forbidden: this namespace may not be deleted'
    )


def test_12_an_empty_apply_leaves_no_entry(server):
    name = f"{server.ns}-empty"
    made = server.apply("Namespace", name, {})
    assert (made.status, made.owners) == (201, "")

    server.patch("Namespace", name, {"metadata": {"labels": {"x": "1"}}}, by="kubectl-label")
    assert server.get("Namespace", name).owners == ""
    refused = server.apply("Namespace", name, {"metadata": {"labels": {"x": "2"}}})
    assert refused.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1:'
        " .metadata.labels.x"
    )
