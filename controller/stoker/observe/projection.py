"""What a cache keeps of a raw object: little of strangers, everything of our own.

Raw objects of lists, watches and answered writes come in, an `Entry` goes out. Objects
that carry our owner mark or our managedFields entry are kept whole as canonical JSON
bytes (a dict would cost ten times the memory); of others only the metadata is kept.
Secrets are never kept whole, not even our own (design section 8).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.workload import GROUP_KIND
from stoker.objects import names
from stoker.objects.health_fields import items, mapping, text
from stoker.objects.schema_table import schema_for
from stoker.observe.external import ScaleTarget, scale_target
from stoker.observe.keys import (
    FLEETS,
    HPAS,
    NAMESPACES,
    NODE_STATES,
    NODES,
    PODS,
    SCALED_OBJECTS,
    SERVICES,
    WatchKey,
)
from stoker.observe.nodes import NodeFacts, StateFacts, node_facts, state_facts
from stoker.observe.pods import PodFacts, pod_facts
from stoker.observe.prefetches import PrefetchFacts, prefetch_facts
from stoker.observe.replicas import DeploymentFacts, deployment_facts, group_facts
from stoker.observe.wishes import MirrorFacts, mirror_facts

__all__ = ["Entry", "Facts", "entry_from"]

_KEPT_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Holds a whole manifest, of Secrets too: never kept of strangers or Secrets."""

_MIRRORS = frozenset({FLEETS, SERVICES})
"""We write them ourselves all the time, and read nothing of them but annotations."""

_encode = msgspec.json.Encoder(order="sorted").encode

Facts: TypeAlias = (
    PodFacts
    | NodeFacts
    | StateFacts
    | ScaleTarget
    | DeploymentFacts
    | MirrorFacts
    | PrefetchFacts
    | str
)
"""Kind-specific facts; str is a Namespace's phase."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One cached object. `body` is JSON; `whole` says whether it is the whole manifest.

    `owner` is the owner mark as it stands, `unit` the unit it proves (None for marks that
    are another fleet's, or were copied from another object). `content` is a digest of all
    but status and versions, kept of whole objects only.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    owner: str
    unit: UnitRef | None
    whole: bool
    facts: Facts | None
    body: bytes
    ref: ObjectRef
    content: str = ""
    leaving: bool = False


def entry_from(raw: dict[str, Any], key: WatchKey, fleet_id: str) -> Entry:
    """Project one raw object of a watched kind (list items may lack apiVersion and kind)."""
    metadata = mapping(raw, "metadata")
    ref = key.ref(text(metadata, "namespace"), text(metadata, "name"))
    owner = text(mapping(metadata, "annotations"), names.OWNER)
    unit = names.unit_of_mark(owner, fleet_id, ref) if owner else None
    ours = unit is not None or _is_managed(metadata, names.manager_of(fleet_id))
    whole = ours and ref.kind != "Secret" and key not in _MIRRORS
    kept = {**raw, "apiVersion": ref.api_version, "kind": ref.kind}
    return Entry(
        namespace=ref.namespace,
        name=ref.name,
        uid=text(metadata, "uid"),
        resource_version=text(metadata, "resourceVersion"),
        owner=owner,
        unit=unit,
        whole=whole,
        facts=_facts(kept, key, unit),
        body=_encode(kept if whole else _metadata_only(ref, metadata)),
        ref=ref,
        content=_content(ref, kept) if whole else "",
        leaving=bool(metadata.get("deletionTimestamp")),
    )


def _is_managed(metadata: dict[str, Any], manager: str) -> bool:
    """Somebody may have taken our mark off: what we manage is still read whole."""
    return any(entry.get("manager") == manager for entry in items(metadata, "managedFields"))


def _metadata_only(ref: ObjectRef, metadata: dict[str, Any]) -> dict[str, Any]:
    kept = {name: metadata[name] for name in _KEPT_METADATA if metadata.get(name)}
    annotations = mapping(metadata, "annotations")
    if _LAST_APPLIED in annotations:
        kept["annotations"] = {k: v for k, v in annotations.items() if k != _LAST_APPLIED}
    return {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": kept}


def _content(ref: ObjectRef, body: dict[str, Any]) -> str:
    """A digest of everything that a comparison with what we render can see.

    Controllers write the status of what we own all the time (an autoscaler every 15 s);
    status is left out wherever the main resource ignores it.
    """
    metadata = mapping(body, "metadata")
    entries = (_without_status(entry) for entry in items(metadata, "managedFields"))
    content = {
        **body,
        "metadata": {
            **metadata,
            "resourceVersion": "",
            "managedFields": [entry for entry in entries if entry],
        },
    }
    if schema_for(ref.group, ref.kind).resets_status:
        content.pop("status", None)
    return hashlib.blake2b(_encode(content), digest_size=16).hexdigest()


def _without_status(entry: dict[str, Any]) -> dict[str, Any]:
    """A managedFields entry without its time; empty when it owns nothing but status."""
    fields = mapping(entry, "fieldsV1")
    if entry.get("subresource") == "status":
        fields = {element: below for element, below in fields.items() if element != "f:status"}
        if not fields:
            return {}
    return {**entry, "time": "", "fieldsV1": fields}


def _facts(raw: dict[str, Any], key: WatchKey, unit: UnitRef | None) -> Facts | None:
    kind = (key.group, key.kind)
    if kind == ("apps", "Deployment"):
        return None if unit is None else deployment_facts(raw, unit)
    if kind == GROUP_KIND:
        return None if unit is None else group_facts(raw, unit)
    if kind == ("batch", "Job"):
        return None if unit is None else prefetch_facts(raw, unit)
    if kind == (PODS.group, PODS.kind):
        return pod_facts(raw)
    if kind == (NODES.group, NODES.kind):
        return node_facts(raw)
    if kind == (NODE_STATES.group, NODE_STATES.kind):
        return state_facts(raw)
    if kind == (NAMESPACES.group, NAMESPACES.kind):
        return _namespace_phase(raw)
    if kind in {(HPAS.group, HPAS.kind), (SCALED_OBJECTS.group, SCALED_OBJECTS.kind)}:
        return scale_target(raw)
    if key in _MIRRORS:
        return mirror_facts(raw)
    return None


def _namespace_phase(raw: dict[str, Any]) -> str:
    if mapping(raw, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return text(mapping(raw, "status"), "phase", "Active")
