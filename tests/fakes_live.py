"""A dict-backed LiveView, and live objects as the API server would hold them after an apply."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from stoker.model.live import LiveObject
from stoker.model.refs import ObjectRef, ref_from_manifest
from stoker.objects import names
from stoker.objects.owned import schema_of
from stoker.objects.ssa import Writer, apply_manifest, track_update
from stoker.objects.ssa_entries import entries_from_managed_fields, managed_fields_from_entries
from stoker.objects.ssa_merge import merge

__all__ = ["FakeLive", "applied_by", "live_object", "updated_by"]


@dataclass
class FakeLive:
    """Everything is known and absent but for what is put in."""

    objects: dict[ObjectRef, LiveObject] = field(default_factory=dict)
    unknown: dict[ObjectRef, str] = field(default_factory=dict)
    missing_kinds: set[tuple[str, str]] = field(default_factory=set)
    unread_kinds: set[tuple[str, str]] = field(default_factory=set)
    phases: dict[str, str] = field(default_factory=dict)
    scalers: dict[ObjectRef, str] | None = field(default_factory=dict)

    def put(self, *bodies: dict[str, Any]) -> FakeLive:
        """Add live objects."""
        for body in bodies:
            found = live_object(body)
            self.objects[found.ref] = found
        return self

    def get(self, ref: ObjectRef) -> LiveObject | None:
        return self.objects.get(ref)

    def known(self, ref: ObjectRef) -> bool:
        return ref not in self.unknown

    def owned(self, fleet_id: str) -> tuple[LiveObject, ...]:
        found = [o for o in self.objects.values() if names.unit_of_mark(o.owner, fleet_id, o.ref)]
        return tuple(sorted(found, key=lambda o: o.ref))

    def why_unknown(self, ref: ObjectRef) -> str:
        return self.unknown.get(ref, "")

    def has_kind(self, ref: ObjectRef) -> bool | None:
        if (ref.group, ref.kind) in self.unread_kinds:
            return None
        return (ref.group, ref.kind) not in self.missing_kinds

    def is_namespaced(self, ref: ObjectRef) -> bool:
        return bool(ref.namespace)

    def namespace_phase(self, name: str) -> str:
        return self.phases.get(name, "Active")

    def scaler(self, ref: ObjectRef) -> str | None:
        return None if self.scalers is None else self.scalers.get(ref, "")


def live_object(body: dict[str, Any]) -> LiveObject:
    """A live manifest as the caches hold it."""
    metadata = body["metadata"]
    return LiveObject(
        ref=ref_from_manifest(body),
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
        owner=(metadata.get("annotations") or {}).get(names.OWNER, ""),
        body=body,
    )


def applied_by(
    manager: str,
    manifest: dict[str, Any],
    live: dict[str, Any] | None = None,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """What stands after a server-side apply, defaults and validation left out."""
    bare, entries = _split(live)
    writer = Writer(manager, str(manifest["apiVersion"]))
    root = schema_of(manifest).root
    done = apply_manifest(bare, entries, copy.deepcopy(manifest), root, writer, force=force)
    return _joined(done.object, done.entries, live)


def updated_by(
    manager: str, live: dict[str, Any], patch: dict[str, Any], *, subresource: str = ""
) -> dict[str, Any]:
    """What stands after somebody else's merge patch; a null in it removes the field."""
    bare, entries = _split(live)
    root = schema_of(live).root
    new = _without_nulls(merge(bare, copy.deepcopy(patch), root))
    writer = Writer(manager, str(live["apiVersion"]), subresource)
    return _joined(new, track_update(bare, new, entries, root, writer), live)


def _split(live: dict[str, Any] | None) -> tuple[dict[str, Any], Any]:
    bare = copy.deepcopy(live or {})
    managed = bare.get("metadata", {}).pop("managedFields", None)
    return bare, entries_from_managed_fields(managed)


def _joined(body: dict[str, Any], entries: Any, before: dict[str, Any] | None) -> dict[str, Any]:
    body = copy.deepcopy(body)
    metadata = body["metadata"]
    metadata["managedFields"] = copy.deepcopy(managed_fields_from_entries(entries))
    metadata.setdefault("uid", f"uid-of-{metadata['name']}")
    version = int((before or {}).get("metadata", {}).get("resourceVersion", "0"))
    metadata["resourceVersion"] = str(version + 1)
    return body


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
