"""`podTemplate` merges as `kubectl patch` merges into pods."""

from __future__ import annotations

import copy

import pytest

from stoker.errors import BadInput, SourceLocation
from stoker.render.merge import merge_pod_template

AT = SourceLocation("models/a.yaml", 9, 3)

TEMPLATE = {
    "metadata": {"labels": {"a": "1"}},
    "spec": {
        "containers": [
            {
                "name": "engine",
                "args": ["--x"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"containerPort": 8000, "name": "http"}],
                "volumeMounts": [{"mountPath": "/cache", "name": "cache"}],
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
        "tolerations": [{"key": "old"}],
        "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "shm", "emptyDir": {}}],
        "securityContext": {"runAsUser": 0},
    },
}


def merged(patch):
    before = copy.deepcopy(TEMPLATE)
    result = merge_pod_template(TEMPLATE, patch, AT)
    assert before == TEMPLATE
    return result


def engine(patch):
    return merged({"spec": {"containers": [{"name": "engine", **patch}]}})["spec"]["containers"][0]


def test_an_empty_patch_changes_nothing():
    assert TEMPLATE == merged({})


def test_containers_merge_by_name_and_keep_what_is_not_named():
    container = engine({"image": "x"})

    assert ("x", ["--x"]) == (container["image"], container["args"])


def test_a_new_container_comes_after_the_others():
    containers = merged({"spec": {"containers": [{"name": "side", "image": "y"}]}})["spec"][
        "containers"
    ]

    assert ["engine", "side"] == [container["name"] for container in containers]


def test_environment_merges_by_name_in_place():
    env = engine({"env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]})["env"]

    assert [("A", "1"), ("B", "9"), ("C", "3")] == [(v["name"], v["value"]) for v in env]


def test_mounts_merge_by_path_and_ports_by_number():
    container = engine(
        {
            "volumeMounts": [{"mountPath": "/cache", "readOnly": True}],
            "ports": [{"containerPort": 8000, "protocol": "TCP"}],
        }
    )

    assert [{"mountPath": "/cache", "name": "cache", "readOnly": True}] == container["volumeMounts"]
    assert [{"containerPort": 8000, "name": "http", "protocol": "TCP"}] == container["ports"]


@pytest.mark.parametrize("field", ["tolerations", "args"])
def test_lists_without_a_merge_key_are_replaced(field):
    """Kubernetes declares no merge key for tolerations, whatever one might expect."""
    patch = {"spec": {"tolerations": [{"key": "new"}]}} if field == "tolerations" else None

    if patch is not None:
        assert [{"key": "new"}] == merged(patch)["spec"]["tolerations"]
    else:
        assert ["--y"] == engine({"args": ["--y"]})["args"]


def test_null_removes_a_field():
    assert "securityContext" not in merged({"spec": {"securityContext": None}})["spec"]
    assert {} == merged({"metadata": {"labels": {"a": None}}})["metadata"]["labels"]


def test_a_directive_deletes_a_list_item():
    assert [{"name": "A", "value": "1"}] == engine({"env": [{"name": "B", "$patch": "delete"}]})[
        "env"
    ]


def test_a_directive_replaces_a_map_or_a_list():
    assert {"fsGroup": 1} == merged(
        {"spec": {"securityContext": {"$patch": "replace", "fsGroup": 1}}}
    )["spec"]["securityContext"]
    assert [{"name": "Z"}] == engine({"env": [{"$patch": "replace"}, {"name": "Z"}]})["env"]


def test_a_volume_given_another_source_loses_the_old_one():
    """Kubectl's retainKeys strategy; with both sources the API server refuses the pod."""
    patch = {"spec": {"volumes": [{"name": "cache", "hostPath": {"path": "/mnt"}}]}}

    volumes = merged(patch)["spec"]["volumes"]

    assert [
        {"name": "cache", "hostPath": {"path": "/mnt"}},
        {"name": "shm", "emptyDir": {}},
    ] == volumes


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.podTemplate.spec.containers"),
        ({"spec": {"containers": ["engine"]}}, "spec.podTemplate.spec.containers"),
        ({"spec": {"$patch": "remove"}}, "spec.podTemplate.spec"),
        ({"spec": {"$retainKeys": ["a"]}}, "spec.podTemplate.spec.$retainKeys"),
    ],
)
def test_a_patch_that_cannot_be_merged_names_its_field(patch, field):
    with pytest.raises(BadInput) as caught:
        merged(patch)

    (finding,) = caught.value.findings
    assert ("invalid-pod-template", field, AT) == (finding.code, finding.field, finding.location)
