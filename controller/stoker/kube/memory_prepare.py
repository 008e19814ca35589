"""What the server itself does to an object on its way in, before it is checked and stored.

In: decoded manifests. Out: manifests with status reset, generation, allocated addresses and
the rest that belongs to nobody's field set. Used by memory_write.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

from stoker.kube.memory_codec import typed_copy
from stoker.kube.memory_custom import custom_copy, custom_defaults
from stoker.kube.memory_defaults import with_defaults
from stoker.kube.memory_defaults_pod import fill, put
from stoker.kube.memory_kinds import Resource

__all__ = ["Allocator", "decoded", "empty_object", "prepare_create", "prepare_update"]

Json = dict[str, Any]


class Allocator:
    """Hands out what must be unique in a cluster: service addresses and node ports."""

    def __init__(self) -> None:
        self._addresses: Iterator[int] = itertools.count(10)
        self._ports: Iterator[int] = itertools.count(30000)

    def address(self) -> str:
        """The next cluster IP of 10.0.0.0/16."""
        number = next(self._addresses)
        return f"10.0.{number // 250 % 250}.{number % 250 + 1}"

    def node_port(self) -> int:
        """The next node port."""
        return next(self._ports)


def decoded(resource: Resource, manifest: Json, *, applied: bool = False) -> Json:
    """A manifest as the server's types hold it, with defaults; raises DecodeError.

    `applied` marks the result of a server-side apply, in which nulls were sent on purpose.
    """
    if resource.crd is not None:
        copied = custom_copy(manifest, resource.crd.schema, drop_nulls=not applied)
        return custom_defaults(copied, resource.crd.schema)
    if resource.kind == "Secret" and manifest.get("stringData"):
        manifest = _merge_string_data(manifest)
    return with_defaults(resource.kind, typed_copy(manifest, resource.schema.root))


def _merge_string_data(secret: Json) -> Json:
    merged = dict(secret.get("data") or {})
    for key, value in secret["stringData"].items():
        merged[key] = base64.b64encode(str(value).encode()).decode()
    return {**{k: v for k, v in secret.items() if k != "stringData"}, "data": merged}


def empty_object(resource: Resource) -> Json:
    """What a new object of the kind is before anything is set: the base of created fields."""
    bare = {"apiVersion": resource.api_version, "kind": resource.kind}
    if resource.crd is not None:
        return bare
    return typed_copy(bare, resource.schema.root)


def prepare_create(resource: Resource, manifest: Json, allocator: Allocator, now: str) -> Json:
    """Reset what a client may not set, add what the server sets."""
    metadata = manifest["metadata"]
    if resource.has_generation:
        manifest = put(manifest, "metadata", {**metadata, "generation": 1})
    elif "generation" in metadata and resource.kind != "ConfigMap":
        manifest = put(manifest, "metadata", _without(metadata, "generation"))
    if resource.crd is not None:
        return _without(manifest, "status") if resource.crd.has_status else manifest
    if resource.schema.resets_status and resource.kind != "Node":
        manifest = _without(manifest, "status")
    change = _CREATE.get(resource.kind)
    if change is not None:
        manifest = change(manifest, allocator, now)
    return typed_copy(manifest, resource.schema.root)


def prepare_update(resource: Resource, new: Json, old: Json, subresource: str) -> Json:
    """The new state that a write to this endpoint may make of the old one."""
    if subresource == "status":
        return _status_update(resource, new, old)
    if resource.schema.resets_status:
        new = put(new, "status", old["status"]) if "status" in old else _without(new, "status")
    if resource.kind == "Service":
        new = put(new, "spec", _kept_addresses(new["spec"], old["spec"]))
    if resource.kind == "Namespace":
        new = put(new, "spec", old["spec"])
    generation = old["metadata"].get("generation")
    if generation is None:
        return new
    if resource.has_generation and _bumps(resource, new, old):
        generation += 1
    return put(new, "metadata", {**new["metadata"], "generation": generation})


def _status_update(resource: Resource, new: Json, old: Json) -> Json:
    managed = new["metadata"].get("managedFields")
    if resource.crd is not None:
        metadata = {**old["metadata"], "managedFields": managed}
        out = {**old, "metadata": metadata}
        sent_version = new["metadata"].get("resourceVersion")
        metadata["resourceVersion"] = sent_version
        if "status" in new:
            return {**out, "status": new["status"]}
        return _without(out, "status")
    metadata = dict(new["metadata"])
    if resource.kind == "Deployment":
        metadata = {**_without(metadata, "labels"), **_only(old["metadata"], "labels")}
    if "generation" in old["metadata"]:
        metadata["generation"] = old["metadata"]["generation"]
    out = {**new, "metadata": metadata}
    return put(out, "spec", old["spec"]) if "spec" in old else out


def _bumps(resource: Resource, new: Json, old: Json) -> bool:
    """Whether the change counts as a new generation."""
    if resource.crd is not None or resource.kind == "EndpointSlice":
        ignored = (
            ("metadata", "status")
            if resource.crd is None or resource.crd.has_status
            else ("metadata",)
        )
        return _without(new, *ignored) != _without(old, *ignored)
    if resource.kind == "Deployment":
        old_notes = old["metadata"].get("annotations") or {}
        if (new["metadata"].get("annotations") or {}) != old_notes:
            return True
    return bool(new.get("spec") != old.get("spec"))


def _without(target: Json, *keys: str) -> Json:
    if not any(key in target for key in keys):
        return target
    return {key: value for key, value in target.items() if key not in keys}


def _only(target: Json, key: str) -> Json:
    return {key: target[key]} if key in target else {}


# -------------------------------------------------------------------- kinds' own ways


def _kept_addresses(spec: Json, old: Json) -> Json:
    """A Service keeps its addresses and node ports when an update leaves them out."""
    if old.get("type") == "ExternalName" or spec.get("type") == "ExternalName":
        return spec
    if not spec.get("clusterIP"):
        spec = {**spec, **_only(old, "clusterIP"), **_only(old, "clusterIPs")}
    elif spec.get("clusterIP") != (spec.get("clusterIPs") or [None])[0]:
        spec = {**spec, "clusterIPs": [spec["clusterIP"]]}
    for key in ("ipFamilies", "ipFamilyPolicy"):
        if key in old:
            spec = fill(spec, **{key: old[key]})
    ports = {(p["port"], p["protocol"]): p.get("nodePort") for p in old.get("ports") or ()}
    kept = []
    for port in spec.get("ports") or ():
        node_port = ports.get((port["port"], port["protocol"]))
        wanted = node_port and spec["type"] != "ClusterIP" and not port.get("nodePort")
        kept.append({**port, "nodePort": node_port} if wanted else port)
    return put(spec, "ports", kept) if kept != (spec.get("ports") or []) else spec


def _service(manifest: Json, allocator: Allocator, now: str) -> Json:
    del now
    spec = manifest["spec"]
    if spec["type"] == "ExternalName":
        return manifest
    address = spec.get("clusterIP") or allocator.address()
    dual = address == "None" and not spec.get("selector")
    spec = {**spec, "clusterIP": address, "clusterIPs": [address]}
    spec = fill(
        spec,
        ipFamilies=["IPv4", "IPv6"] if dual else ["IPv4"],
        ipFamilyPolicy="RequireDualStack" if dual else "SingleStack",
    )
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        ports = [
            port if port.get("nodePort") else {**port, "nodePort": allocator.node_port()}
            for port in spec.get("ports") or ()
        ]
        spec = {**spec, "ports": ports}
    return {**manifest, "spec": spec}


_NOT_READY: Final = tuple(
    {
        "key": f"node.kubernetes.io/{state}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for state in ("not-ready", "unreachable")
)
_SYSTEM_PRIORITIES: Final = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


def _pod(manifest: Json, allocator: Allocator, now: str) -> Json:
    del allocator, now
    spec = manifest["spec"]
    tolerations = spec.get("tolerations") or []
    keys = {toleration.get("key") for toleration in tolerations}
    if not any(t.get("operator") == "Exists" and not t.get("key") for t in tolerations):
        added = [toleration for toleration in _NOT_READY if toleration["key"] not in keys]
        spec = {**spec, "tolerations": [*tolerations, *added]}
    priority = _SYSTEM_PRIORITIES.get(spec.get("priorityClassName", ""), 0)
    spec = fill(spec, priority=priority, preemptionPolicy="PreemptLowerPriority")
    status = {"phase": "Pending", "qosClass": _quality(spec)}
    return {**manifest, "spec": spec, "status": status}


def _quality(spec: Json) -> str:
    """The pod's QoS class, from cpu and memory of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    guaranteed, any_set = True, False
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            any_set = any_set or name in limits or name in requests
            limit = limits.get(name)
            guaranteed = guaranteed and limit is not None and requests.get(name, limit) == limit
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _namespace(manifest: Json, allocator: Allocator, now: str) -> Json:
    del allocator, now
    return {**manifest, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _job(manifest: Json, allocator: Allocator, now: str) -> Json:
    del allocator, now
    spec = manifest["spec"]
    if spec.get("manualSelector"):
        return manifest
    uid, name = manifest["metadata"]["uid"], manifest["metadata"]["name"]
    template = spec["template"]
    metadata = template.get("metadata") or {}
    labels = {
        **(metadata.get("labels") or {}),
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    template = {**template, "metadata": {**metadata, "labels": labels}}
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    own = {**labels, **(manifest["metadata"].get("labels") or {})}
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "labels": own},
        "spec": {**spec, "template": template, "selector": selector},
    }


def _pending(manifest: Json, allocator: Allocator, now: str) -> Json:
    del allocator, now
    return {**manifest, "status": {"phase": "Pending"}}


def _crd(manifest: Json, allocator: Allocator, now: str) -> Json:
    del allocator, now
    stored = [v["name"] for v in manifest["spec"].get("versions") or () if v.get("storage")]
    return {**manifest, "status": {"storedVersions": stored}}


_CREATE: Final[dict[str, Callable[[Json, Allocator, str], Json]]] = {
    "Service": _service,
    "Pod": _pod,
    "Namespace": _namespace,
    "Job": _job,
    "PersistentVolumeClaim": _pending,
    "PersistentVolume": _pending,
    "CustomResourceDefinition": _crd,
}
