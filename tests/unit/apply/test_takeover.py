"""After an adoption Git alone answers for its fields; until then nothing changes but owners."""

from __future__ import annotations

import json

import pytest

from stoker.apply.takeover import taken_over
from stoker.kube.client import Client
from stoker.kube.memory import MemoryServer
from stoker.model.refs import ObjectRef
from stoker.objects.takeover import LAST_APPLIED, predecessors
from stoker.sim.clock import VirtualClock

OURS = "stoker-a1b2c3d4"
REF = ObjectRef("", "ConfigMap", "default", "conf")


def a_map(metadata=None, **data):
    named = {"name": REF.name, "namespace": REF.namespace, **(metadata or {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data}


@pytest.fixture
def cluster():
    return Client(MemoryServer(VirtualClock()))


def made_by_kubectl(cluster, **data):
    note = {LAST_APPLIED: json.dumps(a_map(**data))}
    cluster.create(a_map({"annotations": note}, **data), manager="kubectl-client-side-apply")


def made_by_helm(cluster, **data):
    cluster.create(a_map(**data), manager="helm")


def made_by_helm_4(cluster, **data):
    cluster.apply(a_map(**data), manager="helm")


def made_by_flux(cluster, **data):
    marks = {"kustomize.toolkit.fluxcd.io/name": "x", "kustomize.toolkit.fluxcd.io/namespace": "y"}
    cluster.apply(a_map({"labels": marks}, **data), manager="kustomize-controller")


def made_by_argo_cd(cluster, **data):
    note = {"argocd.argoproj.io/tracking-id": "x:/ConfigMap:default/conf"}
    cluster.apply(a_map({"annotations": note}, **data), manager="argocd-controller")


def made_by_nobody(cluster, **data):
    made = cluster.create(a_map(**data), manager="x")
    version = made["metadata"]["resourceVersion"]
    cleared = {"metadata": {"managedFields": [{}], "resourceVersion": version}}
    cluster.patch(REF, "merge", cleared, manager="x")


MAKERS = [
    made_by_kubectl,
    made_by_helm,
    made_by_helm_4,
    made_by_flux,
    made_by_argo_cd,
    made_by_nobody,
]


@pytest.mark.parametrize("made", MAKERS, ids=lambda made: made.__name__)
def test_a_field_that_leaves_git_after_an_adoption_is_removed(cluster, made):
    """a.3 A7: without a takeover the old tool's entry keeps it for ever (ssa-facts 59, 62)."""
    made(cluster, a="1", b="2")
    adopted = cluster.apply(a_map(a="1", b="2"), manager=OURS)
    taken = taken_over(cluster, REF, adopted, OURS)

    assert taken["data"] == {"a": "1", "b": "2"}
    assert cluster.apply(a_map(a="1"), manager=OURS)["data"] == {"a": "1"}


@pytest.mark.parametrize("made", [made_by_kubectl, made_by_flux, made_by_argo_cd])
def test_marks_of_the_old_tool_go_so_that_it_finds_nothing_to_delete(cluster, made):
    made(cluster, a="1")
    taken = taken_over(cluster, REF, cluster.apply(a_map(a="1"), manager=OURS), OURS)

    metadata = taken["metadata"]
    assert not metadata.get("labels")
    assert not metadata.get("annotations")


def test_what_git_does_not_name_stays(cluster):
    """A field of the old tool that never came to Git is nobody's then, and keeps its value."""
    made_by_kubectl(cluster, a="1", extra="x")
    taken_over(cluster, REF, cluster.apply(a_map(a="1"), manager=OURS), OURS)

    assert cluster.apply(a_map(a="2"), manager=OURS)["data"] == {"a": "2", "extra": "x"}


def test_controllers_that_are_no_gitops_tool_keep_their_fields(cluster):
    made_by_kubectl(cluster, a="1")
    cluster.apply(a_map(theirs="x"), manager="operator")
    taken = taken_over(cluster, REF, cluster.apply(a_map(a="1"), manager=OURS), OURS)

    managers = [entry["manager"] for entry in taken["metadata"]["managedFields"]]
    assert sorted(managers) == ["operator", OURS]


def test_a_label_typed_by_hand_costs_no_write(cluster):
    """It shares nothing with Git."""
    cluster.apply(a_map(a="1"), manager=OURS)
    label = {"metadata": {"labels": {"seen": "1"}}}
    labelled = cluster.patch(REF, "merge", label, manager="kubectl-label")

    assert taken_over(cluster, REF, labelled, OURS) is labelled


def test_an_object_that_changed_meanwhile_is_read_again(cluster):
    """a.3 A7."""
    made_by_kubectl(cluster, a="1")
    adopted = cluster.apply(a_map(a="1"), manager=OURS)
    cluster.patch(REF, "merge", {"data": {"b": "2"}}, manager="operator")
    taken = taken_over(cluster, REF, adopted, OURS)

    assert taken["data"] == {"a": "1", "b": "2"}
    assert predecessors(taken, OURS) == ()


def test_an_object_that_keeps_changing_is_left_to_the_next_pass(cluster, monkeypatch):
    made_by_kubectl(cluster, a="1")
    adopted = cluster.apply(a_map(a="1"), manager=OURS)
    monkeypatch.setattr(cluster, "get", lambda _ref: adopted)
    cluster.patch(REF, "merge", {"data": {"b": "2"}}, manager="operator")

    assert taken_over(cluster, REF, adopted, OURS) is adopted
