"""The frozen template: while rev stands, nothing of Git restarts a pod."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from fakes_live import FakeLive, applied_by, updated_by
from stoker.diff import DiffMemo, diff
from stoker.model.change import Action, Impact
from stoker.objects import names
from stoker.objects.inventory import Inventory
from stoker.objects.owned import our_fields
from unit.diff.diff_builders import (
    FLEET_ID,
    NO_CLUSTER,
    QWEN,
    US,
    desired,
    marked,
    placement,
    rendered,
)
from unit.objects.manifest_strategies import containers, labels

TEMPLATE = "spec.template"


def judged(body, live):
    changes = diff(
        desired(QWEN),
        (rendered(QWEN, body),),
        FakeLive().put(live),
        Inventory(FLEET_ID, "prod"),
        NO_CLUSTER,
        FLEET_ID,
        DiffMemo(),
    )
    return changes.units[0].changes[0]


def standing(**options):
    return applied_by(US, marked(QWEN, placement(**options)))


def test_a_new_label_in_git_waits_for_the_next_rev():
    """Design section 4: labels never restart a pod; they are reported as held back."""
    change = judged(placement(labels={"team": "x"}), standing())

    assert change.action is Action.UNCHANGED
    assert change.held_back == (f"{TEMPLATE}.metadata.labels.team",)


def test_a_changed_label_waits_for_the_next_rev():
    change = judged(placement(labels={"team": "y"}), standing(labels={"team": "x"}))

    assert change.action is Action.UNCHANGED
    assert change.held_back == (f"{TEMPLATE}.metadata.labels.team",)


def test_a_label_that_left_git_waits_for_the_next_rev():
    change = judged(placement(), standing(labels={"team": "x"}))

    assert change.action is Action.UNCHANGED
    assert change.held_back == (f"{TEMPLATE}.metadata.labels.team",)


def test_another_place_in_the_template_waits_for_the_next_rev():
    """The pool's labels moved in the Fleet file: running pods stay."""
    changed = placement()
    changed[TEMPLATE.split(".", maxsplit=1)[0]]["template"]["spec"]["nodeSelector"] = {"pool": "b"}
    live = placement()
    live["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "a"}
    change = judged(changed, applied_by(US, marked(QWEN, live)))

    assert change.action is Action.UNCHANGED
    assert change.held_back == (f"{TEMPLATE}.spec.nodeSelector",)


def test_another_order_in_the_template_waits_for_the_next_rev():
    one = placement(container={"env": [{"name": "A"}, {"name": "B"}]})
    other = placement(container={"env": [{"name": "B"}, {"name": "A"}]})
    change = judged(other, applied_by(US, marked(QWEN, one)))

    assert change.action is Action.UNCHANGED
    assert change.held_back == (f"{TEMPLATE}.spec.containers[name=engine].env.(order)",)


def test_the_rest_of_the_object_still_changes():
    change = judged(placement(replicas=3, labels={"team": "x"}), standing())

    assert [(f.path, f.before, f.after) for f in change.fields] == [("spec.replicas", 2, 3)]
    assert change.impact is Impact.SCALE
    assert "team" not in change.payload["spec"]["template"]["metadata"]["labels"]
    assert change.held_back


def test_another_rev_changes_the_template():
    change = judged(placement(rev="r2", image="x:2"), standing())

    assert change.impact is Impact.RESTART
    assert change.held_back == ()


def test_an_image_that_a_person_set_is_taken_back():
    """A drifted template is repaired, although its rev says it is the same."""
    image = {
        "spec": {"template": {"spec": {"containers": [{"name": "engine", "image": "x:evil"}]}}}
    }
    change = judged(placement(), updated_by("kubectl-set", standing(), image))

    assert [(f.before, f.after) for f in change.fields] == [("x:evil", "x:1")]
    assert "kubectl-set" in change.note


def test_a_field_of_another_controller_in_the_template_is_left():
    image = {
        "spec": {"template": {"spec": {"containers": [{"name": "engine", "image": "x:proxy"}]}}}
    }
    change = judged(placement(), updated_by("image-proxy", standing(), image))

    assert change.action is Action.UNCHANGED
    assert [path for path, _ in change.left_to_others] == [
        f"{TEMPLATE}.spec.containers[name=engine].image"
    ]


def test_a_deleted_env_variable_is_put_back():
    """ssa-facts 17: who deletes a field leaves no entry; equal revs say that it was there."""
    body = placement(container={"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]})
    less = copy.deepcopy(placement(container={"env": [{"name": "A", "value": "1"}]}))
    live = applied_by(US, marked(QWEN, less), applied_by(US, marked(QWEN, body)))
    change = judged(body, live)

    assert [f.path for f in change.fields] == [
        f"{TEMPLATE}.spec.containers[name=engine].env[name=B]"
    ]


def test_a_removed_traffic_label_is_put_back():
    """No template version was ever without it: where it is missing, somebody took it off."""
    less = placement()
    del less["spec"]["template"]["metadata"]["labels"][names.TRAFFIC_LABEL]
    live = applied_by(US, marked(QWEN, less))
    change = judged(placement(), live)

    assert [f.path for f in change.fields] == [f"{TEMPLATE}.metadata.labels[{names.TRAFFIC_LABEL}]"]


def test_a_label_that_a_person_changed_is_drift():
    live = standing(labels={"team": "x"})
    live = updated_by(
        "kubectl-label", live, {"spec": {"template": {"metadata": {"labels": {"team": "z"}}}}}
    )
    change = judged(placement(labels={"team": "x"}), live)

    assert [(f.before, f.after) for f in change.fields] == [("z", "x")]


def test_a_restart_annotation_of_a_person_survives():
    """ssa-facts 63: `kubectl rollout restart` writes a field that is not ours."""
    annotation = {"kubectl.kubernetes.io/restartedAt": "2026-01-01"}
    live = updated_by(
        "kubectl-rollout",
        standing(),
        {"spec": {"template": {"metadata": {"annotations": annotation}}}},
    )

    assert judged(placement(), live).action is Action.UNCHANGED


def test_an_object_that_we_never_applied_is_not_frozen():
    change = judged(placement(), applied_by("kubectl", marked(QWEN, placement(image="x:0"))))

    assert change.action is Action.CHANGE
    assert change.held_back == ()


@settings(deadline=None)
@given(containers, labels, labels)
def test_while_rev_stands_no_label_or_annotation_reaches_a_pod(items, before, after):
    """Property: history, labels and annotations never change a running template."""
    one, two = placement(), placement()
    for body, found in ((one, before), (two, after)):
        template = body["spec"]["template"]
        template["spec"]["containers"] = copy.deepcopy(items)
        template["metadata"]["labels"].update(found)
        template["metadata"]["annotations"] = dict(found)
    live = applied_by(US, marked(QWEN, one))
    change = judged(two, live)

    assert change.action is Action.UNCHANGED
    assert bool(change.held_back) == (before != after)


@settings(deadline=None)
@given(containers, st.data())
def test_a_frozen_payload_changes_neither_template_nor_ownership(items, data):
    one, two = placement(), placement(replicas=5)
    for body in (one, two):
        body["spec"]["template"]["spec"]["containers"] = copy.deepcopy(items)
    two["spec"]["template"]["metadata"]["labels"].update(data.draw(labels))
    live = applied_by(US, marked(QWEN, one))
    change = judged(two, live)
    after = applied_by(US, change.payload, live)

    assert live["spec"]["template"] == after["spec"]["template"]
    assert our_fields(live, US) == our_fields(after, US)
