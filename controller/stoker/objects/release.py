"""Gives one object up: our managedFields entries and marks go, every value stays.

A live object (metadata is enough) comes in, a JSON patch goes out. It tests UID and
resourceVersion first, so that nothing written meanwhile is undone. Used by apply.release.
"""

from __future__ import annotations

from typing import Any

from stoker.model.refs import ObjectRef
from stoker.objects.names import ADOPTED, OWNER, fleet_of_mark, manager_of

__all__ = ["is_held", "release_patch"]


def is_held(body: dict[str, Any], ref: ObjectRef, fleet_id: str) -> bool:
    """Whether the object bears this fleet's mark, or an entry of its manager."""
    metadata = body.get("metadata") or {}
    mark = str((metadata.get("annotations") or {}).get(OWNER, ""))
    if fleet_of_mark(mark, ref) == fleet_id:
        return True
    entries = metadata.get("managedFields") or ()
    return any(entry.get("manager") == manager_of(fleet_id) for entry in entries)


def release_patch(body: dict[str, Any], ref: ObjectRef, fleet_id: str) -> list[dict[str, Any]]:
    """The JSON patch after which nothing of the object says that this fleet manages it.

    An entry that is only taken out leaves its fields as they are, with no owner (ssa-facts
    20). Another fleet's mark stays.
    """
    metadata = body["metadata"]
    annotations = metadata.get("annotations") or {}
    entries = metadata.get("managedFields") or ()
    others = [entry for entry in entries if entry.get("manager") != manager_of(fleet_id)]
    patch: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ]
    if len(others) != len(entries):
        patch.append({"op": "replace", "path": "/metadata/managedFields", "value": others})
    if fleet_of_mark(str(annotations.get(OWNER, "")), ref) == fleet_id:
        patch += [
            {"op": "remove", "path": f"/metadata/annotations/{key.replace('/', '~1')}"}
            for key in (OWNER, ADOPTED)
            if key in annotations
        ]
    return patch
