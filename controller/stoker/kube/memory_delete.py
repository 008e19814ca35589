"""Deletion: preconditions, grace, finalizers, namespaces.

In: Calls with DeleteOptions. Out: the object that is left (or was), and whether it is gone.
Used by the in-memory API server under its lock.
"""

from __future__ import annotations

from typing import Any, Final

from stoker.kube.memory_call import Call
from stoker.kube.memory_entries import MODIFIED_TEXT
from stoker.kube.memory_errors import (
    conflict,
    forbidden,
    invalid,
    not_found,
    unsupported,
)
from stoker.kube.memory_store import Store, Stored
from stoker.model.ports import Clock
from stoker.model.times import rfc3339

__all__ = ["Deletes"]

Json = dict[str, Any]

_IMMORTAL: Final = ("default", "kube-system", "kube-public")
_GC_FINALIZERS: Final = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_DEFAULT_GRACE_SECONDS: Final = 30


class Deletes:
    """All deletions from one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def delete(self, call: Call) -> Json:
        """DELETE of one object: the object that lingers, or a Status of success."""
        options = self._options(call)
        dry_run = bool(options.get("dryRun"))
        resource = call.resource
        live = self._store.get(resource.key, call.namespace, call.name)
        if live is None:
            raise not_found(resource, call.name)
        self._check(call, options, live)
        if resource.kind == "Namespace" and call.name in _IMMORTAL:
            raise forbidden(resource, call.name, "this namespace may not be deleted")
        left, gone = self._marked(call, options, live)
        if gone:
            if not dry_run:
                self.remove(call, live)
            if resource.kind == "Pod":
                return left
            details = {"name": call.name, "group": resource.group, "kind": resource.plural}
            return {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": {
                    **{key: value for key, value in details.items() if value},
                    "uid": live.manifest["metadata"]["uid"],
                },
            }
        if dry_run or left is live.manifest:
            return left
        return self._store.put(resource.key, call.namespace, call.name, left).manifest

    def remove(self, call: Call, live: Stored) -> None:
        """Take an object out of the store."""
        del live
        self._store.remove(call.resource.key, call.namespace, call.name)

    def finalize(self, call: Call) -> Json:
        """PUT of a namespace's finalize subresource: its spec.finalizers; gone when empty."""
        live = self._store.get(call.resource.key, "", call.name)
        if live is None:
            raise not_found(call.resource, call.name)
        sent = call.json_body()
        version = (sent.get("metadata") or {}).get("resourceVersion")
        if version and version != live.manifest["metadata"]["resourceVersion"]:
            raise conflict(call.resource, call.name, MODIFIED_TEXT)
        finalizers = (sent.get("spec") or {}).get("finalizers") or []
        new = {**live.manifest, "spec": {"finalizers": finalizers} if finalizers else {}}
        stored = self._store.put(call.resource.key, "", call.name, new)
        metadata = stored.manifest["metadata"]
        if not finalizers and metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._store.remove(call.resource.key, "", call.name)
        return stored.manifest

    def _options(self, call: Call) -> Json:
        """DeleteOptions of the body, or else of the query: beside a body the query is ignored."""
        if call.request.body:
            options: Json = call.json_body()
        else:
            options = {"dryRun": ["All"]} if call.dry_run else {}
            if "propagationPolicy" in call.query:
                options["propagationPolicy"] = call.query["propagationPolicy"]
            if "gracePeriodSeconds" in call.query:
                options["gracePeriodSeconds"] = int(call.query["gracePeriodSeconds"])
        policy = options.get("propagationPolicy")
        allowed = ("Foreground", "Background", "Orphan")
        if policy and policy not in allowed:
            error = unsupported("propagationPolicy", policy, (*allowed, "nil"))
            raise invalid("DeleteOptions", "meta.k8s.io", "", [error])
        return options

    def _check(self, call: Call, options: Json, live: Stored) -> None:
        wanted = options.get("preconditions") or {}
        metadata = live.manifest["metadata"]
        kind = call.resource.kind
        if call.resource.group:
            kind = call.resource.qualified_kind
        uid, version = wanted.get("uid"), wanted.get("resourceVersion")
        if uid and uid != metadata["uid"]:
            text = (
                f"the UID in the precondition ({uid}) does not match the UID in record"
                f" ({metadata['uid']}). The object might have been deleted and then recreated"
            )
            raise conflict(call.resource, call.name, text, kind)
        if version and version != metadata["resourceVersion"]:
            text = (
                f"the ResourceVersion in the precondition ({version}) does not match the"
                f" ResourceVersion in record ({metadata['resourceVersion']}). The object might"
                " have been modified"
            )
            raise conflict(call.resource, call.name, text, kind)

    def _marked(self, call: Call, options: Json, live: Stored) -> tuple[Json, bool]:
        """The object as the deletion leaves it, and whether it can go at once."""
        old = live.manifest
        metadata = dict(old["metadata"])
        finalizers = self._finalizers(call, options, metadata)
        grace = self._grace(call, options, old)
        held = metadata.get("deletionTimestamp")
        marked_now = self._clock.now_ms()
        if call.resource.kind == "Namespace":
            if not (finalizers or (old.get("spec") or {}).get("finalizers")):
                return old, True
            if held:
                return old, False
            metadata["deletionTimestamp"] = rfc3339(marked_now)
            status = {**(old.get("status") or {}), "phase": "Terminating"}
            return {**old, "metadata": metadata, "status": status}, False
        if held:
            before = metadata.get("deletionGracePeriodSeconds", 0)
            if not finalizers and (grace == 0 or before == 0):
                return _dying(old, metadata, held, 0), True
            if finalizers == (metadata.get("finalizers") or []) and grace >= before:
                return old, False
        deadline = rfc3339(marked_now + grace * 1000)
        if "generation" in metadata and not held:
            metadata["generation"] += 1
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        return _dying(old, metadata, deadline, grace), not finalizers and grace == 0

    @staticmethod
    def _finalizers(call: Call, options: Json, metadata: Json) -> list[str]:
        """Finalizers after the propagation policy had its say."""
        finalizers = [
            f for f in metadata.get("finalizers") or () if f not in _GC_FINALIZERS.values()
        ]
        policy = options.get("propagationPolicy")
        if options.get("orphanDependents"):
            policy = "Orphan"
        if policy is None and "propagationPolicy" not in options:
            held = set(metadata.get("finalizers") or ())
            return [*finalizers, *sorted(held & set(_GC_FINALIZERS.values()))]
        added = _GC_FINALIZERS.get(str(policy))
        del call
        return [*finalizers, added] if added else finalizers

    @staticmethod
    def _grace(call: Call, options: Json, old: Json) -> int:
        """Seconds of grace: pods that run on a node have some, everything else none."""
        if call.resource.kind != "Pod":
            return 0
        spec, status = old.get("spec") or {}, old.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in {"Failed", "Succeeded"}:
            return 0
        asked = options.get("gracePeriodSeconds")
        default = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
        return int(default if asked is None else asked)


def _dying(old: Json, metadata: Json, deadline: str, grace: int) -> Json:
    marked = {**metadata, "deletionTimestamp": deadline, "deletionGracePeriodSeconds": grace}
    return {**old, "metadata": marked}
