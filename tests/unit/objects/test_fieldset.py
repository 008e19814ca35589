"""Field sets: reading and writing fieldsV1, the laws of sets, and what a manifest owns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.objects.fieldset import (
    EMPTY,
    FieldSet,
    element_text,
    fieldset_from_manifest,
    parse_fields_v1,
    path_text,
)
from stoker.objects.fieldset_trees import tree_from_paths
from stoker.objects.fieldset_walk import with_named_fields
from stoker.objects.schema_table import (
    LIST,
    MAP,
    ListSchema,
    known_kinds,
    metadata_type,
    schema_for,
)
from stoker.objects.ssa_structural import schema_from_crd

DEPLOYMENT = schema_for("apps", "Deployment")
CONFIG_MAP = schema_for("", "ConfigMap")


def deployment(container=None, **spec):
    containers = [{"name": "c", "image": "x:1", **(container or {})}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n"},
        "spec": {"template": {"spec": {"containers": containers, **spec.pop("pod", {})}}, **spec},
    }


def owned(manifest, schema=DEPLOYMENT, **options):
    return set(fieldset_from_manifest(manifest, schema, **options).paths())


# ------------------------------------------------------------------------- fieldsV1


def test_fields_v1_survives_a_round_trip():
    fields = {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}},
    }

    assert parse_fields_v1(fields).to_v1() == fields


def test_none_is_the_empty_set():
    assert parse_fields_v1(None) == EMPTY
    assert not EMPTY


def test_to_v1_is_a_copy():
    fields = parse_fields_v1({"f:a": {"f:b": {}}})
    fields.to_v1()["f:a"].clear()

    assert fields.to_v1() == {"f:a": {"f:b": {}}}


def test_a_field_set_cannot_be_changed():
    with pytest.raises(AttributeError):
        EMPTY.tree = {}


def test_paths_are_spelled_and_sorted_as_the_server_does():
    fields = parse_fields_v1(
        {
            "f:spec": {
                "f:set": {'v:"a"': {}, "v:1": {}, "v:true": {}},
                "f:list": {'k:{"b":"x","a":1}': {".": {}, "f:v": {}}},
                "f:at": {"i:3": {}, "i:12": {}},
            }
        }
    )

    assert fields.paths() == (
        ".spec.at[3]",
        ".spec.at[12]",
        '.spec.list[a=1,b="x"]',
        '.spec.list[a=1,b="x"].v',
        ".spec.set[=1]",
        '.spec.set[="a"]',
        ".spec.set[=true]",
    )


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("f:a.b/c", ".a.b/c"),
        ('k:{"name":"c"}', '[name="c"]'),
        ('v:"x"', '[="x"]'),
        ("i:4", "[4]"),
    ],
)
def test_elements_are_spelled(element, text):
    assert element_text(element) == text
    assert path_text((element, element)) == text * 2


def test_a_field_set_prints_its_paths():
    assert repr(parse_fields_v1({"f:a": {"f:b": {}}})) == "FieldSet(.a.b)"


def test_shared_branches_are_joined_as_they_are():
    branch: dict[str, Any] = {"f:b": {}}
    one, two = FieldSet({"f:a": branch}), FieldSet({"f:a": branch, "f:c": {}})

    assert one.union(two).paths() == (".c", ".a.b")


def test_named_fields_of_the_empty_set_are_none():
    assert with_named_fields({}, DEPLOYMENT.root) == {}


def test_membership_asks_for_the_exact_path():
    fields = parse_fields_v1({"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}})

    assert ("f:a",) in fields
    assert ("f:a", "f:b") in fields
    assert ("f:c",) not in fields
    assert ("f:c", "f:nope") not in fields
    assert () not in fields


# ----------------------------------------------------------------------------- laws

PATHS = st.lists(st.sampled_from(["f:a", "f:b", "f:c"]), min_size=1, max_size=4).map(tuple)
SETS = st.lists(PATHS, max_size=12).map(lambda paths: FieldSet(tree_from_paths(paths)))


@given(st.lists(PATHS, max_size=12))
def test_a_set_has_the_paths_it_was_made_of(paths):
    assert set(paths) == elements(FieldSet(tree_from_paths(paths)))


def elements(fields):
    return set(fields.elements())


@given(SETS, SETS)
def test_union_difference_and_intersection_are_those_of_sets_of_paths(one, two):
    assert elements(one) | elements(two) == elements(one.union(two))
    assert elements(one) - elements(two) == elements(one.difference(two))
    assert elements(one) & elements(two) == elements(one.intersection(two))
    assert (elements(one) <= elements(two)) == one.issubset(two)


@given(SETS, SETS)
def test_equal_paths_make_equal_sets(one, two):
    """Whatever order they came in, so that fingerprints compare."""
    joined, turned = one.union(two), two.union(one)

    assert joined == turned
    assert hash(joined) == hash(turned)
    assert one.union(one) == one
    assert (one == two) == (elements(one) == elements(two))


@given(SETS, SETS)
def test_without_below_removes_whole_branches(one, two):
    expected = {
        path for path in elements(one) if not any(path[: len(cut)] == cut for cut in elements(two))
    }

    assert expected == elements(one.without_below(two))


@given(SETS)
def test_reading_what_was_written_gives_the_same_set(fields):
    assert parse_fields_v1(fields.to_v1()) == fields


# ------------------------------------------------------------------ from a manifest


def test_identity_and_status_are_never_owned():
    """ssa-facts rule 2."""
    manifest = deployment(replicas=2)
    manifest["metadata"] |= {"uid": "u", "resourceVersion": "1", "creationTimestamp": None}
    manifest["status"] = {"replicas": 1}
    paths = owned(manifest)

    assert ".spec.replicas" in paths
    assert not any(p.startswith((".metadata", ".status", ".apiVersion", ".kind")) for p in paths)


def test_a_template_owns_its_null_creation_timestamp():
    manifest = deployment()
    manifest["spec"]["template"]["metadata"] = {"creationTimestamp": None}

    assert ".spec.template.metadata.creationTimestamp" in owned(manifest)


def test_status_is_owned_through_the_status_subresource():
    manifest = {"status": {"replicas": 1}}

    assert owned(manifest, subresource="status") == {".status.replicas"}


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"args": []}, ".args"),
        ({"resources": {}}, ".resources"),
        ({"env": [{"name": "A", "value": ""}]}, '.env[name="A"].value'),
        ({"args": ["a"]}, ".args"),
        ({"ports": [{"containerPort": 80}]}, '.ports[containerPort=80,protocol="TCP"]'),
        ({"resources": {"limits": {"cpu": 1}}}, ".resources.limits.cpu"),
        ({"tty": None}, ".tty"),
    ],
    ids=["empty atomic list", "empty map", "empty text", "atomic", "port", "quantity", "null"],
)
def test_what_counts_as_owned(part, path):
    """ssa-facts rows 66, 72, 73, 75."""
    assert f'.spec.template.spec.containers[name="c"]{path}' in owned(deployment(part))


@pytest.mark.parametrize("part", [{"env": []}, {"ports": []}, {"volumeMounts": []}])
def test_empty_keyed_lists_are_not_owned(part):
    """ssa-facts row 73."""
    assert owned(deployment(part)) == owned(deployment())


def test_a_defaulted_key_names_the_item_but_is_not_owned():
    """ssa-facts row 66."""
    paths = owned(deployment({"ports": [{"containerPort": 80}]}))

    assert not any(path.endswith(".protocol") for path in paths)


def test_atomic_maps_are_one_field():
    """ssa-facts row 68."""
    paths = owned(
        deployment(selector={"matchLabels": {"a": "b"}}, pod={"nodeSelector": {"x": "y"}})
    )

    assert {".spec.selector", ".spec.template.spec.nodeSelector"} <= paths


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({"data": {"a": "1"}}, {".data.a"}),
        ({"data": {}}, {".data"}),
        ({"data": None}, {".data"}),
        ({"data": {"a": None}}, {".data.a"}),
        ({"metadata": {"labels": {}}}, {".metadata.labels"}),
        ({"metadata": {"finalizers": ["a/b"]}}, {'.metadata.finalizers[="a/b"]'}),
        ({"metadata": {"generateName": "g-"}}, {".metadata.generateName"}),
        ({"metadata": {"ownerReferences": [{"uid": "u"}]}}, {'.metadata.ownerReferences[uid="u"]'}),
        ({}, set()),
    ],
)
def test_config_maps(manifest, expected):
    assert owned(manifest, CONFIG_MAP) == expected


def test_repeated_items_are_owned_as_one_path():
    manifest = {"metadata": {"finalizers": ["a/b", "a/b"]}}

    assert owned(manifest, CONFIG_MAP) == {'.metadata.finalizers[="a/b"]'}


def test_a_strange_kind_has_granular_maps_and_atomic_lists():
    """As a custom resource without list types (ssa-facts row 54), all its keys declared."""
    schema = schema_for("nope.dev", "Nope")
    manifest = {"metadata": {"labels": {"a": "b"}}, "spec": {"a": {"b": 1}, "l": [{"c": 1}]}}

    assert not schema.exact
    assert owned(manifest, schema) == {".metadata.labels.a", ".spec.a.b", ".spec.l"}


# --------------------------------------------------------------------------- schemas


def test_the_table_knows_the_kinds_stoker_makes():
    kinds = {(group, kind) for group, _, kind in known_kinds()}

    assert {
        ("", "ConfigMap"),
        ("", "Service"),
        ("apps", "Deployment"),
        ("policy", "PodDisruptionBudget"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    } <= kinds
    assert schema_for("apps", "Deployment", "v1").exact
    assert not schema_for("apps", "Deployment", "v1beta1").exact


def test_every_kind_shares_one_metadata_type():
    for group, version, kind in known_kinds():
        root = schema_for(group, kind, version).root

        assert root.fields["metadata"] is metadata_type()


def test_every_keyed_list_has_keys_its_items_declare():
    seen = set()

    def walk(kind):
        if id(kind) in seen:
            return
        seen.add(id(kind))
        if kind.shape == LIST and kind.keys:
            assert kind.element is not None
            assert set(kind.keys) <= set(kind.element.fields)
        for member in kind.fields.values():
            walk(member)
        if kind.element is not None:
            walk(kind.element)

    for group, version, kind in known_kinds():
        walk(schema_for(group, kind, version).root)
    assert len(seen) > 500


CRD: dict[str, Any] = {
    "spec": {
        "group": "a.dev",
        "names": {"kind": "A"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "set": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "keyed": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name", "kind"],
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "name": {"type": "string"},
                                                "kind": {"type": "string", "default": "K"},
                                            },
                                        },
                                    },
                                    "plain": {"type": "array", "items": {"type": "integer"}},
                                    "whole": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": {"type": "boolean"},
                                    },
                                    "any": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                    },
                                    "share": {"x-kubernetes-int-or-string": True},
                                    "free": {"x-kubernetes-preserve-unknown-fields": True},
                                    "rate": {"type": "number"},
                                    "on": {"type": "boolean"},
                                    "object": {
                                        "type": "object",
                                        "x-kubernetes-embedded-resource": True,
                                        "properties": {"spec": {"type": "object"}},
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    }
}


def crd_schema(**version) -> ListSchema:
    served = {**CRD["spec"]["versions"][0], **version}
    schema = schema_from_crd({"spec": {**CRD["spec"], "versions": [served]}})
    assert schema is not None
    return schema


def test_a_crd_says_how_its_lists_merge():
    manifest = {
        "spec": {
            "set": ["x"],
            "keyed": [{"name": "n"}],
            "plain": [1],
            "whole": {"a": True},
            "any": {"b": {"c": [1]}},
            "share": "10%",
            "free": "x",
            "rate": 1.5,
            "on": True,
            "object": {"kind": "B", "spec": {}},
        }
    }

    assert owned(manifest, crd_schema()) == {
        '.spec.set[="x"]',
        '.spec.keyed[kind="K",name="n"]',
        '.spec.keyed[kind="K",name="n"].name',
        ".spec.plain",
        ".spec.whole",
        ".spec.any.b",
        ".spec.any.b.c",
        ".spec.share",
        ".spec.free",
        ".spec.rate",
        ".spec.on",
        ".spec.object.kind",
        ".spec.object.spec",
    }


def test_a_crd_without_a_status_subresource_owns_status():
    manifest = {"status": {"a": 1}}
    properties = {"status": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}

    assert owned(manifest, crd_schema(schema=schema)) == {".status.a"}
    with_status = crd_schema(schema=schema, subresources={"status": {}})
    assert owned(manifest, with_status) == set()


def test_a_version_that_is_not_served_has_no_schema():
    assert schema_from_crd(CRD, "v2") is None
    assert schema_from_crd({}) is None


def test_fields_a_type_declares_are_found_before_its_element():
    root = schema_for("apps", "Deployment").root

    assert root.shape == MAP
    assert root.member("spec") is root.fields["spec"]
    assert root.member("nope") is None
