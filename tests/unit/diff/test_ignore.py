"""Ignore rules: others' fields are left alone in diff and apply, and nothing is triggered.

The replica fight of two tools is what they are for (gitops.md 2.2, Flux 1.9).
"""

from dataclasses import replace
from typing import Any

import pytest

from fakes_live import FakeLive, applied_by, updated_by
from stoker.diff import DiffMemo, diff
from stoker.model.change import Action
from stoker.model.ignore_rule import IgnoreRule
from stoker.objects import names
from stoker.objects.inventory import Inventory
from unit.diff.diff_builders import (
    FLEET_ID,
    NO_CLUSTER,
    US,
    A,
    config,
    deployment,
    desired,
    marked,
    rendered,
)

REPLICAS = IgnoreRule(paths=("/spec/replicas",), kind="Deployment")


def judged(body, live, *rules):
    fleet = desired(A)
    fleet = replace(fleet, fleet=replace(fleet.fleet, ignore=rules))
    view = FakeLive()
    view.put(live)
    memo = DiffMemo()
    sets = (rendered(A, body),)
    inventory = Inventory(FLEET_ID, "prod")
    (unit,) = diff(fleet, sets, view, inventory, NO_CLUSTER, FLEET_ID, memo).units
    (change,) = unit.changes
    return change


def ours(body):
    return applied_by(US, marked(A, body))


def by_other(live, path, value, manager="other-tool"):
    """The live object after somebody else's update."""
    patch = value
    for key in reversed(path):
        patch = {key: patch}
    return updated_by(manager, live, patch)


@pytest.mark.parametrize("manager", ["kubectl-edit", "other-tool", "kube-controller-manager"])
def test_a_change_of_an_ignored_field_alone_triggers_nothing(manager):
    live = by_other(ours(deployment(replicas=2)), ("spec", "replicas"), 5, manager)
    change = judged(deployment(replicas=2), live, REPLICAS)

    assert change.action is Action.UNCHANGED
    assert change.left_to_others == (("spec.replicas", "ignored by the fleet's rules"),)


def test_a_change_of_git_in_an_ignored_field_alone_triggers_nothing():
    """Still ours and nobody else's: the live value is kept, and so is our ownership."""
    change = judged(deployment(replicas=7), ours(deployment(replicas=2)), REPLICAS)

    assert change.action is Action.UNCHANGED


def test_beside_another_change_the_live_value_goes_along():
    """Left out, it would fall to its default: 4 replicas became 1 (ssa-facts 15)."""
    change = judged(deployment(replicas=7, image="x:2"), ours(deployment(replicas=4)), REPLICAS)

    assert [f.path for f in change.fields] == ["spec.template.spec.containers[name=engine].image"]
    assert change.payload["spec"]["replicas"] == 4


def test_beside_another_change_a_field_of_others_is_stripped():
    live = by_other(ours(deployment(replicas=2)), ("spec", "replicas"), 5)
    change = judged(deployment(replicas=2, image="x:2"), live, REPLICAS)

    assert change.action is Action.CHANGE
    assert "replicas" not in change.payload["spec"]


def test_a_shared_field_is_given_up_with_the_next_write_only():
    """Two appliers of one value: silence triggers no write, a write ends the sharing."""
    live = ours(deployment(replicas=2))
    theirs = {k: v for k, v in deployment(replicas=2).items() if k != "spec"}
    shared = applied_by("argocd-controller", {**theirs, "spec": {"replicas": 2}}, live)

    assert judged(deployment(replicas=3), shared, REPLICAS).action is Action.UNCHANGED
    written = judged(deployment(replicas=3, image="x:2"), shared, REPLICAS)
    assert "replicas" not in written.payload["spec"]


def test_a_field_that_left_git_stays_while_it_is_ignored():
    live = ours(config(data={"a": "1", "b": "1"}))
    change = judged(config(data={"a": "1"}), live, IgnoreRule(paths=("/data/b",)))

    assert change.action is Action.UNCHANGED


def test_a_whole_map_can_be_ignored_and_the_owner_mark_never():
    live = by_other(
        ours(config(annotations={"x": "1"})), ("metadata", "annotations", "x"), "2", "labeller"
    )
    rule = IgnoreRule(paths=("/metadata/annotations",))
    assert judged(config(annotations={"x": "1"}), live, rule).action is Action.UNCHANGED
    mark = live["metadata"]["annotations"][names.OWNER]
    stolen = by_other(live, ("metadata", "annotations", names.OWNER), "else", "kubectl-edit")
    back = by_other(stolen, ("metadata", "annotations", names.OWNER), mark, "kubectl-edit")

    change = judged(config(annotations={"x": "1"}), back, rule)
    assert change.action is Action.CHANGE
    assert change.payload["metadata"]["annotations"] == {names.OWNER: mark}


def test_an_item_of_a_keyed_list_is_named_by_its_place_in_git():
    live = by_other(
        ours(deployment()),
        ("spec", "template", "spec", "containers"),
        [{"name": "engine", "image": "mirror/x:1"}],
    )
    rule = IgnoreRule(paths=("/spec/template/spec/containers/0/image",))

    assert judged(deployment(), live, rule).action is Action.UNCHANGED


@pytest.mark.parametrize(
    ("rule", "applies"),
    [
        (IgnoreRule(("/data/a",)), True),
        (IgnoreRule(("/data/a",), kind="ConfigMap", name="c", namespace="llm"), True),
        (IgnoreRule(("/data/a",), kind="Secret"), False),
        (IgnoreRule(("/data/a",), name="other"), False),
        (IgnoreRule(("/data/a",), namespace="other"), False),
        (IgnoreRule(("/data/a",), label_selector="app=x"), True),
        (IgnoreRule(("/data/a",), label_selector="app!=x"), False),
        (IgnoreRule(("/data/a",), annotation_selector="note in (y)"), True),
        (IgnoreRule(("/data/a",), annotation_selector="!note"), False),
        (IgnoreRule(("/data/a~1b",)), False),
    ],
)
def test_a_rule_is_for_its_target_alone(rule, applies):
    marks: dict[str, Any] = {"labels": {"app": "x"}, "annotations": {"note": "y"}}
    live = by_other(ours(config(**marks)), ("data", "a"), "theirs", "kubectl-edit")
    change = judged(config(**marks), live, rule)

    assert (change.action is Action.UNCHANGED) == applies


def test_a_new_object_is_made_whole():
    fleet = desired(A)
    fleet = replace(fleet, fleet=replace(fleet.fleet, ignore=(REPLICAS,)))
    inventory = Inventory(FLEET_ID, "prod")
    sets = (rendered(A, deployment(replicas=3)),)
    (unit,) = diff(fleet, sets, FakeLive(), inventory, NO_CLUSTER, FLEET_ID, DiffMemo()).units

    payload = unit.changes[0].payload
    assert payload is not None
    assert payload["spec"]["replicas"] == 3
