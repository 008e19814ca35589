"""From a body to a `Manifest`: namespace, marks and digest.

Called by render for the objects of every unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stoker.errors import SourceLocation
from stoker.model.codec import digest
from stoker.model.manifest import Manifest
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects import kinds, names
from stoker.render.neutral import NeutralObject, NeutralUnit

__all__ = ["cluster_kinds", "manifest_of", "placed", "with_labels"]

ClusterKinds = frozenset[tuple[str, str]]


def cluster_kinds(units: Iterable[NeutralUnit]) -> ClusterKinds:
    """(group, kind) of every custom resource that the fleet itself defines as cluster-scoped."""
    found: set[tuple[str, str]] = set()
    for unit in units:
        for item in unit.objects:
            if (item.ref.group, item.ref.kind) == (kinds.CRD_GROUP, "CustomResourceDefinition"):
                spec = item.body.get("spec")
                if isinstance(spec, dict) and spec.get("scope") == "Cluster":
                    kind_names = spec.get("names")
                    kind = kind_names.get("kind") if isinstance(kind_names, dict) else None
                    found.add((str(spec.get("group")), str(kind)))
    return frozenset(found)


def placed(item: NeutralObject, namespace: str, cluster_scoped: ClusterKinds) -> NeutralObject:
    """The object with the unit's namespace, if its kind has one and its file gives none.

    A custom kind that the fleet does not define is taken to have namespaces; diff, which
    can ask the server, has the last word.
    """
    group, kind = item.ref.group, item.ref.kind
    builtin = kinds.is_builtin_namespaced(group, kind)
    namespaced = (group, kind) not in cluster_scoped if builtin is None else builtin
    metadata = item.body["metadata"]
    if item.ref.namespace or not namespaced:
        if "namespace" in metadata and not metadata["namespace"]:
            metadata = {key: value for key, value in metadata.items() if key != "namespace"}
            return replace(item, body={**item.body, "metadata": metadata})
        return item
    body = {**item.body, "metadata": {**metadata, "namespace": namespace}}
    return replace(item, ref=replace(item.ref, namespace=namespace), body=body)


def with_labels(body: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    """The body with these labels on top of its own."""
    metadata = body["metadata"]
    own = metadata.get("labels") or {}
    return {**body, "metadata": {**metadata, "labels": {**own, **labels}}}


def manifest_of(
    ref: ObjectRef,
    body: dict[str, Any],
    source: SourceLocation,
    owner: tuple[str, UnitRef],
    *,
    frozen_template: bool = False,
) -> Manifest:
    """The object with its owner mark, ready to be sent. `owner` is fleet id and unit."""
    metadata = body["metadata"]
    annotations = {
        **(metadata.get("annotations") or {}),
        names.OWNER: names.owner_mark(*owner, ref),
    }
    marked = {**body, "metadata": {**metadata, "annotations": annotations}}
    return Manifest(ref, marked, digest(marked), source, frozen_template)
