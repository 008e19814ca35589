"""The scale subresource: reads and writes of one number, and who owns it.

In: Calls on /scale. Out: Scale documents. Ownership follows the real server: the entries that
hold the replicas field are taken over to a Scale, changed there, and put back. Used by the
in-memory API server under its lock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from stoker.kube.memory_call import APPLY_PATCH, Call
from stoker.kube.memory_codec import DecodeError, typed_copy
from stoker.kube.memory_commit import Commits
from stoker.kube.memory_entries import conflict_answer, entries_of, gvk_text, uid_text
from stoker.kube.memory_errors import (
    StatusAnswer,
    bad_request,
    conflict,
    internal,
    invalid,
    invalid_value,
    not_found,
)
from stoker.kube.memory_kinds import Resource
from stoker.kube.memory_patch import apply_body, patched
from stoker.kube.memory_prepare import decoded
from stoker.kube.memory_store import Store, Stored
from stoker.objects.fieldset_trees import Tree, difference
from stoker.objects.schema_table import schema_for
from stoker.objects.ssa import (
    FieldConflicts,
    TypedPatchRefused,
    Writer,
    apply_manifest,
    track_update,
)
from stoker.objects.ssa_entries import APPLY, UPDATE, Entries, Entry, managed_fields_list

__all__ = ["Scales"]

Json = dict[str, Any]

_API: Final = "autoscaling/v1"
_ROOT: Final = schema_for("autoscaling", "Scale", "v1").root
_IN_SCALE: Final[Tree] = {"f:spec": {"f:replicas": {}}}
_RESET: Final[Tree] = {"f:status": {}}
_UNSET: Final = -2147483648
"""What the server takes for a custom resource whose replicas field is absent."""


class Scales:
    """Reads and writes of scale subresources."""

    def __init__(self, store: Store, commits: Commits) -> None:
        self._store = store
        self._commits = commits

    def get(self, call: Call) -> Json:
        """GET: 500 where a custom resource has no replicas."""
        scale = _scale_of(call.resource, self._live(call).manifest)
        if scale["spec"].get("replicas") == _UNSET:
            path = "." + ".".join(_replicas_path(call.resource))
            text = f'Internal error occurred: the spec replicas field "{path}" does not exist'
            details = {"causes": [{"message": f'the spec replicas field "{path}" does not exist'}]}
            raise StatusAnswer(500, "InternalError", text, details)
        return scale

    def write(self, call: Call) -> Json:
        """PUT or PATCH."""
        live = self._live(call)
        old = _scale_of(call.resource, live.manifest)
        entries = _entries_in_scale(call.resource, live.manifest)
        if call.content_type == APPLY_PATCH and call.request.method == "PATCH":
            new, entries = self._applied(call, old, entries)
        else:
            new, entries = self._updated(call, live, old, entries)
        self._check(call, live, new)
        replicas = new["spec"].get("replicas", 0)
        manifest = _with_replicas(live.manifest, _replicas_path(call.resource), replicas)
        if call.resource.crd is not None:
            manifest = decoded(call.resource, manifest, applied=True)
        metadata = {**manifest["metadata"], "managedFields": _entries_back(call, live, entries)}
        if not metadata["managedFields"]:
            del metadata["managedFields"]
        sent_version = new["metadata"].get("resourceVersion")
        if sent_version:
            metadata["resourceVersion"] = sent_version
        plain = replace(call, subresource="")
        written = self._commits.update(plain, live, {**manifest, "metadata": metadata})
        return _scale_of(call.resource, written.manifest)

    def _live(self, call: Call) -> Stored:
        live = self._store.get(call.resource.key, call.namespace, call.name)
        if live is None:
            raise not_found(call.resource, call.name)
        return live

    def _writer(self, call: Call) -> Writer:
        return Writer(call.manager, _API, "scale", "")

    def _applied(self, call: Call, old: Json, entries: Entries) -> tuple[Json, Entries]:
        sent = apply_body(call.request.body, strict=call.strict)
        gvk = gvk_text(sent.get("apiVersion"), sent.get("kind"))
        if gvk != gvk_text(_API, "Scale"):
            raise bad_request(f"invalid object type: {gvk}")
        if call.resource.crd is not None:
            text = (
                f"failed to convert new object ({call.namespace}/{call.name}; {gvk}) to proper"
                " version: request to convert CR to an invalid group/version: autoscaling/v1"
            )
            raise internal(text)
        try:
            done = apply_manifest(
                old, entries, sent, _ROOT, self._writer(call), force=call.force, reset=_RESET
            )
        except TypedPatchRefused as refused:
            place = f"{call.namespace}/{call.name}; {gvk}"
            text = f"failed to create typed patch object ({place}): {refused.message}"
            raise internal(text) from refused
        except FieldConflicts as refused:
            raise conflict_answer(refused) from refused
        return _decoded(done.object), done.entries

    def _updated(
        self, call: Call, live: Stored, old: Json, entries: Entries
    ) -> tuple[Json, Entries]:
        if call.request.method == "PATCH":
            new = _decoded(patched(old, call.request.body, call.content_type, _ROOT))
        else:
            new = _decoded(call.json_body())
            uid = new["metadata"].get("uid")
            if uid and uid != live.manifest["metadata"]["uid"]:
                raise conflict(call.resource, call.name, uid_text(call, uid, live))
        entries = track_update(old, new, entries, _ROOT, self._writer(call), reset=_RESET)
        return new, entries

    def _check(self, call: Call, live: Stored, new: Json) -> None:
        metadata = new["metadata"]
        name = metadata.get("name") or call.name
        if name != call.name:
            raise bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({call.name})"
            )
        uid, held = metadata.get("uid"), live.manifest["metadata"]["uid"]
        if uid and uid != held and call.resource.crd is None:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {held}"
            qualified = f"{call.resource.plural}/scale"
            if call.resource.group:
                qualified += f".{call.resource.group}"
            raise conflict(call.resource, call.name, text, qualified)
        replicas = new["spec"].get("replicas", 0)
        if replicas == _UNSET:
            path = "." + ".".join(_replicas_path(call.resource))
            raise bad_request(f'the spec replicas field "{path}" cannot be empty')
        if replicas < 0:
            text = "must be greater than or equal to 0"
            error = invalid_value("spec.replicas", replicas, text)
            raise invalid("Scale", "autoscaling", call.name, [error])


def _decoded(manifest: Json) -> Json:
    try:
        return typed_copy({**manifest, "apiVersion": _API, "kind": "Scale"}, _ROOT)
    except DecodeError as error:
        text = f'Scale in version "v1" cannot be handled as a Scale: {error}'
        raise bad_request(text) from error


def _replicas_path(resource: Resource) -> tuple[str, ...]:
    return resource.crd.spec_replicas if resource.crd else ("spec", "replicas")


def _found(manifest: Json, path: tuple[str, ...]) -> Any:
    value: Any = manifest
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _scale_of(resource: Resource, manifest: Json) -> Json:
    crd = resource.crd
    metadata = manifest["metadata"]
    replicas = _found(manifest, _replicas_path(resource))
    if crd is not None:
        if replicas is None:
            replicas = _UNSET
        count = _found(manifest, crd.status_replicas) or 0
        selector = _found(manifest, crd.selector) or "" if crd.selector else ""
    else:
        count = (manifest.get("status") or {}).get("replicas", 0)
        selector = _selector_text((manifest.get("spec") or {}).get("selector") or {})
    status: Json = {"replicas": count}
    if selector:
        status["selector"] = selector
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": _API,
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _selector_text(selector: Json) -> str:
    """A label selector as one text, as `kubectl get -l` takes it."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for term in selector.get("matchExpressions") or ():
        values = ",".join(sorted(term.get("values") or ()))
        match term["operator"]:
            case "In":
                parts.append(f"{term['key']} in ({values})")
            case "NotIn":
                parts.append(f"{term['key']} notin ({values})")
            case "Exists":
                parts.append(term["key"])
            case _:
                parts.append(f"!{term['key']}")
    return ",".join(sorted(parts))


def _with_replicas(manifest: Json, path: tuple[str, ...], replicas: int) -> Json:
    head, *rest = path
    if not rest:
        return {**manifest, head: replicas}
    return {**manifest, head: _with_replicas(manifest.get(head) or {}, tuple(rest), replicas)}


def _tree(path: tuple[str, ...]) -> Tree:
    node: Tree = {}
    for key in reversed(path):
        node = {f"f:{key}": node}
    return node


def _holds(fields: Tree, path: tuple[str, ...]) -> bool:
    node = fields
    for key in path:
        if f"f:{key}" not in node:
            return False
        node = node[f"f:{key}"]
    return not node or "." in node


def _entries_in_scale(resource: Resource, manifest: Json) -> Entries:
    """The entries that own the replicas field, as entries of a Scale."""
    path = _replicas_path(resource)
    entries = entries_of(manifest)
    return {
        owner: Entry(owner, _API, entry.time, _IN_SCALE)
        for owner, entry in entries.items()
        if _holds(entry.fields, path)
    }


def _entries_back(call: Call, live: Stored, scale: Entries) -> list[Json]:
    """The object's entries: the replicas field is left to whom the Scale has it.

    The server compares owners with the apiVersion in them, which for Updates differs between
    object and Scale: an Update's replicas always move to an entry of their own, without a
    time, even beside another entry of the same owner (seen 2026-11-29).
    """
    path = _replicas_path(call.resource)
    after: list[Entry] = []
    for owner, entry in entries_of(live.manifest).items():
        if not _holds(entry.fields, path) or (owner.operation == APPLY and owner in scale):
            after.append(entry)
            continue
        left = difference(entry.fields, _tree(path))
        if left:
            after.append(entry.with_fields(left))
    kept = {entry.owner for entry in after if _holds(entry.fields, path)}
    api_version = call.resource.api_version
    for owner, entry in scale.items():
        if entry.fields and owner not in kept:
            own = replace(owner, api_version=api_version if owner.operation == UPDATE else "")
            after.append(Entry(own, api_version, "", _tree(path)))
    return managed_fields_list(after)
