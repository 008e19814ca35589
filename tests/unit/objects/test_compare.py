"""Differences between what we would send and what is live."""

import copy

import pytest
from hypothesis import given, settings

from fakes_live import applied_by, updated_by
from stoker.objects.compare import (
    Difference,
    compare,
    dotted,
    field_changes,
    keys_of,
    removals,
    value_at,
)
from stoker.objects.fieldset import fieldset_from_manifest
from stoker.objects.fieldset_trees import members
from stoker.objects.owned import our_fields, owners, schema_of
from stoker.objects.ssa import FieldConflicts
from unit.objects.manifest_strategies import BASE, deployments

US = "stoker-f1"


def deployment(container=None, **spec):
    body = copy.deepcopy(BASE)
    engine = {"name": "engine", "image": "x:1", **(container or {})}
    body["spec"].update({"template": {"spec": {"containers": [engine]}}, **spec})
    return body


def config(data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def changes(sent, live):
    found = compare(sent, live, schema_of(sent))
    return [(dotted(d.elements), d.before, d.after) for d in found.differences]


def is_synced(sent, live):
    schema = schema_of(sent)
    return not compare(sent, live, schema) and fieldset_from_manifest(sent, schema) == our_fields(
        live, US
    )


@settings(deadline=None)
@given(deployments())
def test_nothing_differs_right_after_an_apply(manifest):
    """a.3 A1: the diff after an apply is empty."""
    assert is_synced(manifest, applied_by(US, manifest))


@settings(deadline=None)
@given(deployments(), deployments(), deployments())
def test_nothing_printed_means_an_apply_changes_nothing_and_the_reverse(mine, theirs, wanted):
    """Whoever wrote before: in sync exactly when sending it would be a no-op."""
    live = applied_by("other", theirs, applied_by(US, mine), force=True)
    try:
        after = applied_by(US, wanted, live)
        conflict = False
    except FieldConflicts:
        after, conflict = live, True
    same_fields = our_fields(after, US) == our_fields(live, US)
    unchanged = not conflict and same_fields and _stored(after) == _stored(live)

    assert unchanged == is_synced(wanted, live)


def _stored(body):
    """What the server keeps: no empty list or map, no versions."""
    metadata = {
        key: item
        for key, item in body["metadata"].items()
        if key not in {"managedFields", "resourceVersion"}
    }
    return _without_empty({**body, "metadata": metadata})


def _without_empty(value):
    if isinstance(value, dict):
        kept = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ({}, [], None, "")}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


@settings(deadline=None)
@given(deployments(), deployments())
def test_what_a_write_touches_holds_every_conflict(mine, wanted):
    """Conflicts are foreseen from values and entries, never from the causes of a 409."""
    live = applied_by("other", mine)
    written = compare(wanted, live, schema_of(wanted)).written
    theirs = next(o for o in owners(live) if o.manager == "other").fields
    foreseen = sorted(path for path in members(written) if path in theirs)
    try:
        applied_by(US, wanted, live)
        met = []
    except FieldConflicts as error:
        met = sorted(c.elements for c in error.conflicts)

    assert met == foreseen


@pytest.mark.parametrize(
    ("sent", "live", "expected"),
    [
        ({"image": "x:2"}, {}, [("spec.template.spec.containers[name=engine].image", "x:1", "x:2")]),
        (
            {"env": [{"name": "A", "value": "1"}]},
            {},
            [("spec.template.spec.containers[name=engine].env", None, [{"name": "A", "value": "1"}])],
        ),
        (
            {"env": [{"name": "A"}, {"name": "B"}]},
            {"env": [{"name": "A"}]},
            [("spec.template.spec.containers[name=engine].env[name=B]", None, {"name": "B"})],
        ),
        (
            {"env": [{"name": "B"}, {"name": "A"}]},
            {"env": [{"name": "A"}, {"name": "C"}, {"name": "B"}]},
            [
                (
                    "spec.template.spec.containers[name=engine].env.(order)",
                    ["[name=A]", "[name=B]"],
                    ["[name=B]", "[name=A]"],
                )
            ],
        ),
        (
            {"args": ["--a", "1"]},
            {"args": ["--a", "2"]},
            [("spec.template.spec.containers[name=engine].args[1]", "2", "1")],
        ),
        (
            {"args": ["--a"]},
            {"args": ["--a", "2"]},
            [("spec.template.spec.containers[name=engine].args", ["--a", "2"], ["--a"])],
        ),
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}, []),
        (
            {"ports": [{"containerPort": 80, "name": "h"}]},
            {"ports": [{"containerPort": 80, "protocol": "TCP"}]},
            [
                (
                    "spec.template.spec.containers[name=engine].ports[containerPort=80,protocol=TCP].name",
                    None,
                    "h",
                )
            ],
        ),
        ({"resources": {}}, {}, []),
        ({"resources": {"limits": {}}}, {}, []),
        ({"securityContext": {"runAsNonRoot": False}}, {}, [
            ("spec.template.spec.containers[name=engine].securityContext", None, {"runAsNonRoot": False})
        ]),
    ],
    ids=[
        "scalar", "list-appears", "item-appears", "order", "item-of-atomic-list", "atomic-list",
        "defaulted-key", "inside-keyed-item", "empty-map", "empty-inside", "false-pointer",
    ],
)  # fmt: skip
def test_differences_of_a_container(sent, live, expected):
    assert expected == changes(deployment(sent), deployment(live))


def test_order_of_sets_is_compared_too():
    one, two = deployment(), deployment()
    one["metadata"]["finalizers"], two["metadata"]["finalizers"] = ["b", "a"], ["a", "c", "b"]

    assert changes(one, two) == [("metadata.finalizers.(order)", ["[a]", "[b]"], ["[b]", "[a]"])]


def test_keys_with_dots_are_bracketed():
    """ssa-facts 26: the server's own spelling is ambiguous."""
    sent, live = config({}), config({})
    sent["metadata"]["annotations"] = {"a.b/c": "1", "plain": "1"}
    live["metadata"]["annotations"] = {"a.b/c": "2", "plain": "1"}

    assert changes(sent, live) == [("metadata.annotations[a.b/c]", "2", "1")]
    assert dotted(("f:a.b",)) == "[a.b]"


def test_identity_and_status_are_not_compared():
    sent, live = deployment(), deployment()
    sent["status"] = {"replicas": 5}
    sent["metadata"]["uid"] = "x"

    assert changes(sent, live) == []


def test_fields_that_only_live_has_are_no_difference():
    """cases.md row 55: labels of other controllers are not drift."""
    live = deployment({"terminationMessagePath": "/x"})
    live["metadata"]["labels"] = {"theirs": "1"}

    assert changes(deployment(), live) == []


def test_values_of_another_shape_differ_as_a_whole():
    assert changes(config("text"), config({"a": "1"})) == [("data", {"a": "1"}, "text")]
    live = deployment()
    live["spec"]["template"]["spec"]["containers"] = "text"
    (difference,) = changes(deployment(), live)
    assert difference[0] == "spec.template.spec.containers"


def test_items_that_have_no_key_differ_as_a_whole():
    """The server refuses them; until then they must not look the same."""
    sent = deployment()
    sent["spec"]["template"]["spec"]["containers"] = ["text"]

    assert [path for path, _, _ in changes(sent, deployment())] == ["spec.template.spec.containers"]


def test_nulls_leave_maps_as_they_are():
    sent = config(None)

    assert changes(sent, config({"a": "1"})) == []


def test_what_may_be_a_default_is_not_settled():
    live = deployment()
    live["spec"]["template"]["spec"]["tolerations"] = [{"key": "a", "operator": "Equal"}]
    sent = deployment()
    sent["spec"]["template"]["spec"]["tolerations"] = [{"key": "a"}]
    found = compare(sent, live, schema_of(sent))

    assert not found
    assert not found.settled


def test_fields_newer_than_our_schema_are_not_settled():
    """A server of the next version may know them: only a dry run can tell."""
    sent, live = deployment(brandNew=True), deployment(brandNew=True)
    found = compare(sent, live, schema_of(sent))

    assert not found
    assert not found.settled
    assert changes(deployment(brandNew=1), deployment()) == [("spec.brandNew", None, 1)]


def test_lists_that_appear_empty_are_no_difference():
    sent = deployment({"env": []})

    assert changes(sent, deployment()) == []
    assert changes(deployment({"env": [{"name": "A"}]}), deployment({"env": []}))[0][0].endswith(
        "[name=A]"
    )


# ---------------------------------------------------------------------- removals


def gone(before, after, *, rivals=()):
    live = before if "managedFields" in before["metadata"] else applied_by(US, before)
    schema = schema_of(after)
    lost = our_fields(live, US).difference(fieldset_from_manifest(after, schema))
    found = removals(lost, [o.fields for o in owners(live) if o.manager in rivals], live, schema)
    return [(dotted(d.elements), d.before, d.after) for d in found]


def test_a_removed_field_is_shown():
    """cases.md row 49: the diff shows the removal."""
    assert gone(config({"a": "1", "b": "2"}), config({"a": "1"})) == [("data.b", "2", None)]


def test_a_removed_item_is_shown_once():
    before = deployment({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]})
    after = deployment({"env": [{"name": "A", "value": "1"}]})

    assert gone(before, after) == [
        (
            "spec.template.spec.containers[name=engine].env[name=B]",
            {"name": "B", "value": "2"},
            None,
        )
    ]


def test_a_shared_field_stays():
    """ssa-facts 16: what another manager holds too is not removed."""
    live = applied_by("b", config({"a": "1"}), applied_by(US, config({"a": "1", "c": "1"})))

    assert gone(live, config({"c": "1"}), rivals=("b",)) == []


def test_a_field_that_was_never_stored_is_no_removal():
    live = applied_by(US, config({"a": "1", "b": None}))
    del live["data"]["b"]

    assert gone(live, config({"a": "1"})) == []


# ------------------------------------------------------------------------- print


def test_changes_are_masked_for_print():
    secret = field_changes("Secret", [Difference(("f:data", "f:x"), "YQ==", "Yg==")])
    (change,) = secret

    assert (change.path, change.before, change.after) == ("data.x", "***", "*** (changed)")


def test_a_secret_inside_equal_looking_text_still_shows_as_changed():
    elements = ("f:spec", "f:args", "i:0")
    (change,) = field_changes("Deployment", [Difference(elements, "--token=a", "--token=b")])

    assert change.before == "--token=***"
    assert change.after == "--token=*** (changed)"


def test_a_secret_after_its_flag_is_compared_with_its_neighbours():
    sent, live = (
        deployment({"args": ["--api-key", "new"]}),
        deployment({"args": ["--api-key", "old"]}),
    )
    (change,) = field_changes("Deployment", compare(sent, live, schema_of(sent)).differences)

    assert change.path.endswith(".args")
    assert "old" not in str(change.before)
    assert "new" not in str(change.after)


def test_an_appearing_or_removed_secret_is_masked_on_its_side_only():
    (came,) = field_changes("Secret", [Difference(("f:data", "f:x"), None, "YQ==")])
    (went,) = field_changes("Secret", [Difference(("f:data", "f:x"), "YQ==", None)])

    assert (came.before, came.after) == (None, "***")
    assert (went.before, went.after) == ("***", None)


# ------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (
            ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"engine"}', "f:image"),
            "x:1",
        ),
        (("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"none"}'), None),
        (("f:spec", "f:template", "f:spec", "f:containers", "f:x"), None),
        (("f:metadata", "f:finalizers", 'v:"a"'), "a"),
        (("f:metadata", "f:finalizers", 'v:"b"'), None),
        (("f:metadata", "f:name", "i:0"), None),
        (("f:spec", "f:ports", "i:1"), 2),
        (("f:spec", "f:ports", "i:9"), None),
        (("f:metadata", "f:finalizers", 'k:{"name":"b"}'), None),
    ],
)
def test_values_are_found_by_path(path, value):
    body = deployment(ports=[1, 2])
    body["metadata"]["finalizers"] = ["a"]

    assert value == value_at(body, path, schema_of(body).root)


def test_a_defaulted_key_is_found_by_its_default():
    body = deployment({"ports": [{"containerPort": 80, "name": "h"}]})
    path = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"engine"}', "f:ports",
            'k:{"containerPort":80,"protocol":"TCP"}', "f:name")  # fmt: skip

    assert value_at(body, path, schema_of(body).root) == "h"


def test_elements_read_as_people_write_them():
    path = ("f:spec", 'k:{"a":1,"b":"x"}', 'v:"y"', "i:3")

    assert dotted(path) == "spec[a=1,b=x][y][3]"
    assert keys_of(path) == ("spec", "[a=1,b=x]", "[y]", "[3]")


def test_updates_by_others_show_as_differences():
    live = updated_by("ed", applied_by(US, config({"a": "1"})), {"data": {"a": "2"}})

    assert changes(config({"a": "1"}), live) == [("data.a", "2", "1")]
