"""managedFields as data: who owns which fields of one object.

In: the managedFields list of a manifest. Out: Entries that objects.ssa changes, and the list
again, ordered as the server orders it. Used by objects.ssa and the in-memory API server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from stoker.objects.fieldset_trees import Tree, union

__all__ = [
    "APPLY",
    "UPDATE",
    "Entries",
    "Entry",
    "Owner",
    "capped",
    "entries_from_managed_fields",
    "managed_fields_from_entries",
    "managed_fields_list",
]

APPLY: Final = "Apply"
UPDATE: Final = "Update"

MAX_UPDATE_MANAGERS: Final = 10
"""The server merges the oldest Update entries above this number into one bucket."""
BUCKET: Final = "ancient-changes"


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """What tells two entries apart. `api_version` is empty for Apply: it doesn't count."""

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        """Name the owner as conflict messages do."""
        text = json.dumps(self.manager, ensure_ascii=False)
        if self.subresource:
            text += f" with subresource {json.dumps(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text

    @property
    def sort_key(self) -> str:
        """The order in which conflict messages list owners (the server sorts JSON texts)."""
        parts: dict[str, str] = {"manager": self.manager, "operation": self.operation}
        if self.api_version:
            parts["apiVersion"] = self.api_version
        if self.subresource:
            parts["subresource"] = self.subresource
        return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """One owner's fields. `time` is RFC 3339 or empty; `fields` a fieldsV1 tree."""

    owner: Owner
    api_version: str
    time: str = ""
    fields: Tree = field(default_factory=dict, hash=False)

    def with_fields(self, fields: Tree) -> Entry:
        """The same entry with other fields."""
        return replace(self, fields=fields)


Entries = dict[Owner, Entry]


def entries_from_managed_fields(managed: Iterable[dict[str, Any]] | None) -> Entries:
    """Read a managedFields list; of several entries of one owner the last counts, as there."""
    entries: Entries = {}
    for raw in managed or ():
        operation = str(raw.get("operation", UPDATE))
        api_version = str(raw.get("apiVersion", ""))
        owner = Owner(
            str(raw.get("manager", "")),
            operation,
            "" if operation == APPLY else api_version,
            str(raw.get("subresource", "")),
        )
        fields = raw.get("fieldsV1") or {}
        entries[owner] = Entry(owner, api_version, str(raw.get("time") or ""), fields)
    return entries


def managed_fields_from_entries(entries: Entries) -> list[dict[str, Any]]:
    """The managedFields list: Applies first, then by time, then by name."""
    return managed_fields_list(entries.values())


def managed_fields_list(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The same for entries of which several may have one owner."""
    ordered = sorted(
        entries,
        key=lambda e: (
            e.owner.operation,
            e.time,
            e.owner.manager,
            e.api_version,
            e.owner.subresource,
        ),
    )
    return [_raw(entry) for entry in ordered]


def _raw(entry: Entry) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "manager": entry.owner.manager,
        "operation": entry.owner.operation,
        "apiVersion": entry.api_version,
    }
    if entry.time:
        raw["time"] = entry.time
    raw["fieldsType"] = "FieldsV1"
    raw["fieldsV1"] = entry.fields
    if entry.owner.subresource:
        raw["subresource"] = entry.owner.subresource
    return raw


def capped(entries: Entries) -> Entries:
    """The entries with the oldest Updates joined where there are more than ten."""
    updates = sorted(
        (e for e in entries.values() if e.owner.operation == UPDATE),
        key=lambda e: (e.time, e.owner.sort_key),
    )
    excess = len(updates) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return entries
    out = dict(entries)
    first: dict[str, Entry] = {}
    for entry in updates:
        if excess <= 0:
            break
        version = entry.api_version
        if version not in first:
            first[version] = entry
            continue
        bucket = Owner(BUCKET, UPDATE, version)
        if entry.owner == bucket:
            continue
        if bucket not in out:
            del out[first[version].owner]
            out[bucket] = Entry(bucket, version, entry.time, first[version].fields)
        fields = union(out[bucket].fields, entry.fields)
        out[bucket] = Entry(bucket, version, entry.time, fields)
        del out[entry.owner]
        excess -= 1
    return out
