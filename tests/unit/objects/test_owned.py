"""The projection of a live object onto the fields of our entry."""

import copy

from hypothesis import given, settings

from fakes_live import applied_by, updated_by
from stoker.objects.fieldset import FieldSet, fieldset_from_manifest
from stoker.objects.owned import our_fields, owned, owners, schema_of
from unit.objects.manifest_strategies import deployments

US = "stoker-f1"


def deployment(**spec):
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "containers": [
                {
                    "name": "engine",
                    "image": "x:1",
                    "args": ["--a", "1"],
                    "env": [{"name": "A", "value": "1"}],
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "1000m"}},
                }
            ]
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "llm", "labels": {"app": "x"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "x"}},
            "template": template,
            **spec,
        },
    }


def config(data, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "llm", **metadata},
        "data": data,
    }


@settings(deadline=None)
@given(deployments())
def test_what_we_own_is_what_we_sent(manifest):
    """Nothing else touched the object: the projection has exactly the fields of our entry."""
    live = applied_by(US, manifest)
    schema = schema_of(manifest)

    assert fieldset_from_manifest(owned(live, US), schema) == our_fields(live, US)
    assert fieldset_from_manifest(manifest, schema) == our_fields(live, US)


@settings(deadline=None)
@given(deployments(), deployments())
def test_sending_the_projection_again_changes_nothing(mine, theirs):
    """The frozen template must not restart a pod, nor take or give up a field."""
    live = applied_by("other", theirs, applied_by(US, mine), force=True)
    again = applied_by(US, owned(live, US), live)

    assert our_fields(live, US) == our_fields(again, US)
    before, after = copy.deepcopy(live), copy.deepcopy(again)
    for body in (before, after):
        body["metadata"].pop("resourceVersion")
    assert before == after


@settings(deadline=None)
@given(deployments(), deployments())
def test_the_projection_is_idempotent_and_leaves_live_alone(mine, theirs):
    live = applied_by("other", theirs, applied_by(US, mine), force=True)
    untouched = copy.deepcopy(live)
    once = owned(live, US)

    assert untouched == live
    managed = {
        **once,
        "metadata": {**once["metadata"], "managedFields": live["metadata"]["managedFields"]},
    }
    assert once == owned(managed, US)


def test_fields_of_others_are_left_out():
    live = updated_by("ed", applied_by(US, config({"a": "1"})), {"data": {"b": "2"}})

    assert owned(live, US) == config({"a": "1"})
    assert owned(live, "nobody") == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "llm"},
    }


def test_a_field_that_somebody_took_is_not_ours_any_more():
    live = updated_by("ed", applied_by(US, config({"a": "1", "b": "1"})), {"data": {"a": "2"}})

    assert owned(live, US) == config({"b": "1"})


def test_fields_the_server_does_not_store_come_back_empty():
    """ssa-facts 66 and 73: owned, but gone from the object."""
    body = deployment()
    body["metadata"]["labels"] = {}
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "A", "value": ""}]
    container["args"] = []
    container["resources"] = {}
    body["spec"]["template"]["spec"]["nodeSelector"] = {}
    body["spec"]["replicas"] = None
    body["spec"]["template"]["spec"]["hostNetwork"] = False
    body["spec"]["minReadySeconds"] = 0
    live = applied_by(US, body)
    stored = live["spec"]["template"]["spec"]
    del live["metadata"]["labels"], stored["nodeSelector"], stored["hostNetwork"]
    del stored["containers"][0]["args"], stored["containers"][0]["env"][0]["value"]
    del live["spec"]["minReadySeconds"]
    live["spec"]["replicas"] = 1
    found = owned(live, US)

    assert found["metadata"]["labels"] == {}
    assert found["spec"]["template"]["spec"]["nodeSelector"] == {}
    assert found["spec"]["template"]["spec"]["hostNetwork"] is False
    assert found["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "A", "value": ""}]
    assert found["spec"]["template"]["spec"]["containers"][0]["args"] == []
    assert found["spec"]["minReadySeconds"] == 0
    assert fieldset_from_manifest(found, schema_of(found)) == our_fields(live, US)


def test_keys_that_the_server_filled_in_are_not_sent_again():
    """ssa-facts 66: protocol names the port but is not owned."""
    live = applied_by(US, deployment())
    live["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"

    container = owned(live, US)["spec"]["template"]["spec"]["containers"][0]
    assert container["ports"] == [{"containerPort": 80}]


def test_a_map_owned_as_itself_is_not_filled_with_what_others_put_in():
    live = applied_by(US, config({}))
    live = updated_by("ed", live, {"data": {"b": "2"}})

    assert owned(live, US)["data"] == {}


def custom(spec):
    return {
        "apiVersion": "example.org/v1",
        "kind": "Gizmo",
        "metadata": {"name": "g"},
        "spec": spec,
    }


def test_custom_resources_are_cut_by_the_entry_alone():
    """Keyed lists, sets and atomic maps of a CRD show in the entry, not in our schema."""
    live = custom(
        {
            "byname": [{"name": "a", "v": 1}, {"name": "b", "v": 2}],
            "set": ["x", "y"],
            "map": {"k": 1},
        }
    )
    live["metadata"]["managedFields"] = [
        {
            "manager": US,
            "operation": "Apply",
            "apiVersion": "example.org/v1",
            "fieldsV1": {
                "f:spec": {
                    "f:byname": {'k:{"name":"b"}': {".": {}, "f:v": {}}},
                    "f:set": {'v:"y"': {}},
                    "f:map": {},
                    "f:gone": {},
                }
            },
        }
    ]

    assert owned(live, US)["spec"] == {
        "byname": [{"name": "b", "v": 2}],
        "set": ["y"],
        "map": {"k": 1},
        "gone": None,
    }


def test_lists_that_are_no_lists_any_more_give_nothing():
    live = custom({"byname": "text", "m": 5})
    live["metadata"]["managedFields"] = [
        {
            "manager": US,
            "operation": "Apply",
            "fieldsV1": {"f:spec": {"f:byname": {'k:{"name":"b"}': {}}, "f:m": {"f:x": {}}}},
        }
    ]

    assert owned(live, US)["spec"] == {"byname": [], "m": {"x": None}}


def test_items_that_have_no_key_are_passed_over():
    live = applied_by(US, deployment())
    live["spec"]["template"]["spec"]["containers"].append("text")

    (only,) = owned(live, US)["spec"]["template"]["spec"]["containers"]
    assert only["name"] == "engine"


def test_an_object_without_entries_belongs_to_before_first_apply():
    """ssa-facts 21."""
    (only,) = owners(config({"a": "1"}))

    assert only.manager == "before-first-apply"
    assert ("f:data", "f:a") in only.fields
    assert our_fields(config({"a": "1"}), US) == FieldSet()


def test_owners_are_named_with_their_subresource():
    live = updated_by(
        "keda", applied_by(US, deployment()), {"spec": {"replicas": 5}}, subresource="scale"
    )

    assert [str(owner) for owner in owners(live)] == [US, "keda (scale)"]
    assert [owner.is_apply for owner in owners(live)] == [True, False]
