"""What several writers of the in-memory API server share: entries in manifests, and texts.

In: manifests. Out: manifests with other managedFields, and the server's words for what is
wrong. Used by memory_write, memory_commit and memory_scale.
"""

from __future__ import annotations

from typing import Any, Final

from stoker.kube.memory_call import Call
from stoker.kube.memory_errors import StatusAnswer
from stoker.kube.memory_store import Stored
from stoker.objects.ssa import FieldConflicts, conflict_message
from stoker.objects.ssa_entries import (
    Entries,
    entries_from_managed_fields,
    managed_fields_from_entries,
)

__all__ = [
    "MODIFIED_TEXT",
    "SYSTEM_FIELDS",
    "bare",
    "conflict_answer",
    "entries_of",
    "gvk_text",
    "sent_entries",
    "uid_text",
    "with_entries",
    "without",
]

Json = dict[str, Any]

SYSTEM_FIELDS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
"""Metadata that only the server sets."""
MODIFIED_TEXT: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def bare(manifest: Json) -> Json:
    """The manifest without managedFields: what ownership is counted over."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return manifest
    return {**manifest, "metadata": without(metadata, "managedFields")}


def gvk_text(api_version: Any, kind: Any) -> str:
    """`apps/v1, Kind=Deployment`, and `/v1, Kind=ConfigMap` for the core group."""
    text = str(api_version or "")
    return f"{text if '/' in text else '/' + text}, Kind={kind or ''}"


def uid_text(call: Call, uid: str, live: Stored) -> str:
    """What storage says about a wrong UID in a PUT."""
    held = live.manifest["metadata"]["uid"]
    root = f"/registry/{call.resource.plural}/{call.namespace}/{call.name}".replace("//", "/")
    return (
        f"StorageError: invalid object, Code: 4, Key: {root}, ResourceVersion: 0,"
        f" AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object"
        f" meta: {held}"
    )


def conflict_answer(refused: FieldConflicts) -> StatusAnswer:
    """409 with a cause for each field and owner."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {one.owner}",
            "field": one.path,
        }
        for one in refused.conflicts
    ]
    text = conflict_message(refused.conflicts)
    return StatusAnswer(409, "Conflict", text, {"causes": causes})


def with_entries(manifest: Json, entries: Entries) -> Json:
    """The manifest with those managedFields."""
    metadata = without(manifest["metadata"], "managedFields")
    if entries:
        metadata["managedFields"] = managed_fields_from_entries(entries)
    return {**manifest, "metadata": metadata}


def entries_of(manifest: Json) -> Entries:
    """The entries of a manifest."""
    return entries_from_managed_fields(manifest["metadata"].get("managedFields"))


def sent_entries(new: Json, live: Json, *, trusts_body: bool) -> Entries:
    """The entries to start from: the body's when it has some, none when it resets them."""
    sent = new["metadata"].get("managedFields") if trusts_body else None
    if sent is not None and (sent in ([], [{}])):
        return {}
    return entries_of(new) if sent else entries_of(live)


def without(target: Json, *keys: str) -> Json:
    """A copy without those keys."""
    return {key: value for key, value in target.items() if key not in keys}
