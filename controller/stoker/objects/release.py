"""Gives one object up: our managedFields entries and marks go, every value stays.

A live object (metadata is enough) comes in, a JSON patch goes out. It tests UID and
resourceVersion first, so that nothing written meanwhile is undone. Used by apply.release.
"""

from __future__ import annotations

from typing import Any

from stoker.model.refs import ObjectRef
from stoker.objects.names import (
    ADOPTED,
    DOMAIN,
    FLEET_LABEL,
    MANAGED_BY,
    NODE,
    NODE_UID,
    NODES,
    OWNER,
    PLACEMENT_LABEL,
    PREFETCH_LABEL,
    PREFETCH_MODEL,
    REV,
    SERVICE_LABEL,
    SOURCE,
    TEMPLATE,
    fleet_of_mark,
    manager_of,
)
from stoker.objects.owned import owners

__all__ = ["is_held", "release_patch"]

_ANNOTATIONS = (
    *(OWNER, ADOPTED, REV, TEMPLATE, SOURCE),
    *(NODE, NODE_UID, NODES, DOMAIN, PREFETCH_MODEL),
)
_LABELS = (FLEET_LABEL, SERVICE_LABEL, PLACEMENT_LABEL, PREFETCH_LABEL, MANAGED_BY)
"""What we stamp on the object itself. The pod template's labels stay: they select its pods."""


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
    20). Stamps go unless others own them too; the pod template is never touched. Another
    fleet's mark stays.
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
        labels = metadata.get("labels") or {}
        patch += [
            {"op": "remove", "path": f"/metadata/{place}/{key.replace('/', '~1')}"}
            for place, keys, values in (
                ("annotations", _ANNOTATIONS, annotations),
                ("labels", _LABELS, labels),
            )
            for key in keys
            if key in values
            and (key != MANAGED_BY or values[key] == "stoker")
            and not _is_shared(body, place, key, fleet_id)
        ]
    return patch


def _is_shared(body: dict[str, Any], place: str, key: str, fleet_id: str) -> bool:
    """Whether a manager that is not ours owns the annotation or label too."""
    path = ("f:metadata", f"f:{place}", f"f:{key}")
    ours = manager_of(fleet_id)
    return any(path in owner.fields for owner in owners(body) if owner.manager != ours)
