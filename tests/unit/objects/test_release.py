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
    ours = {names.OWNER, names.ADOPTED}
    metadata["annotations"] = {k: v for k, v in annotations.items() if k not in ours}
    return {**body, "metadata": metadata}


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
