"""What one object's annotations in Git allow: adoption, prune, recreation, being left alone."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects import names
from stories.files import a_bundle, a_config_map, the_fleet
from stories.looks import (
    as_it_stands,
    conditions,
    data,
    errors,
    fleet_status,
    is_clean,
    pod_uids,
    tell,
    unit_status,
)

SIDE = "Bundle/llm/side"
WEB = ObjectRef("apps", "Deployment", "llm", "web")
NOTES = ObjectRef("", "ConfigMap", "llm", "notes")


def says(**words: str) -> dict[str, str]:
    return {f"stoker.dev/{key}": value for key, value in words.items()}


def a_deployment(replicas: int | None = 2, *, app: str = "web", **annotations: str) -> str:
    """A Deployment without GPUs."""
    pod = {"containers": [{"name": "c", "image": "registry.example/web:1"}]}
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "llm", "annotations": annotations},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "template": {"metadata": {"labels": {"app": app}}, "spec": pod},
        },
    }
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    return yaml.safe_dump(body, sort_keys=False)


def side(**files: str) -> dict[str, str]:
    """A fleet whose bundle `side` holds these files, and `stays.yaml`."""
    named = {f"{name}.yaml": text for name, text in files.items()}
    return the_fleet(side={"stays.yaml": a_config_map("stays"), **named})


def without(world, name: str, message: str = "Less") -> None:
    world.commit(
        message,
        {
            "bundles/side/bundle.yaml": a_bundle("side", ("stays.yaml",)),
            f"bundles/side/{name}.yaml": None,
        },
    )
    tell(world)


def made_by(world, manager: str, text: str) -> dict:
    """What somebody else's tool has created; at rest."""
    made = world.cluster.create(yaml.safe_load(text), manager=manager)
    world.settle()
    return made


def notes(world, unit: str = SIDE) -> list[tuple[str, str]]:
    return [(n["object"], n["reason"]) for n in unit_status(world, unit).get("notes") or ()]


@pytest.fixture
def here(settled):
    """A fleet at rest with one small node."""
    return settled(side(), WorldNode("gpu-1"))


# ----------------------------------------------------------------------- adoption
@pytest.mark.parametrize("maker", ["kubectl-client-side-apply", "helm"])
def test_an_adopted_deployment_keeps_its_uid_its_pods_and_its_count(here, maker):
    """cases.md row 79: a cluster that already runs must be welcome."""
    made = made_by(here, maker, a_deployment(3))
    pods = pod_uids(here)
    assert 3 == len(pods)

    here.commit("Adopt", side(web=a_deployment(None, **says(adopt="enabled"))))
    here.settle()

    live = here.cluster.get(WEB)
    assert made["metadata"]["uid"] == live["metadata"]["uid"]
    assert 3 == live["spec"]["replicas"]
    assert pods == pod_uids(here)
    assert live["metadata"]["annotations"][names.ADOPTED] == "true"
    assert is_clean(here)


def test_without_consent_a_name_in_use_is_touched_by_nobody(here):
    made_by(here, "helm", a_config_map("notes", {"a": "theirs"}, namespace="llm"))

    here.commit("Ours", side(notes=a_config_map("notes", {"a": "ours"})))
    tell(here)

    assert {"a": "theirs"} == data(here, "notes")
    assert [("adoption-required", "bundles/side/notes.yaml", 1)] == errors(unit_status(here, SIDE))


def test_a_persons_value_goes_to_git_and_a_controllers_stays(here):
    """The conflict table holds for what is adopted as for everything else."""
    made_by(here, "kubectl-create", a_config_map("notes", {"a": "typed"}, namespace="llm"))
    here.cluster.patch(NOTES, "merge", {"data": {"b": "computed"}}, manager="operator")
    here.settle()

    ours = a_config_map("notes", {"a": "git", "b": "git"}, annotations=says(adopt="enabled"))
    here.commit("Adopt", side(notes=ours))
    tell(here)

    assert {"a": "git", "b": "computed"} == data(here, "notes")


def test_a_field_that_leaves_git_after_an_adoption_leaves_the_object(here):
    """Flux and kubectl learned it: a tool that shares a field keeps it for ever (ssa-facts 16)."""
    theirs = a_config_map("notes", {"a": "1", "b": "2", "theirs": "3"}, namespace="llm")
    made_by(here, "kubectl-client-side-apply", theirs)
    consent = says(adopt="enabled")
    here.commit(
        "Adopt", side(notes=a_config_map("notes", {"a": "1", "b": "2"}, annotations=consent))
    )
    tell(here)
    here.commit("Less", side(notes=a_config_map("notes", {"a": "1"}, annotations=consent)))
    tell(here)

    assert {"a": "1", "theirs": "3"} == data(here, "notes")
    assert is_clean(here)


def test_another_fleets_object_is_not_adopted_whatever_git_says(here):
    """a.6 L5: reliability-security.md c.2 row 52: two Stokers never take from each other."""
    body = yaml.safe_load(a_config_map("notes", namespace="llm"))
    mark = names.owner_mark("other", UnitRef("Bundle", "llm", "x"), NOTES)
    body["metadata"]["annotations"] = {names.OWNER: mark}
    here.cluster.apply(body, manager="stoker-other")
    here.settle()

    here.commit("Mine", side(notes=a_config_map("notes", annotations=says(adopt="enabled"))))
    tell(here)

    live = here.cluster.get(NOTES)
    assert mark == live["metadata"]["annotations"][names.OWNER]
    assert "adoption-required" in [code for code, *_ in errors(unit_status(here, SIDE))]


def test_what_was_adopted_outlives_its_file_and_a_lost_inventory(here):
    """Design 6: adopted objects are never pruned without consent."""
    made_by(here, "helm", a_config_map("notes", namespace="llm"))
    here.commit("Adopt", side(notes=a_config_map("notes", annotations=says(adopt="enabled"))))
    tell(here)
    here.commit("No word of it any more", side(notes=a_config_map("notes")))
    tell(here)
    assert "true" == here.cluster.get(NOTES)["metadata"]["annotations"][names.ADOPTED]

    without(here, "notes")

    assert {"key": "value"} == data(here, "notes")
    assert [("ConfigMap llm/notes", "needs-consent")] == notes(here)

    for found in here.objects("", "ConfigMap", "stoker-system"):
        here.cluster.delete(ObjectRef("", "ConfigMap", "stoker-system", found["metadata"]["name"]))
    here.stop_controller()
    here.settle()

    assert {"key": "value"} == data(here, "notes")
    assert [("ConfigMap llm/notes", "needs-consent")] == notes(here)

    here.commit("Go\n\nStoker-Allow-Delete: ConfigMap/llm/notes", {})
    here.settle()

    assert {} == data(here, "notes")
    assert is_clean(here)


def test_an_adopted_object_goes_where_git_consented(here):
    made_by(here, "helm", a_config_map("notes", namespace="llm"))
    both = says(adopt="enabled", prune="enabled")
    here.commit("Adopt", side(notes=a_config_map("notes", annotations=both)))
    tell(here)

    without(here, "notes")

    assert {} == data(here, "notes")
    assert is_clean(here)


def test_what_we_made_under_a_free_name_is_no_adoption(here):
    """The annotation may stand in Git for good: only what was somebody else's is remembered."""
    here.commit("Make", side(notes=a_config_map("notes", annotations=says(adopt="enabled"))))
    tell(here)
    assert names.ADOPTED not in here.cluster.get(NOTES)["metadata"]["annotations"]

    without(here, "notes")

    assert {} == data(here, "notes")


# -------------------------------------------------------------------------- prune
def test_a_kind_that_needs_consent_goes_with_the_annotation(here):
    claim = yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "token", "annotations": says(prune="enabled")},
        }
    )
    here.commit("Add", side(token=claim))
    tell(here)
    assert ["token"] == [s["metadata"]["name"] for s in here.objects("", "Secret", "llm")]

    without(here, "token")

    assert not here.objects("", "Secret", "llm")


def test_a_typed_annotation_is_no_consent(here):
    """Whoever may annotate an object can't have it deleted that way."""
    made_by(here, "helm", a_config_map("notes", namespace="llm"))
    here.commit("Adopt", side(notes=a_config_map("notes", annotations=says(adopt="enabled"))))
    tell(here)
    typed = {"metadata": {"annotations": says(prune="enabled")}}
    here.cluster.patch(NOTES, "merge", typed, manager="kubectl-annotate")

    without(here, "notes")

    assert {"key": "value"} == data(here, "notes")


# ----------------------------------------------------------------------- recreate
def test_a_fixed_field_is_changed_by_delete_and_create_where_git_says_so(here):
    """reliability-security c.2 row 44."""
    here.commit("Make", side(web=a_deployment(2)))
    here.settle()
    before = here.cluster.get(WEB)["metadata"]["uid"]

    here.commit("Other selector", side(web=a_deployment(2, app="www")))
    tell(here)

    assert before == here.cluster.get(WEB)["metadata"]["uid"]
    assert "invalid-object" in [code for code, *_ in errors(unit_status(here, SIDE))]

    here.commit("Go on", side(web=a_deployment(2, app="www", **says(recreate="enabled"))))
    here.settle()

    live = here.cluster.get(WEB)
    assert before != live["metadata"]["uid"]
    assert {"app": "www"} == live["spec"]["selector"]["matchLabels"]
    assert {"www"} == {p["metadata"]["labels"]["app"] for p in here.objects("", "Pod", "llm")}
    assert is_clean(here)


def test_nothing_is_deleted_that_could_not_be_made_again(here):
    """A wrong file with a consent in it must not cost what runs."""
    here.commit("Make", side(web=a_deployment(1)))
    here.settle()
    before = as_it_stands(here)

    wrong = yaml.safe_load(a_deployment(1, app="www", **says(recreate="enabled")))
    wrong["spec"]["template"]["metadata"]["labels"] = {"app": "neither"}
    here.commit("Wrong", side(web=yaml.safe_dump(wrong)))
    tell(here)

    assert before == as_it_stands(here)
    assert "invalid-object" in [code for code, *_ in errors(unit_status(here, SIDE))]


# -------------------------------------------------------------------- left alone
def test_an_object_that_git_leaves_alone_is_neither_drift_nor_pruned(here):
    """cases.md row 75."""
    here.commit("Make", side(notes=a_config_map("notes")))
    tell(here)
    alone = a_config_map("notes", {"key": "other"}, annotations=says(reconcile="disabled"))
    here.commit("Leave it", side(notes=alone))
    here.cluster.patch(NOTES, "merge", {"data": {"mine": "1"}}, manager="kubectl-edit")
    tell(here)

    assert {"key": "value", "mine": "1"} == data(here, "notes")
    assert [("ConfigMap llm/notes", "reconcile-disabled")] == notes(here)
    assert "True" == conditions(fleet_status(here))["Ready"][0]

    without(here, "notes")

    assert {"key": "value", "mine": "1"} == data(here, "notes")


def test_an_object_that_git_takes_up_again_is_ours_as_before(here):
    here.commit("Make", side(notes=a_config_map("notes")))
    tell(here)
    for text in (
        a_config_map("notes", annotations=says(reconcile="disabled")),
        a_config_map("notes", {"key": "new"}),
    ):
        here.commit("Change", side(notes=text))
        tell(here)
    assert {"key": "new"} == data(here, "notes")

    without(here, "notes")

    assert {} == data(here, "notes")


def test_a_create_only_object_is_made_once_left_as_it_is_and_pruned(here):
    """cases.md row 75: deleted when it leaves Git, for we created it."""
    once = says(reconcile="create-only")
    here.commit("Make", side(notes=a_config_map("notes", annotations=once)))
    tell(here)
    made = here.cluster.get(NOTES)["metadata"]["uid"]
    here.cluster.patch(NOTES, "merge", {"data": {"mine": "1"}}, manager="kubectl-edit")
    here.commit("Other", side(notes=a_config_map("notes", {"key": "other"}, annotations=once)))
    tell(here)

    assert {"key": "value", "mine": "1"} == data(here, "notes")
    assert made == here.cluster.get(NOTES)["metadata"]["uid"]
    assert [("ConfigMap llm/notes", "create-only")] == notes(here)
    assert "Synced" == unit_status(here, SIDE)["sync"]["status"]
    assert "True" == conditions(fleet_status(here))["Ready"][0]

    without(here, "notes")

    assert {} == data(here, "notes")


def test_a_create_only_object_that_somebody_else_made_stays(here):
    """cases.md row 75: neither adopted nor refused, and never deleted."""
    made_by(here, "helm", a_config_map("notes", {"key": "theirs"}, namespace="llm"))
    before = here.cluster.get(NOTES)
    once = says(reconcile="create-only")
    here.commit("Claim", side(notes=a_config_map("notes", annotations=once)))
    tell(here)

    assert before == here.cluster.get(NOTES)
    assert "Synced" == unit_status(here, SIDE)["sync"]["status"]

    without(here, "notes")

    assert before == here.cluster.get(NOTES)


def test_a_create_only_object_that_is_deleted_by_hand_is_made_anew(here):
    once = says(reconcile="create-only")
    here.commit("Make", side(notes=a_config_map("notes", annotations=once)))
    tell(here)
    here.cluster.delete(NOTES)
    tell(here)

    assert {"key": "value"} == data(here, "notes")


# ---------------------------------------------------------------------- bad words
def test_a_word_that_nobody_obeys_stops_its_unit_with_its_place(here):
    before = as_it_stands(here)

    here.commit("Typo", side(notes=a_config_map("notes", annotations=says(prune="never"))))
    tell(here)

    assert [("invalid-consent", "bundles/side/notes.yaml", 1)] == errors(unit_status(here, SIDE))
    assert before == as_it_stands(here)
