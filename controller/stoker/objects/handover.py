"""After an adoption: what Git says is Git's alone, so that a field that leaves Git leaves.

`kubectl apply` and helm own every field they ever wrote. While they share one with us, an
apply without it removes nothing (ssa-facts 16): the object would keep it for ever, and
nothing would be printed. A live object comes in, a JSON patch of managedFields goes out.
Used by apply.send.
"""

from __future__ import annotations

from typing import Any

from stoker.objects.conflicts import is_persons_tool
from stoker.objects.fieldset import FieldSet, parse_fields_v1
from stoker.objects.owned import our_fields

__all__ = ["handover_patch"]


def handover_patch(live: dict[str, Any], manager: str) -> list[dict[str, Any]]:
    """The patch that takes our fields out of the entries of people's tools; empty for none.

    No value changes. What such a tool owns beyond ours stays its own; entries of
    controllers, of subresources and in another API version are left alone.
    """
    metadata = live["metadata"]
    ours = our_fields(live, manager)
    entries = metadata.get("managedFields") or ()
    left = [entry for before in entries if (entry := _less(before, ours, live))]
    if not ours or left == list(entries):
        return []
    return [
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        {"op": "replace", "path": "/metadata/managedFields", "value": left},
    ]


def _less(entry: dict[str, Any], ours: FieldSet, live: dict[str, Any]) -> dict[str, Any] | None:
    """The entry without our fields; None when nothing is left of it."""
    tool = is_persons_tool(str(entry.get("manager", ""))) and not entry.get("subresource")
    if not tool or entry.get("apiVersion") != live.get("apiVersion"):
        return entry
    fields = parse_fields_v1(entry.get("fieldsV1"))
    left = fields.difference(ours)
    if left == fields:
        return entry
    return {**entry, "fieldsV1": left.to_v1()} if left else None
