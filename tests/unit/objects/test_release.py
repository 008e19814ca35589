"""Giving an object up: only entries and marks change."""

from __future__ import annotations

import copy

import jsonpatch
import pytest

from fakes_live import applied_by, updated_by
from stoker.model.refs import ref_from_manifest
from stoker.objects import names
from stoker.objects.owned import owners
from stoker.objects.release import is_held, release_patch
from unit.diff.diff_builders import FLEET_ID, US, A, config, deployment, marked


def patched(body, patch):
    return jsonpatch.apply_patch(copy.deepcopy(body), patch)


def without_marks(body):
    """Everything but managedFields and the marks."""
    metadata = {k: v for k, v in body["metadata"].items() if k != "managedFields"}
    annotations = metadata.get("annotations") or {}
    metadata["annotations"] = {k: v for k, v in annotations.items() if not stamped(k)}
    labels = metadata.get("labels") or {}
    metadata["labels"] = {k: v for k, v in labels.items() if not stamped(k)}
    return {**body, "metadata": metadata}


def stamped(key: str) -> bool:
    return key.startswith("stoker.dev/") or key == names.MANAGED_BY


def test_a_released_object_says_nothing_of_us_and_keeps_every_value():
    live = updated_by(
        "operator", applied_by(US, marked(A, deployment())), {"spec": {"paused": True}}
    )
    ref = ref_from_manifest(live)
    after = patched(live, release_patch(live, ref, FLEET_ID))

    assert is_held(live, ref, FLEET_ID)
    assert not is_held(after, ref, FLEET_ID)
    assert without_marks(live) == without_marks(after)
    assert ["operator"] == [owner.manager for owner in owners(after)]


STAMPS = {
    "annotations": {
        names.REV: "1a2b3c4d",
        names.TEMPLATE: "adopted",
        names.SOURCE: "models/a.yaml",
        names.NODE: "gpu-1",
        names.NODE_UID: "uid-1",
        names.NODES: "gpu-1,gpu-2",
        names.DOMAIN: "a",
        names.PREFETCH_MODEL: "hf://a@b",
    },
    "labels": {
        names.FLEET_LABEL: "local",
        names.SERVICE_LABEL: "a",
        names.PLACEMENT_LABEL: "x",
        names.PREFETCH_LABEL: "a",
        names.MANAGED_BY: "stoker",
    },
}


def a_placement(**labels: str):
    body = marked(A, deployment())
    metadata = body["metadata"]
    metadata["annotations"] = {**metadata["annotations"], **STAMPS["annotations"], "team": "ml"}
    metadata["labels"] = {**STAMPS["labels"], "app.kubernetes.io/name": "a", **labels}
    body["spec"]["template"]["metadata"] = {"labels": dict(metadata["labels"])}
    return body


def test_all_that_we_stamped_goes_and_the_pod_template_stays():
    """A workload that nobody manages must not say of which service and node it is."""
    live = applied_by(US, a_placement())
    after = patched(live, release_patch(live, ref_from_manifest(live), FLEET_ID))

    assert {"team": "ml"} == after["metadata"]["annotations"]
    assert {"app.kubernetes.io/name": "a"} == after["metadata"]["labels"]
    assert live["spec"] == after["spec"]


def test_a_label_that_another_owns_too_stays():
    """Somebody else asks for it: it is not ours to take off."""
    body = a_placement()
    identity = {key: body["metadata"][key] for key in ("name", "namespace")}
    labels = {names.SERVICE_LABEL: "a"}
    theirs = {key: body[key] for key in ("apiVersion", "kind")}
    theirs["metadata"] = {**identity, "labels": labels}
    live = updated_by("operator", applied_by(US, body), {"metadata": {"labels": {"more": "x"}}})
    live = applied_by("monitoring", theirs, live)
    after = patched(live, release_patch(live, ref_from_manifest(live), FLEET_ID))

    assert {names.SERVICE_LABEL, "more", "app.kubernetes.io/name"} == set(
        after["metadata"]["labels"]
    )


def test_what_git_wrote_for_people_stays():
    """Consent and protection stand in the manifest, and stay with the object as its data do."""
    body = marked(A, config())
    body["metadata"]["annotations"][names.PRUNE] = "disabled"
    body["metadata"]["labels"] = {names.MANAGED_BY: "helm"}
    live = applied_by(US, body)
    after = patched(live, release_patch(live, ref_from_manifest(live), FLEET_ID))

    assert {names.PRUNE: "disabled"} == after["metadata"]["annotations"]
    assert {names.MANAGED_BY: "helm"} == after["metadata"]["labels"]


def test_another_fleets_mark_stays():
    body = config(annotations={names.OWNER: names.owner_mark("f2", A, ref_from_manifest(config()))})
    live = applied_by(US, body, applied_by("stoker-f2", body))
    after = patched(live, release_patch(live, ref_from_manifest(live), FLEET_ID))

    assert names.OWNER in after["metadata"]["annotations"]
    assert ["stoker-f2"] == [owner.manager for owner in owners(after)]


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_an_object_that_changed_meanwhile_is_not_touched(field):
    live = applied_by(US, marked(A, config()))
    patch = release_patch(live, ref_from_manifest(live), FLEET_ID)
    live["metadata"][field] = "other"

    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        patched(live, patch)
