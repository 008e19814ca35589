import json

import pytest

from stoker.objects import names
from stoker.observe.keys import NAMESPACES, NODES, PODS, WatchKey
from stoker.observe.projection import entry_from
from unit.observe.observe_builders import FLEET, LLAMA, deployment, manifest, marked, pod

MAPS = WatchKey("", "ConfigMap", "v1")
SECRETS = WatchKey("", "Secret", "v1")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def config(**metadata):
    return manifest("v1", "ConfigMap", "a", "llm", metadata=metadata, data={"k": "v"})


def kept(raw, key=MAPS):
    return json.loads(entry_from(raw, key, FLEET).body)


def test_our_own_object_is_kept_whole_with_managed_fields():
    raw = marked(config(managedFields=[{"manager": "x"}], uid="u", resourceVersion="7"))

    entry = entry_from(raw, MAPS, FLEET)

    assert raw == json.loads(entry.body)
    assert (entry.unit, entry.whole, entry.uid, entry.resource_version) == (LLAMA, True, "u", "7")


def test_of_a_stranger_only_the_metadata_is_kept():
    raw = config(labels={"a": "b"}, managedFields=[{"manager": "x"}], uid="u")

    assert kept(raw) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "llm", "uid": "u", "labels": {"a": "b"}},
    }


def test_a_copy_of_what_kubectl_applied_is_never_kept_of_strangers():
    raw = config(annotations={LAST_APPLIED: '{"data":{"password":"x"}}', "b": "c"})

    assert kept(raw)["metadata"]["annotations"] == {"b": "c"}


def test_an_object_that_we_manage_is_whole_although_its_mark_was_taken_off():
    """Else restoring the mark could not be told apart from adopting a stranger."""
    raw = config(managedFields=[{"manager": names.manager_of(FLEET)}])

    entry = entry_from(raw, MAPS, FLEET)

    assert (entry.whole, entry.unit) == (True, None)


@pytest.mark.parametrize("kind", ["another fleet", "copied"])
def test_marks_of_other_fleets_and_copied_marks_prove_nothing(kind):
    """cases.md row 71: somebody copies our marks to other objects."""
    if kind == "another fleet":
        raw = marked(config(), fleet="ffffffff")
    else:
        raw = marked(config())
        raw = {**raw, "metadata": {**raw["metadata"], "name": "b"}}

    entry = entry_from(raw, MAPS, FLEET)

    assert entry.owner != ""
    assert (entry.unit, entry.whole) == (None, False)


def test_not_even_our_own_secrets_are_kept_whole():
    """Design section 8: secrets are never cached whole."""
    raw = marked(manifest("v1", "Secret", "s", "llm", data={"password": "Y2FuYXJ5"}))
    raw["metadata"]["annotations"][LAST_APPLIED] = "Y2FuYXJ5"

    entry = entry_from(raw, SECRETS, FLEET)

    assert b"Y2FuYXJ5" not in entry.body
    assert entry.unit == LLAMA


def test_equal_objects_give_equal_bytes_whatever_their_key_order():
    one = marked(config(labels={"a": "1", "b": "2"}))
    other = {key: one[key] for key in reversed(one)}

    assert entry_from(one, MAPS, FLEET).body == entry_from(other, MAPS, FLEET).body


def test_list_items_without_kind_get_the_kind_that_was_asked_for():
    raw = config()
    del raw["apiVersion"], raw["kind"]

    assert kept(raw)["kind"] == "ConfigMap"


def test_a_deployment_without_our_mark_has_no_facts():
    raw = deployment()
    raw["metadata"]["annotations"][names.OWNER] = "other"

    assert entry_from(raw, WatchKey("apps", "Deployment", "v1"), FLEET).facts is None


@pytest.mark.parametrize(
    ("raw", "phase"),
    [
        (manifest("v1", "Namespace", "a", status={"phase": "Active"}), "Active"),
        (manifest("v1", "Namespace", "a", metadata={"deletionTimestamp": "t"}), "Terminating"),
        (manifest("v1", "Namespace", "a"), "Active"),
    ],
    ids=["active", "deleted but not yet told so", "without status"],
)
def test_a_namespace_says_its_phase(raw, phase):
    assert entry_from(raw, NAMESPACES, FLEET).facts == phase


@pytest.mark.parametrize("key", [PODS, NODES], ids=lambda key: key.kind)
def test_objects_of_odd_shape_are_read_without_an_error(key):
    raw = {"metadata": {"name": "x", "labels": None}, "spec": None, "status": {"conditions": "?"}}

    assert entry_from(raw, key, FLEET).name == "x"


def test_pods_of_strangers_cost_little():
    raw = pod(metadata={"annotations": {"big": "x"}}, spec={"volumes": ["x" * 5000]})

    assert len(entry_from(raw, PODS, FLEET).body) < 300
