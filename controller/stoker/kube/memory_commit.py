"""The last steps of a write: what the server adds, what it refuses, and storing it.

In: manifests with their managedFields settled. Out: the stored object; StatusAnswer where it
is refused, in the real server's order: namespace, resourceVersion, validation. Used by
memory_write, memory_scale and memory_pods under the server's lock.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from stoker.kube.memory_call import Call
from stoker.kube.memory_codec import stored_form
from stoker.kube.memory_custom import custom_errors
from stoker.kube.memory_entries import (
    MODIFIED_TEXT,
    SYSTEM_FIELDS,
    bare,
    entries_of,
    with_entries,
    without,
)
from stoker.kube.memory_errors import (
    FieldError,
    StatusAnswer,
    conflict,
    forbidden,
    internal,
    invalid,
    invalid_value,
    not_found,
)
from stoker.kube.memory_immutable import update_errors
from stoker.kube.memory_kinds import Resource
from stoker.kube.memory_prepare import Allocator, prepare_create, prepare_update
from stoker.kube.memory_store import Store, Stored
from stoker.kube.memory_validate import metadata_errors, metadata_update_errors
from stoker.kube.memory_validate_kinds import kind_errors
from stoker.model.ports import Clock
from stoker.model.times import rfc3339
from stoker.objects.schema_table import schema_for
from stoker.objects.ssa import Writer, track_update

__all__ = ["Commits", "Written"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """The object after a write, and whether the write created it."""

    manifest: Json
    created: bool = False


class Commits:
    """Commits to one store. Not thread-safe: the server holds its lock around each."""

    def __init__(self, store: Store, clock: Clock, seed: str) -> None:
        self.store = store
        self._clock = clock
        self._allocator = Allocator()
        self._seed = seed
        self._names = 0

    def now(self) -> str:
        """The time that is written into objects."""
        return rfc3339(self._clock.now_ms())

    @staticmethod
    def _own_errors(resource: Resource, manifest: Json) -> list[FieldError]:
        if resource.crd is not None:
            return custom_errors(manifest, resource.crd.schema)
        return kind_errors(resource.kind, manifest)

    def create(self, call: Call, new: Json) -> Written:
        """Check and store an object that is not there yet."""
        resource = call.resource
        self._check_namespace(call, new["metadata"].get("name") or "")
        self._names += 1
        token = hashlib.sha256(f"{self._seed}/{self._names}".encode()).hexdigest()
        metadata = without(new["metadata"], *SYSTEM_FIELDS, "resourceVersion")
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + _suffix(token)
        metadata["uid"] = _uid(token)
        metadata["creationTimestamp"] = self.now()
        new = {**new, "metadata": metadata}
        new = prepare_create(resource, new, self._allocator, self.now())
        new = stored_form(new, resource.schema.root)
        errors = metadata_errors(resource, new)
        errors += self._own_errors(resource, new)
        name = metadata.get("name") or ""
        if errors:
            raise invalid(resource.kind, resource.group, name, errors)
        if self.store.get(resource.key, call.namespace, name) is not None:
            text = f'{resource.qualified} "{name}" already exists'
            details = not_found(resource, name).details
            raise StatusAnswer(409, "AlreadyExists", text, details)
        if call.dry_run:
            return Written(new, created=True)
        stored = self.store.put(resource.key, call.namespace, name, new)
        return Written(stored.manifest, created=True)

    def server_status(
        self, kind: str, namespace: str, name: str, live: Stored, status: Json
    ) -> None:
        """Write a status the way the API server itself does (manager kube-apiserver)."""
        new = {**live.manifest, "status": status}
        api_version = live.manifest["apiVersion"]
        schema = schema_for(api_version.rpartition("/")[0], live.manifest["kind"])
        writer = Writer("kube-apiserver", api_version, "status", self.now())
        entries = entries_of(live.manifest)
        entries = track_update(
            bare(live.manifest), bare(new), entries, schema.root, writer, creating=not entries
        )
        self.store.put(kind, namespace, name, with_entries(new, entries))

    def _check_namespace(self, call: Call, name: str) -> None:
        if not call.resource.namespaced:
            return
        held = self.store.get("/namespaces", "", call.namespace)
        if held is None:
            details = {"name": call.namespace, "kind": "namespaces"}
            text = f'namespaces "{call.namespace}" not found'
            raise StatusAnswer(404, "NotFound", text, details)
        if held.manifest["metadata"].get("deletionTimestamp"):
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {call.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            text = (
                f"unable to create new content in namespace {call.namespace} because it is being"
                " terminated"
            )
            raise forbidden(call.resource, name, text, [cause])

    def update(self, call: Call, live: Stored, new: Json) -> Written:
        """Check and store a new state of an object."""
        resource, old = call.resource, live.manifest
        self._check_version(call, new, old)
        new = stored_form(new, resource.schema.root)
        new = prepare_update(resource, new, old, call.subresource)
        new = {**new, "metadata": _kept_metadata(new["metadata"], old["metadata"])}
        errors = metadata_errors(resource, new) + metadata_update_errors(new, old)
        if new["metadata"]["uid"] != old["metadata"]["uid"] and resource.crd is not None:
            errors.append(
                invalid_value("metadata.uid", new["metadata"]["uid"], "field is immutable")
            )
        errors += self._own_errors(resource, new)
        if resource.crd is None and not call.subresource:
            errors += update_errors(resource.kind, new, old)
        if errors:
            raise invalid(resource.kind, resource.group, call.name, errors)
        if _unchanged(new, old):
            return Written(old)
        if call.dry_run:
            return Written(new)
        gone = old["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers")
        waits = old["metadata"].get("deletionGracePeriodSeconds") or _is_finalized_later(
            resource, new
        )
        if gone and not waits:
            self.store.put(resource.key, call.namespace, call.name, new)
            last = self.store.remove(resource.key, call.namespace, call.name)
            return Written(last.manifest)
        return Written(self.store.put(resource.key, call.namespace, call.name, new).manifest)

    def _check_version(self, call: Call, new: Json, old: Json) -> None:
        version = new["metadata"].get("resourceVersion") or "0"
        if not version.isdigit():
            text = f'strconv.ParseUint: parsing "{version}": invalid syntax'
            raise internal(text)
        if version == "0":
            if call.resource.needs_version:
                path = "metadata.resourceVersion"
                error = invalid_value(path, 0, "must be specified for an update")
                raise invalid(call.resource.kind, call.resource.group, call.name, [error])
        elif version != old["metadata"]["resourceVersion"]:
            raise conflict(call.resource, call.name, MODIFIED_TEXT)


def _kept_metadata(new: Json, old: Json) -> Json:
    """System fields as they were; a UID that was sent stays, to be refused if it is wrong."""
    kept: Json = {key: old[key] for key in SYSTEM_FIELDS if key in old}
    if new.get("uid"):
        kept["uid"] = new["uid"]
    metadata: Json = {**without(new, *SYSTEM_FIELDS), **kept}
    metadata["resourceVersion"] = old["resourceVersion"]
    if "generation" not in old:
        metadata.pop("generation", None)
    return metadata


def _unchanged(new: Json, old: Json) -> bool:
    """Whether nothing but times of managedFields differs."""
    if bare(new) != bare(old):
        return False
    mine = new["metadata"].get("managedFields") or []
    held = old["metadata"].get("managedFields") or []
    if len(mine) != len(held):
        return False
    pairs = zip(mine, held, strict=True)
    return all(without(a, "time") == without(b, "time") for a, b in pairs)


def _is_finalized_later(resource: Resource, manifest: Json) -> bool:
    return resource.kind == "Namespace" and bool(manifest["spec"].get("finalizers"))


_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def _suffix(token: str) -> str:
    number = int(token[:12], 16)
    letters = []
    for _ in range(5):
        number, at = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[at])
    return "".join(letters)


def _uid(token: str) -> str:
    return f"{token[:8]}-{token[8:12]}-4{token[13:16]}-a{token[17:20]}-{token[20:32]}"
