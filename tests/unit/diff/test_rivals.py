"""Two GitOps controllers never fight over one object: the one that runs keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.diff.rivals import Rivals
from stoker.kube.errors import api_error
from stoker.model.change import Action
from stoker.model.ports import ListPage
from stoker.model.refs import ObjectRef
from stoker.objects.takeover import controllers_of

REF = ObjectRef("", "ConfigMap", "llm", "conf")
WRITTEN = "2026-11-29T12:00:00Z"
WRITTEN_MS = 1_795_953_600_000
MINUTE_MS = 60_000


class Lists:
    """A cluster of which only lists are asked."""

    def __init__(self, **kinds):
        self.kinds = kinds
        self.asked = []

    def list(self, group, kind):
        self.asked.append((group, kind))
        found = self.kinds.get(kind)
        if found is None:
            raise api_error(404, "404 page not found", what=f"list {kind}")
        if isinstance(found, Exception):
            raise found
        return ListPage("1", tuple(found))


def asked(lists: Any, now_ms: int, body: dict[str, Any]) -> Any:
    return of(Rivals(lists, now_ms), body)


def of(rivals: Rivals, body: dict[str, Any]) -> Any:
    return rivals.objection(REF, controllers_of(body), body["metadata"]["labels"])


def live(manager, labels=None, time=WRITTEN):
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": "v1",
        "time": time,
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    metadata = {"name": "conf", "namespace": "llm", "labels": labels or {}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "managedFields": [entry]},
        "data": {"a": "1"},
    }


def kustomization(ids=("llm_conf__ConfigMap",), **spec):
    return {
        "kind": "Kustomization",
        "metadata": {"name": "apps", "namespace": "flux-system"},
        "spec": spec,
        "status": {"inventory": {"entries": [{"id": id_, "v": "v1"} for id_ in ids]}},
    }


def application(policy, name="conf"):
    resource = {"version": "v1", "kind": "ConfigMap", "namespace": "llm", "name": name}
    return {
        "kind": "Application",
        "metadata": {"name": "apps", "namespace": "argocd"},
        "spec": {"syncPolicy": policy},
        "status": {"resources": [resource]},
    }


def helm_release(**spec):
    metadata = {"name": "r", "namespace": "llm"}
    return {"kind": "HelmRelease", "metadata": metadata, "spec": spec}


HELM_LABELS = {"helm.toolkit.fluxcd.io/name": "r", "helm.toolkit.fluxcd.io/namespace": "llm"}

ACTIVE = [
    ("kustomize-controller", {"Kustomization": [kustomization()]}, "Kustomization"),
    ("argocd-controller", {"Application": [application({"automated": {}})]}, "Application"),
    ("argocd-application-controller", {"Application": [application({"automated": {}})]}, "argocd"),
    ("helm-controller", {"HelmRelease": [helm_release()]}, "HelmRelease llm/r"),
]

STOPPED = [
    ("kustomize-controller", {"Kustomization": [kustomization(suspend=True)]}),
    ("argocd-controller", {"Application": [application({})]}),
    ("argocd-controller", {"Application": [application({"automated": {"enabled": False}})]}),
    ("helm-controller", {"HelmRelease": [helm_release(suspend=True)]}),
]


@pytest.mark.parametrize(("manager", "kinds", "word"), ACTIVE)
def test_an_object_of_a_controller_that_works_is_refused(manager, kinds, word):
    """a.4 P2: However long ago it wrote: it writes again as soon as something differs."""
    found = asked(Lists(**kinds), WRITTEN_MS + 1_000 * MINUTE_MS, live(manager, HELM_LABELS))

    assert (found.action, found.code) == (Action.ERROR, "other-controller-active")
    assert f"{manager}, last write {WRITTEN}" in found.note
    assert word in found.note


@pytest.mark.parametrize(("manager", "kinds"), STOPPED)
def test_a_controller_that_was_stopped_gives_the_object_up(manager, kinds):
    """Even a moment after its last write."""
    assert asked(Lists(**kinds), WRITTEN_MS + 1, live(manager, HELM_LABELS)) is None


@pytest.mark.parametrize("manager", ["kustomize-controller", "argocd-controller"])
def test_a_controller_in_another_cluster_shows_by_its_writes(manager):
    """Argo CD often runs elsewhere: its Application is not here to be looked at."""
    early = asked(Lists(), WRITTEN_MS + MINUTE_MS, live(manager))
    late = asked(Lists(), WRITTEN_MS + 10 * MINUTE_MS, live(manager))

    assert early.code == "other-controller-active"
    assert late is None


def test_a_kustomization_that_no_longer_lists_the_object_does_not_write_it():
    lists = Lists(Kustomization=[kustomization(("llm_other__ConfigMap",))])
    found = asked(lists, WRITTEN_MS + 10 * MINUTE_MS, live("kustomize-controller"))

    assert found is None


def test_what_could_not_be_read_makes_us_wait():
    """Unknown is not stopped."""
    refused = api_error(403, "no", what="list Kustomization")
    lists = Lists(Kustomization=refused)
    found = asked(lists, WRITTEN_MS + 10 * MINUTE_MS, live("kustomize-controller"))

    assert (found.action, found.code) == (Action.WAIT, "live-state-unknown")


def test_objects_without_such_an_owner_cost_no_request():
    lists = Lists()

    assert asked(lists, WRITTEN_MS, live("kubectl-client-side-apply")) is None
    assert asked(lists, WRITTEN_MS, live("helm")) is None
    assert lists.asked == []


def test_a_kind_is_listed_once():
    lists: Any = Lists(Kustomization=[kustomization()])
    rivals = Rivals(lists, WRITTEN_MS)
    for _ in range(3):
        of(rivals, live("kustomize-controller"))

    assert len(lists.asked) == 1
