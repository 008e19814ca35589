"""What leaves Git is deleted exactly, held where that would be rash, and kept where told."""

from __future__ import annotations

import pytest
import yaml

from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stories.files import (
    FLEET,
    NAMESPACE_FILE,
    a_bundle,
    a_config_map,
    a_fleet,
    a_service,
    the_fleet,
    the_village,
)
from stories.looks import (
    as_it_stands,
    conditions,
    data,
    fleet_status,
    is_clean,
    message,
    pod_uids,
    standing,
    tell,
    unit_status,
)

SIDE = "Bundle/llm/side"
DRAIN_SECONDS = 12
"""Longer than a service of `the_village` drains when it leaves Git: its pods' grace period."""
NAMES = ("alpha", "beta", "gamma", "delta")


def four_bundles(*names_: str, **fleet) -> dict[str, str]:
    """A fleet of Bundles with a ConfigMap each."""
    return the_fleet(
        fleet=a_fleet(**fleet), **{name: {"cm.yaml": a_config_map(name)} for name in names_}
    )


def without(*bundles: str) -> dict[str, None]:
    paths = [f"bundles/{name}/{file}" for name in bundles for file in ("bundle.yaml", "cm.yaml")]
    return dict.fromkeys(paths)


def config_maps(world, namespace: str = "llm") -> set[str]:
    return {c["metadata"]["name"] for c in world.objects("", "ConfigMap", namespace)}


# --------------------------------------------------------------------- what is pruned
def test_a_removed_unit_takes_exactly_its_own_objects_along(world):
    """Dependents first; what others own, or nobody, stays."""
    foreign = yaml.safe_load(a_config_map("tiny-notes", namespace="llm"))
    world.cluster.apply(foreign, manager="kubectl")
    before = standing(world)

    world.commit("No tiny", {"models/tiny.yaml": None})
    world.advance(DRAIN_SECONDS)
    world.settle()

    mine = {name for name in before if name.split("/")[1].split("-")[0] == "tiny"}
    kept = {name: uid for name, uid in before.items() if name not in mine}
    assert {**kept, "ConfigMap/tiny-notes": before["ConfigMap/tiny-notes"]} == standing(world)
    assert 1 == len(pod_uids(world))
    assert {} == unit_status(world, "ModelService/llm/tiny")
    assert is_clean(world)


def test_an_object_that_a_unit_renders_no_more_goes_alone(world):
    two = {"bundles/side/bundle.yaml": a_bundle("side", ("one.yaml", "side.yaml"))}
    world.commit("Two", {**two, "bundles/side/one.yaml": a_config_map("one")})
    tell(world)
    before = as_it_stands(world)

    world.commit("One", {**the_village(), "bundles/side/one.yaml": None})
    tell(world)

    assert {k: v for k, v in before.items() if k != "ConfigMap/one"} == as_it_stands(world)
    assert is_clean(world)


def test_a_namespace_and_its_children_leave_in_order(settled):
    """cases.md row 81: children once, the namespace last and only with consent."""
    away = NAMESPACE_FILE.replace("llm", "away")
    child = a_config_map("child", namespace="away")
    files = the_fleet(
        side={"away.yaml": away, "child.yaml": child, "stays.yaml": a_config_map("s")}
    )
    world = settled(files, WorldNode("gpu-1"))
    less = {
        "bundles/side/bundle.yaml": a_bundle("side", ("stays.yaml",)),
        "bundles/side/away.yaml": None,
        "bundles/side/child.yaml": None,
    }

    world.commit("Less", less)
    tell(world)

    spaces = [n["metadata"]["name"] for n in world.objects("", "Namespace")]
    assert "away" in spaces, "a namespace is never deleted without consent to that very object"
    assert {} == data(world, "child", "away")
    notes = unit_status(world, SIDE)["notes"]
    assert [("Namespace away", "needs-consent")] == [(n["object"], n["reason"]) for n in notes]
    assert "Stoker-Allow-Delete: " in notes[0]["message"]

    trailer = notes[0]["message"].partition(": ")[2]
    world.commit(f"Less\n\n{trailer}", {})
    world.settle()

    assert "away" not in [n["metadata"]["name"] for n in world.objects("", "Namespace")]
    assert is_clean(world)


# ----------------------------------------------------------------------- what is held
def test_too_many_units_at_once_are_held_with_the_trailer_to_paste(settled):
    """MaxUnits is 10 %, at least 1: two of five units are a mistake until a person says no."""
    world = settled(four_bundles(*NAMES), WorldNode("gpu-1"))

    world.commit("Less", without("alpha", "beta"))
    tell(world)

    status = fleet_status(world)
    assert set(NAMES) <= config_maps(world)
    assert ("False", "PruneHeld") == conditions(status)["Ready"]
    assert ("False", "NotStalled") == conditions(status)["Stalled"]
    told = message(status, "Ready")
    assert "2 units would lose objects and prune.maxUnits allows 1" in told
    trailer = "Stoker-Allow-Delete: Bundle/llm/alpha, Bundle/llm/beta"
    assert trailer in told

    world.commit(f"Yes, really\n\n{trailer}", {})
    tell(world)

    assert {"gamma", "delta"} == config_maps(world) - {"kube-root-ca.crt"}
    assert is_clean(world)


def test_one_unit_at_a_time_needs_no_consent(settled):
    world = settled(four_bundles(*NAMES), WorldNode("gpu-1"))

    for gone in ("alpha", "beta"):
        world.commit(f"No {gone}", without(gone))
        tell(world)

    assert {"gamma", "delta"} == config_maps(world) - {"kube-root-ca.crt"}
    assert is_clean(world)


def test_a_unit_set_that_shrank_to_nothing_deletes_nothing(settled):
    """cases.md row 69: an emptied folder, a wrong include, a merge that went wrong."""
    world = settled(four_bundles(*NAMES), WorldNode("gpu-1"))
    before = as_it_stands(world)

    gone = {path: None for path in four_bundles(*NAMES) if path.startswith("bundles/")}
    world.commit("Where is everything?", gone)
    tell(world)

    assert ("True", "IncludeNoMatch") == conditions(fleet_status(world))["Stalled"]
    assert before == as_it_stands(world)


def test_a_render_that_shrank_to_nothing_deletes_nothing(settled):
    """cases.md row 69, inside one unit: a condition in a template that is now false."""
    template = "{% if values.on %}\n" + a_config_map("made") + "{% endif %}\n"

    def made(*, on: bool) -> dict[str, str]:
        bundle = a_bundle("side", jinja={"paths": ["*.j2"], "values": {"on": on}})
        return {**the_fleet(), "bundles/side/bundle.yaml": bundle, "bundles/side/a.j2": template}

    world = settled(made(on=True), WorldNode("gpu-1"))
    assert {"key": "value"} == data(world, "made")

    world.commit("Off", made(on=False))
    tell(world)

    assert {"key": "value"} == data(world, "made")
    status = unit_status(world, SIDE)
    assert ("True", "NothingRendered") == conditions(status)["Stalled"]

    world.commit("On", made(on=True))
    tell(world)

    assert {"key": "value"} == data(world, "made")
    assert is_clean(world)


def test_prune_mode_never_keeps_what_left_and_says_so(settled):
    world = settled(four_bundles(*NAMES, prune={"mode": "Never"}), WorldNode("gpu-1"))

    world.commit("Less", without("alpha"))
    tell(world)

    assert "alpha" in config_maps(world)
    notes = unit_status(world, "Bundle/llm/alpha")["notes"]
    assert ["prune-never"] == [note["reason"] for note in notes]


def test_prune_mode_confirm_waits_for_the_trailer(settled):
    world = settled(four_bundles(*NAMES, prune={"mode": "Confirm"}), WorldNode("gpu-1"))

    world.commit("Less", without("alpha"))
    tell(world)

    notes = unit_status(world, "Bundle/llm/alpha")["notes"]
    assert "alpha" in config_maps(world)
    assert ["prune-unconfirmed"] == [note["reason"] for note in notes]

    trailer = notes[0]["message"].partition(": ")[2]
    world.commit(f"Yes\n\n{trailer}", {})
    tell(world)

    assert "alpha" not in config_maps(world)
    assert is_clean(world)


# ----------------------------------------------------------------------- what is kept
@pytest.mark.parametrize(
    "annotation",
    [{"stoker.dev/prune": "disabled"}, {"helm.sh/resource-policy": "keep"}],
    ids=["ours", "helm"],
)
def test_an_object_to_be_kept_stays_and_is_told(world, annotation):
    """cases.md row 79: kept in silence, it makes a later install fail."""
    text = a_config_map("side", annotations=annotation)
    world.commit("Keep it", {"bundles/side/side.yaml": text})
    tell(world)

    gone = {"bundles/side/bundle.yaml": None, "bundles/side/side.yaml": None}
    world.commit("No side", gone)
    tell(world)

    status = unit_status(world, SIDE)
    assert {"key": "value"} == data(world, "side")
    assert [("ConfigMap llm/side", "kept-by-policy")] == [
        (note["object"], note["reason"]) for note in status["notes"]
    ]
    assert ("True", "Kept") == conditions(status)["Healthy"]


def test_children_that_copied_our_marks_are_not_ours(world):
    """cases.md row 71: an operator copies all labels and annotations to what it makes.

    reliability-security c.2 row 48.
    """
    parent = world.cluster.get(ObjectRef("", "ConfigMap", "llm", "side"))
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "side",
        "uid": parent["metadata"]["uid"],
    }
    for name, owners in (("child", [owner]), ("copy", [])):
        body = yaml.safe_load(a_config_map(name, namespace="llm"))
        body["metadata"]["annotations"] = parent["metadata"]["annotations"]
        body["metadata"]["labels"] = parent["metadata"].get("labels") or {}
        body["metadata"]["ownerReferences"] = owners
        world.cluster.apply(body, manager="operator")

    world.commit("Other", {"models/other.yaml": None})
    world.advance(DRAIN_SECONDS)
    world.settle()

    assert {"child", "copy", "side"} <= config_maps(world)
    assert is_clean(world)


# ------------------------------------------------------------------ a lost inventory
def test_a_lost_inventory_deletes_nothing_and_is_rebuilt_from_marks(world):
    """cases.md row 73: what nothing proves is listed, never deleted."""
    before = as_it_stands(world)
    for found in world.objects("", "ConfigMap", "stoker-system"):
        place = ObjectRef("", "ConfigMap", "stoker-system", found["metadata"]["name"])
        world.cluster.delete(place)
    world.stop_controller()

    world.commit("No side", {"bundles/side/bundle.yaml": None, "bundles/side/side.yaml": None})
    world.one_pass()

    assert before == as_it_stands(world)
    rebuilt = [c["metadata"]["name"] for c in world.objects("", "ConfigMap", "stoker-system")]
    assert 2 <= len(rebuilt)

    world.settle()

    gone = {name: value for name, value in before.items() if name != "ConfigMap/side"}
    assert gone == as_it_stands(world)
    assert is_clean(world)


def test_an_inventory_lost_under_a_running_controller_deletes_nothing(world):
    """Somebody cleans up ConfigMaps that look like nobody's."""
    before = as_it_stands(world)
    for found in world.objects("", "ConfigMap", "stoker-system"):
        place = ObjectRef("", "ConfigMap", "stoker-system", found["metadata"]["name"])
        world.cluster.delete(place)

    world.settle()

    assert before == as_it_stands(world)
    assert is_clean(world)

    world.commit("No tiny", {"models/tiny.yaml": None})
    world.advance(DRAIN_SECONDS)
    world.settle()

    assert {name.split("/")[1].split("-")[0] for name in as_it_stands(world)} == {"other", "side"}
    assert is_clean(world)


def test_an_object_whose_mark_was_taken_off_is_given_its_mark_back_or_kept(world):
    """While it is rendered the mark is drift; once it left Git nothing proves it ours."""
    ref = ObjectRef("", "ConfigMap", "llm", "side")
    no_mark = {"metadata": {"annotations": {names.OWNER: None}}}
    world.cluster.patch(ref, "merge", no_mark, manager="kubectl")
    tell(world)

    assert names.OWNER in world.cluster.get(ref)["metadata"]["annotations"]

    world.commit("No side", {"bundles/side/bundle.yaml": None, "bundles/side/side.yaml": None})
    world.cluster.patch(ref, "merge", no_mark, manager="kubectl")
    tell(world)

    assert {"key": "value"} == data(world, "side")
    assert ["owner-mark-missing"] == [n["reason"] for n in unit_status(world, SIDE)["notes"]]


def test_a_fleet_file_that_comes_back_finds_everything_as_it_was(world):
    before = as_it_stands(world)
    world.commit("Gone", {FLEET: None, "models/tiny.yaml": None})
    tell(world)

    assert before == as_it_stands(world)

    world.commit("Back", {**the_village(tiny=a_service(replicas=2))})
    tell(world)

    assert before == as_it_stands(world)
    assert is_clean(world)
