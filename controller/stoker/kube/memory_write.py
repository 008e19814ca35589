"""Creates, updates, patches and applies of the in-memory API server.

In: Calls. Out: the stored object and whether it was created; StatusAnswer where the server
refuses. The order of checks is the real server's: parse and types, field conflicts, names,
then what memory_commit checks. Runs under the server's lock.
"""

from __future__ import annotations

import json
from typing import Any, Final

from stoker.kube.memory_call import APPLY_PATCH, Call
from stoker.kube.memory_codec import DecodeError, unknown_fields
from stoker.kube.memory_commit import Commits, Written
from stoker.kube.memory_entries import (
    SYSTEM_FIELDS,
    bare,
    conflict_answer,
    entries_of,
    gvk_text,
    sent_entries,
    uid_text,
    with_entries,
    without,
)
from stoker.kube.memory_errors import (
    StatusAnswer,
    bad_request,
    conflict,
    internal,
    invalid,
    invalid_value,
    not_found,
)
from stoker.kube.memory_patch import apply_body, patched
from stoker.kube.memory_prepare import decoded, empty_object
from stoker.kube.memory_store import Stored
from stoker.objects.ssa import (
    FieldConflicts,
    TypedPatchRefused,
    Writer,
    apply_manifest,
    track_update,
)
from stoker.objects.ssa_entries import Entries

__all__ = ["Writes"]

Json = dict[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class Writes:
    """All writes to one store. Not thread-safe: the server holds its lock around each."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._store = commits.store

    # ----------------------------------------------------------------- verbs

    def create(self, call: Call) -> Written:
        """POST to a collection."""
        sent = self._body(call)
        resource = call.resource
        if sent["metadata"].get("resourceVersion"):
            raise internal("resourceVersion should not be set on objects to be created")
        metadata = without(sent["metadata"], *SYSTEM_FIELDS, "managedFields")
        entries = track_update(
            empty_object(resource),
            {**sent, "metadata": without(metadata, "resourceVersion")},
            {},
            resource.schema.root,
            self._writer(call),
            reset=resource.resets(""),
            creating=True,
        )
        new = with_entries({**sent, "metadata": metadata}, entries)
        return self._commits.create(call, new)

    def replace(self, call: Call) -> Written:
        """PUT of an object or a subresource."""
        sent = self._body(call)
        resource = call.resource
        named = sent["metadata"].get("name")
        if named and named != call.name:
            raise bad_request(
                f"the name of the object ({named}) does not match the name on the URL ({call.name})"
            )
        live = self._store.get(resource.key, call.namespace, call.name)
        if live is None:
            if resource.put_creates and not call.subresource:
                return self.create(call)
            raise not_found(resource, call.name)
        uid = sent["metadata"].get("uid")
        if uid and uid != live.manifest["metadata"]["uid"]:
            raise conflict(resource, call.name, uid_text(call, uid, live))
        return self.update(call, live, sent)

    def patch(self, call: Call) -> Written:
        """PATCH of any kind."""
        if call.content_type == APPLY_PATCH:
            return self.apply(call)
        live = self._store.get(call.resource.key, call.namespace, call.name)
        if live is None:
            raise not_found(call.resource, call.name)
        root = call.resource.schema.root
        changed = patched(live.manifest, call.request.body, call.content_type, root)
        return self.update(call, live, self._decoded(call, changed, from_patch=True))

    def update(self, call: Call, live: Stored, new: Json) -> Written:
        """Record who changed what, then store."""
        entries = sent_entries(new, live.manifest, trusts_body=not call.subresource)
        entries = track_update(
            bare(live.manifest),
            bare(new),
            entries,
            call.resource.schema.root,
            self._writer(call),
            reset=call.resource.resets(call.subresource),
        )
        return self._commits.update(call, live, with_entries(new, entries))

    def apply(self, call: Call) -> Written:
        """Server-side apply to an object or its status."""
        resource = call.resource
        sent = apply_body(call.request.body, strict=call.strict)
        gvk = gvk_text(sent.get("apiVersion"), sent.get("kind"))
        if gvk != gvk_text(resource.api_version, resource.kind):
            raise bad_request(f"invalid object type: {gvk}")
        metadata = sent.get("metadata") or {}
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        live = self._store.get(resource.key, call.namespace, call.name)
        if live is None and call.subresource:
            raise not_found(resource, call.name)
        base = bare(live.manifest) if live else {}
        entries = entries_of(live.manifest) if live else {}
        merged, entries = self._merged(call, base, entries, sent)
        # Nothing merged: the stored object is in its final form already.
        same = merged is base and resource.crd is None
        new = merged if same else self._settled(call, sent, merged)
        new = with_entries(new, entries)
        if call.manager == "kubectl":
            new = _with_last_applied(new, sent)
        if live is None:
            uid = new["metadata"].get("uid")
            if uid:
                text = (
                    f"uid mismatch: the provided object specified uid {uid}, and no existing"
                    " object was found"
                )
                raise conflict(resource, call.name, text)
            return self._commits.create(call, new)
        return self._commits.update(call, live, new)

    def _merged(self, call: Call, base: Json, entries: Entries, sent: Json) -> tuple[Json, Entries]:
        root = call.resource.schema.root
        reset = call.resource.resets(call.subresource)
        writer = self._writer(call)
        empty = None if entries else empty_object(call.resource)
        try:
            done = apply_manifest(
                base, entries, sent, root, writer, force=call.force, reset=reset, empty=empty
            )
        except TypedPatchRefused as refused:
            what = _name_of(call, sent)
            text = f"failed to create typed patch object ({what}): {refused.message}"
            raise internal(text) from refused
        except FieldConflicts as refused:
            if call.manager == "kubectl" and _only_client_side(refused, base):
                done = apply_manifest(base, entries, sent, root, writer, force=True, reset=reset)
            else:
                raise conflict_answer(refused) from refused
        return done.object, done.entries

    def _settled(self, call: Call, sent: Json, merged: Json) -> Json:
        metadata = merged.get("metadata")
        if not isinstance(metadata, dict):
            merged = {**merged, "metadata": {}}
        try:
            new = decoded(call.resource, merged, applied=True)
        except DecodeError as error:
            what = _name_of(call, sent)
            text = f"failed to convert new object ({what}) to proper version: {error}"
            raise internal(text) from error
        return _placed(call, new)

    # ---------------------------------------------------------------- bodies

    def _writer(self, call: Call) -> Writer:
        return Writer(
            call.manager, call.resource.api_version, call.subresource, self._commits.now()
        )

    def _body(self, call: Call) -> Json:
        """The body of a POST or PUT as a decoded object of the right kind and place."""
        sent = call.json_body()
        resource = call.resource
        kind, api_version = sent.get("kind"), sent.get("apiVersion")
        if (kind and kind != resource.kind) or (
            api_version and api_version != resource.api_version
        ):
            raise bad_request(
                f'{kind} in version "{resource.version}" cannot be handled as a'
                f" {resource.kind}: no match for {api_version}, Kind={kind}"
            )
        return self._decoded(call, sent, from_patch=False)

    def _decoded(self, call: Call, sent: Json, *, from_patch: bool) -> Json:
        resource = call.resource
        sent = {**sent, "apiVersion": resource.api_version, "kind": resource.kind}
        if not isinstance(sent.get("metadata"), dict):
            sent["metadata"] = {}
        if call.strict:
            unknown = unknown_fields(sent, resource.schema.root)
            if unknown:
                listed = ", ".join(f'unknown field "{path}"' for path in unknown)
                raise _undecodable(
                    call, f"strict decoding error: {listed}", sent, from_patch=from_patch
                )
        try:
            new = _placed(call, decoded(resource, sent))
        except DecodeError as error:
            raise _undecodable(call, str(error), sent, from_patch=from_patch) from error
        if sent["metadata"].get("managedFields") == []:  # an empty list is a wish to reset
            new = {**new, "metadata": {**new["metadata"], "managedFields": []}}
        return new


def _placed(call: Call, manifest: Json) -> Json:
    """Name and namespace from the URL; 400 where the body says otherwise."""
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace") or ""
    if namespace and namespace != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    name = metadata.get("name")
    if call.name and name and name != call.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )
    added: Json = {}
    if call.resource.namespaced and not namespace:
        added["namespace"] = call.namespace
    if call.name and not name:
        added["name"] = call.name
    return {**manifest, "metadata": {**metadata, **added}} if added else manifest


def _undecodable(call: Call, text: str, sent: Json, *, from_patch: bool) -> StatusAnswer:
    kind = call.resource.kind
    if from_patch:
        body = json.dumps(sent, separators=(",", ":"))
        return invalid("", "", "", [invalid_value("patch", body, text)])
    return bad_request(
        f'{kind} in version "{call.resource.version}" cannot be handled as a {kind}: {text}'
    )


def _name_of(call: Call, sent: Json) -> str:
    metadata = sent.get("metadata")
    meta = metadata if isinstance(metadata, dict) else {}
    gvk = gvk_text(call.resource.api_version, call.resource.kind)
    return f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {gvk}"


def _only_client_side(refused: FieldConflicts, live: Json) -> bool:
    """Whether all conflicts are fields that kubectl applied client-side before."""
    notes = (live.get("metadata") or {}).get("annotations") or {}
    if not notes.get(LAST_APPLIED):
        return False
    return all(one.owner.manager == "kubectl-client-side-apply" for one in refused.conflicts)


def _with_last_applied(new: Json, sent: Json) -> Json:
    notes = new["metadata"].get("annotations") or {}
    if not notes.get(LAST_APPLIED):
        return new
    text = json.dumps(sent, separators=(",", ":"), sort_keys=True) + "\n"
    metadata = {**new["metadata"], "annotations": {**notes, LAST_APPLIED: text}}
    return {**new, "metadata": metadata}
