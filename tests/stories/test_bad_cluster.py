"""What a cluster gets that answers badly, lacks something, or holds somebody else's objects."""

from __future__ import annotations

import pytest
import yaml

from definitions import a_definition
from stoker.model.refs import ObjectRef
from stories.faults import answer, forbidding
from stories.files import a_bundle, a_config_map, a_service, the_village
from stories.looks import (
    as_it_stands,
    conditions,
    data,
    deployments,
    errors,
    fleet_status,
    is_clean,
    message,
    serving,
    standing,
    tell,
    unit_status,
)

TINY = "ModelService/llm/tiny"
SIDE = "Bundle/llm/side"
LESS = {"models/tiny.yaml": a_service(replicas=1)}
"""A commit that scales down: nothing of it may happen on half of the truth."""


def side_of(**manifests: str) -> dict[str, str]:
    """Bundle `side` with these files beside side.yaml."""
    files = {f"{name}.yaml": text for name, text in manifests.items()}
    paths = tuple(sorted({"side.yaml", *files}))
    return {
        "bundles/side/bundle.yaml": a_bundle("side", paths),
        **{f"bundles/side/{path}": text for path, text in files.items()},
    }


def a_crd(kind: str, plural: str, group: str = "example.org") -> dict:
    return a_definition(group, "v1", kind, plural)


WIDGET = "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: one}\nspec: {size: 1}\n"


# -------------------------------------------------------------- the server itself
def test_an_unreachable_api_server_changes_nothing_and_heals_by_itself(world, faults):
    """cases.md row 95: what the pass could not do is told all the same, by Git."""
    before = as_it_stands(world)
    faults.gone = True

    world.commit("Down", {**LESS, "models/other.yaml": None})
    tell(world)

    status = fleet_status(world)
    assert ("True", "ProgressingWithRetry") == conditions(status)["Reconciling"]
    assert ("False", "NotStalled") == conditions(status)["Stalled"]
    assert "the API server does not answer" == message(status, "Reconciling")
    assert ("Unknown", "Unknown") == conditions(unit_status(world, TINY))["Ready"]

    world.advance(62)

    assert before == as_it_stands(world)

    faults.gone = False
    world.settle()

    assert is_clean(world)
    assert 1 == len(serving(world))
    assert [] == deployments(world, "other")


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/api/v1/pods", "pods unknown: forbidden"),
        ("/api/v1/nodes", "nodes unknown: forbidden"),
        ("/apis/apps/v1/namespaces/llm/deployments", "deployments/llm unknown: forbidden"),
    ],
    ids=["pods", "nodes", "deployments"],
)
def test_a_forbidden_list_is_not_an_empty_one(world, faults, path, what):
    """Without it nobody knows what is free or what serves; other units go on."""
    before = as_it_stands(world)
    faults.refuse = forbidding(path)

    world.commit("Down", {**LESS, "bundles/side/side.yaml": a_config_map("side", {"key": "new"})})
    tell(world)

    status = unit_status(world, TINY)
    assert "Unknown" == conditions(status)["Ready"][0]
    assert ["SnapshotUnknown"] == [hold["reason"] for hold in status["holds"]]
    assert what in status["holds"][0]["message"]
    assert ("models/tiny.yaml", 1) == (status["source"]["path"], status["source"]["line"])
    assert before == as_it_stands(world)
    assert {"key": "new"} == data(world, "side")

    faults.refuse = lambda request: None
    world.settle()

    assert is_clean(world)
    assert 1 == len(serving(world))


def test_objects_of_a_forbidden_list_are_neither_written_nor_pruned(world, faults):
    """A rule for ConfigMaps that somebody took away must not look as if all were gone."""
    faults.refuse = forbidding("/namespaces/llm/configmaps")
    before = standing(world)

    world.commit(
        "More", side_of(more=a_config_map("more"), side=a_config_map("side", {"key": "n"}))
    )
    tell(world)
    world.commit("Less", {"bundles/side/bundle.yaml": None, "bundles/side/side.yaml": None})
    tell(world)

    assert before == standing(world)
    assert {"key": "value"} == data(world, "side")
    assert "live-state-unknown" in str(unit_status(world, SIDE)["notes"])

    faults.refuse = lambda request: None
    tell(world)

    assert {} == data(world, "side")
    assert is_clean(world)


def test_a_forbidden_write_stalls_its_unit_with_the_servers_own_words(world, faults):
    faults.refuse = forbidding("/configmaps/side", methods=("PATCH",))
    before = standing(world)

    new = {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})}
    world.commit("Change", {**new, "models/other.yaml": a_service("other", replicas=0)})
    tell(world)

    status = unit_status(world, SIDE)
    assert ("True", "Forbidden") == conditions(status)["Stalled"]
    assert "no RBAC rule allows it" in message(status, "Stalled")
    assert [("forbidden", "bundles/side/side.yaml", 1)] == errors(status)
    assert before == standing(world)

    faults.refuse = lambda request: None
    world.settle()

    assert is_clean(world)
    assert {"key": "new"} == data(world, "side")
    assert [] == deployments(world, "other")


def test_a_quota_that_changes_meanwhile_is_tried_again(world, faults):
    """cases.md row 67: only that conflict, and no person is called."""
    refused: list[str] = []

    def refuse(request):
        if request.method == "PATCH" and request.path.endswith("/configmaps/side") and not refused:
            refused.append(request.path)
            text = (
                'Operation cannot be fulfilled on resourcequotas "q": the object has been modified;'
                " please apply your changes to the latest version and try again"
            )
            return answer(409, "Conflict", text)
        return None

    faults.refuse = refuse
    world.commit("Change", {"bundles/side/side.yaml": a_config_map("side", {"key": "new"})})
    world.advance(1)

    assert ("False", "NotStalled") == conditions(unit_status(world, SIDE))["Stalled"]

    world.advance(6)

    assert 1 == len(refused)
    assert {"key": "new"} == data(world, "side")
    assert is_clean(world)


# ------------------------------------------------------------- kinds and namespaces
def test_an_object_of_a_kind_that_is_not_there_waits_and_the_rest_is_applied(world):
    """cases.md row 65: something else creates the CRD seconds later.

    reliability-security c.2 row 35.
    """
    world.commit("A widget", side_of(one=WIDGET, more=a_config_map("more")))
    tell(world)

    status = unit_status(world, SIDE)
    assert ("True", "Waiting") == conditions(status)["Reconciling"]
    assert ("False", "NotStalled") == conditions(status)["Stalled"]
    assert "does not serve example.org/v1 Widget" in message(status, "Reconciling")
    assert {"key": "value"} == data(world, "more")
    assert ("False", "NotStalled") == conditions(unit_status(world, TINY))["Stalled"]

    world.cluster.apply(a_crd("Widget", "widgets"), manager="operator")
    tell(world)

    assert is_clean(world)
    assert 1 == len(world.objects("example.org", "Widget", "llm"))


def test_a_crd_of_an_odd_plural_and_its_object_converge_in_one_pass(world):
    """cases.md row 63: a guessed plural is wrong sooner or later."""
    crd = yaml.safe_dump(a_crd("Gateway", "gatewais"))
    gateway = "apiVersion: example.org/v1\nkind: Gateway\nmetadata: {name: front}\n"

    world.commit("Both", side_of(crd=crd, front=gateway))
    done = world.one_pass()

    found = next(unit for unit in done.outcome.units if str(unit.unit) == SIDE)
    assert found.applied
    assert 1 == len(world.objects("example.org", "Gateway", "llm"))

    tell(world)

    assert is_clean(world)


def test_a_namespace_that_is_terminating_is_waited_for(world):
    """Its objects are sent when it is there again, not a second earlier."""
    going = ObjectRef("", "Namespace", "", "going")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}}
    keeper = yaml.safe_load(
        a_config_map("keeper", namespace="going", finalizers=["example.org/keep"])
    )
    world.cluster.apply(namespace, manager="somebody")
    world.cluster.apply(keeper, manager="somebody")
    world.cluster.delete(going)
    before = as_it_stands(world)

    late = a_config_map("late", namespace="going")
    world.commit("Late", side_of(late=late, more=a_config_map("more")))
    tell(world)

    status = unit_status(world, SIDE)
    assert ("True", "Waiting") == conditions(status)["Reconciling"]
    assert ("False", "NotStalled") == conditions(status)["Stalled"]
    assert "namespace going is being deleted" in message(status, "Reconciling")
    assert {"key": "value"} == data(world, "more")

    keep = ObjectRef("", "ConfigMap", "going", "keeper")
    free = {"metadata": {"finalizers": None}}
    world.cluster.patch(keep, "merge", free, manager="somebody")
    tell(world)

    assert "namespace going does not exist" in message(unit_status(world, SIDE), "Reconciling")

    world.cluster.apply(namespace, manager="somebody")
    tell(world)

    assert is_clean(world)
    assert {"key": "value"} == data(world, "late", "going")
    assert before == {k: v for k, v in as_it_stands(world).items() if k != "ConfigMap/more"}


# ------------------------------------------------------------- somebody else's objects
def test_a_name_in_use_by_somebody_else_is_left_alone(world):
    """An unforced apply would merge into it without a word."""
    foreign = yaml.safe_load(a_config_map("taken", {"theirs": "yes"}, namespace="llm"))
    world.cluster.apply(foreign, manager="helm")
    before = as_it_stands(world)

    taken = a_config_map("taken", {"ours": "yes"})
    world.commit("Take it", side_of(taken=taken, more=a_config_map("more")))
    tell(world)

    status = unit_status(world, SIDE)
    assert ("True", "AdoptionRequired") == conditions(status)["Stalled"]
    assert "owned by helm" in message(status, "Stalled")
    assert [("adoption-required", "bundles/side/taken.yaml", 1)] == errors(status)
    assert {"theirs": "yes"} == data(world, "taken")
    assert {"key": "value"} == data(world, "more")

    world.commit("Leave it", {**the_village(), "bundles/side/taken.yaml": None})
    tell(world)

    assert is_clean(world)
    assert {"theirs": "yes"} == data(world, "taken")
    assert before == {k: v for k, v in as_it_stands(world).items() if k != "ConfigMap/more"}


def test_a_name_that_its_owner_gives_up_is_taken_without_a_word(world):
    foreign = yaml.safe_load(a_config_map("taken", {"theirs": "yes"}, namespace="llm"))
    world.cluster.apply(foreign, manager="helm")
    world.commit("Take it", side_of(taken=a_config_map("taken", {"ours": "yes"})))
    tell(world)

    world.cluster.delete(ObjectRef("", "ConfigMap", "llm", "taken"))
    tell(world)

    assert is_clean(world)
    assert {"ours": "yes"} == data(world, "taken")


def test_a_warning_about_mirrors_leaves_the_status_once_they_can_be_written(world, faults):
    """What is resolved is told like what happened: not with the next commit of something else."""
    faults.refuse = forbidding("/modelservices/tiny/status", methods=("PATCH", "PUT"))
    world.commit("Scale", LESS)
    world.advance(12)
    assert ["mirrors-forbidden"] == [code for code, _, _ in errors(fleet_status(world))]

    faults.refuse = lambda request: None
    world.advance(5)

    assert [] == errors(fleet_status(world))
    assert is_clean(world)
