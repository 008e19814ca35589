"""The conflict table: what Git takes back and what it leaves alone."""

import copy

import pytest
from hypothesis import given, settings

from fakes_live import applied_by, updated_by
from stoker.model.refs import ref_from_manifest
from stoker.objects.conflicts import (
    AdoptionRequired,
    adoption_required,
    drop,
    is_persons_tool,
    rivals_of,
    settle,
)
from stoker.objects.fieldset import fieldset_from_manifest
from stoker.objects.names import OWNER
from stoker.objects.owned import owners, schema_of
from stoker.objects.ssa import FieldConflicts
from unit.objects.manifest_strategies import BASE, deployments

US = "stoker-f1"


def deployment(image="x:1", replicas=2):
    body = copy.deepcopy(BASE)
    body["spec"]["replicas"] = replicas
    body["spec"]["template"] = {"spec": {"containers": [{"name": "c", "image": image}]}}
    return body


def config(data, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", **metadata},
        "data": data,
    }


IMAGE = "spec.template.spec.containers[name=c].image"


def settled(payload, live, **options):
    return settle(payload, live, US, schema_of(payload), **options)


@pytest.mark.parametrize(
    "manager",
    [
        "kubectl",
        "kubectl-edit",
        "kubectl-client-side-apply",
        "helm",
        "kluctl",
        "kluctl-x",
        "rancher",
        "k9s",
        "before-first-apply",
    ],
)
def test_a_persons_tool_loses_the_field_to_git(manager):
    """a.3 A8: a manual edit is reverted."""
    live = updated_by(manager, applied_by(US, deployment()), deployment("x:9"))
    found = settled(deployment(), live)

    assert is_persons_tool(manager)
    assert found.taken == ((IMAGE, manager),)
    assert found.left == ()
    assert found.payload == deployment()


@pytest.mark.parametrize(
    "manager",
    ["vpa", "istio", "terraform", "helm-controller", "kustomize-controller", "my-kubectl"],
)
def test_any_other_manager_keeps_the_field(manager):
    """a.3 A5: never taken silently."""
    live = updated_by(manager, applied_by(US, deployment()), deployment("x:9"))
    found = settled(deployment(), live)

    assert not is_persons_tool(manager)
    assert found.left == ((IMAGE, manager),)
    assert found.taken == ()
    assert "image" not in found.payload["spec"]["template"]["spec"]["containers"][0]
    assert found.payload["spec"]["template"]["spec"]["containers"][0]["name"] == "c"


def test_our_own_name_under_another_operation_is_taken_back():
    """ssa-facts 19: our own Update entry counts as another owner."""
    live = updated_by(US, {"metadata": {}, **config({"a": "2"})}, config({"a": "2"}))
    live = updated_by(US, applied_by("x", config({"b": "1"})), {"data": {"a": "2"}})
    found = settled(config({"a": "1"}), live)

    assert found.taken == (("data.a", US),)


def test_our_own_name_through_scale_is_taken_back():
    """ssa-facts 46."""
    live = updated_by(
        US, applied_by(US, deployment()), {"spec": {"replicas": 5}}, subresource="scale"
    )
    found = settled(deployment(), live)

    assert found.taken == (("spec.replicas", f"{US} (scale)"),)


def test_a_count_in_the_payload_is_gits_whoever_scaled():
    """ssa-facts 48: a deleted autoscaler's entry stays for ever; diff has asked the facts."""
    live = updated_by(
        "kube-controller-manager",
        applied_by(US, deployment()),
        {"spec": {"replicas": 5}},
        subresource="scale",
    )

    assert settled(deployment(), live).taken == (
        ("spec.replicas", "kube-controller-manager (scale)"),
    )


def test_a_count_that_facts_gave_away_is_never_taken():
    """An autoscaler that moved between our look and our write keeps its count."""
    live = updated_by(
        "kube-controller-manager",
        applied_by(US, deployment()),
        {"spec": {"replicas": 5}},
        subresource="scale",
    )
    found = settled(deployment(), live, left_alone={"spec.replicas"})

    assert found.left == (("spec.replicas", "kube-controller-manager (scale)"),)
    assert "replicas" not in found.payload["spec"]


def test_a_field_of_several_owners_is_taken_only_if_all_give_way():
    live = updated_by("kubectl-edit", applied_by(US, config({"a": "1"})), {"data": {"a": "2"}})
    live = applied_by("istio", config({"a": "2"}), live)
    found = settled(config({"a": "1"}), live)

    assert found.left == (("data.a", "istio"),)
    assert found.payload == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def test_equal_values_are_no_conflict():
    """ssa-facts 18, 75: co-owned, also where only the spelling differs."""
    sent, theirs = deployment(), deployment()
    sent["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m"}}
    theirs["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    found = settled(sent, applied_by("istio", theirs))

    assert (found.taken, found.left) == ((), ())


def test_an_empty_map_of_others_does_not_keep_our_fields_out():
    """ssa-facts 27: a stored null conflicts, though nobody loses a value."""
    live = applied_by("b", config({}))
    del live["data"]
    found = settled(config({"a": "1"}), live)

    assert found.taken == (("data", "b"),)
    assert found.payload == config({"a": "1"})


def test_an_object_without_entries_gives_everything_back():
    """ssa-facts 21."""
    found = settled(config({"a": "1"}), config({"a": "2"}))

    assert found.taken == (("data.a", "before-first-apply"),)


@settings(deadline=None)
@given(deployments(), deployments())
def test_what_is_left_after_settling_does_not_conflict(theirs, mine):
    """One forced request is enough where people typed, none where others own."""
    live = applied_by("istio", theirs)
    found = settled(mine, live)

    assert found.taken == ()
    after = applied_by(US, found.payload, live)
    assert {**after, "metadata": 0} == {
        **applied_by(US, found.payload, live, force=True),
        "metadata": 0,
    }


@settings(deadline=None)
@given(deployments(), deployments())
def test_what_a_person_typed_is_exactly_what_is_forced(theirs, mine):
    live = applied_by("kubectl", theirs)
    found = settled(mine, live)
    try:
        applied_by(US, mine, live)
        met = 0
    except FieldConflicts as error:
        met = len({c.elements for c in error.conflicts})

    assert met == len(found.taken)
    assert found.payload == mine


@settings(deadline=None)
@given(deployments())
def test_dropping_a_field_leaves_all_others(manifest):
    schema = schema_of(manifest)
    fields = fieldset_from_manifest(manifest, schema)
    for path in fields.elements():
        if path[-1] in {"f:name", "f:containerPort", "f:protocol"}:
            continue  # what names an item has one value, so it never conflicts
        left = fieldset_from_manifest(drop(manifest, path, schema.root), schema)
        inside = {other for other in fields.elements() if other[: len(path)] == path}
        assert not inside & set(left.elements())
        assert set(left.elements()) >= {p for p in fields.elements() if p not in inside}


def test_dropping_the_last_field_of_a_map_drops_the_map():
    """An emptied map would be owned as itself."""
    schema = schema_of(config({}))

    assert drop(config({"a": "1"}), ("f:data", "f:a"), schema.root) == {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
    }  # fmt: skip
    assert drop({"a": 1}, ("f:a",), schema.root) == {}


@pytest.mark.parametrize(
    "path",
    [
        ("f:data", "f:none"),
        ("f:none",),
        ("f:data", "f:a", "f:deeper"),
        ("f:data", 'k:{"name":"x"}'),
    ],
)
def test_dropping_what_is_not_there_changes_nothing(path):
    body = config({"a": "1"})

    assert drop(body, path, schema_of(body).root) == body


def test_items_without_a_key_are_left_alone():
    body = deployment()
    body["spec"]["template"]["spec"]["containers"].append("text")
    path = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"c"}', "f:image")
    left = drop(body, path, schema_of(body).root)

    assert left["spec"]["template"]["spec"]["containers"] == [{"name": "c"}, "text"]


def test_dropping_the_only_item_drops_the_list():
    body = deployment()
    body["metadata"]["finalizers"] = ["a"]
    left = drop(body, ("f:metadata", "f:finalizers", 'v:"a"'), schema_of(body).root)

    assert "finalizers" not in left["metadata"]


def test_rivals_are_everyone_but_our_own_apply():
    live = updated_by(US, applied_by(US, config({"a": "1"})), {"data": {"b": "1"}})

    assert [(o.manager, o.operation) for o in rivals_of(live, US)] == [(US, "Update")]


def test_adoption_names_who_owns_the_object():
    live = updated_by("ed", applied_by("terraform", config({"a": "1"})), {"data": {"b": "1"}})
    error = adoption_required(ref_from_manifest(live), live)

    assert isinstance(error, AdoptionRequired)
    assert error.code == "adoption-required"
    assert "ed, terraform" in error.message
    assert len(owners(live)) == 2


def test_adoption_names_the_other_fleets_mark():
    live = applied_by(
        "stoker-f2", config({"a": "1"}, annotations={OWNER: "f2/Bundle.llm.b//ConfigMap//c"})
    )

    assert "owner mark f2/Bundle.llm.b" in adoption_required(ref_from_manifest(live), live).message
