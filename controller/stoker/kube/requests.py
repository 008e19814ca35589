"""Paths, content types and Accept headers of the Kubernetes API.

In: served resources and references. Out: request paths. Used by kube.client.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from stoker.model.ports import ApiResource
from stoker.model.refs import ObjectRef

__all__ = [
    "ACCEPT_DISCOVERY",
    "ACCEPT_JSON",
    "ACCEPT_METADATA",
    "CONTENT_TYPES",
    "collection_path",
    "object_path",
]

ACCEPT_JSON: Final = "application/json"
ACCEPT_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""A list of metadata only. The parameter is v=v1: with v=1 the server answers 406."""
ACCEPT_DISCOVERY: Final = (
    f"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{ACCEPT_JSON}"
)
"""All kinds below /api or /apis in one answer (since 1.30), else the groups alone."""

CONTENT_TYPES: Final = {
    "object": "application/json",
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}


def collection_path(served: ApiResource, namespace: str = "") -> str:
    """The path of all objects of a kind, in one namespace or (empty) in all."""
    root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
    if served.namespaced and namespace:
        return f"{root}/namespaces/{quote(namespace, safe='')}/{served.plural}"
    return f"{root}/{served.plural}"


def object_path(served: ApiResource, ref: ObjectRef, subresource: str = "") -> str:
    """The path of one object or of a subresource of it."""
    path = f"{collection_path(served, ref.namespace)}/{quote(ref.name, safe='')}"
    return f"{path}/{subresource}" if subresource else path
