"""Which other tools an adopted object comes from, and its entries without them.

A live object with its managedFields and our manager come in; the tools whose place Git
takes, and what is left of entries and marks when they have gone, go out. Without this a
field that leaves Git would stay for ever, co-owned by a tool that nobody runs any more
(ssa-facts 59, 62). Used by import, diff and apply.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from stoker.objects.conflicts import is_persons_tool
from stoker.objects.fieldset import parse_fields_v1
from stoker.objects.fieldset_trees import intersection
from stoker.objects.owned import our_fields

__all__ = [
    "ARGO_CD",
    "FLUX_HELM",
    "FLUX_KUSTOMIZE",
    "LAST_APPLIED",
    "TRACKING_MARKS",
    "Rival",
    "controllers_of",
    "gives_way",
    "predecessors",
    "tracking_marks",
    "without_predecessors",
]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation of client-side apply (kubectl, Argo CD): the manifest that was applied last."""

TRACKING_MARKS: dict[str, tuple[str, ...]] = {
    "annotations": (LAST_APPLIED, "argocd.argoproj.io/tracking-id"),
    "labels": (
        "argocd.argoproj.io/instance",
        "helm.toolkit.fluxcd.io/name",
        "helm.toolkit.fluxcd.io/namespace",
        "kustomize.toolkit.fluxcd.io/name",
        "kustomize.toolkit.fluxcd.io/namespace",
    ),
}
"""Marks by which other tools find what is theirs; Flux and Argo CD delete nothing without."""

FLUX_KUSTOMIZE = "kustomize-controller"
FLUX_HELM = "helm-controller"
ARGO_CD = "argocd-*controller"
"""`argocd-controller`, and `argocd-application-controller` of older versions."""

_CONTROLLERS = (FLUX_KUSTOMIZE, FLUX_HELM, ARGO_CD)
"""GitOps controllers: they write what another repository says, until somebody stops them."""

Rival = tuple[str, str]
"""A manager, and when it wrote last (RFC 3339)."""


def gives_way(manager: str) -> bool:
    """Whether Git takes the place of that manager once an object is adopted."""
    return is_persons_tool(manager) or _is_controller(manager)


def controllers_of(live: dict[str, Any]) -> tuple[Rival, ...]:
    """GitOps controllers with an entry on the object itself, each with its last write."""
    latest: dict[str, str] = {}
    for entry in _entries(live):
        manager, time = str(entry.get("manager", "")), str(entry.get("time", ""))
        if _is_controller(manager) and not entry.get("subresource"):
            latest[manager] = max(time, latest.get(manager, ""))
    return tuple(sorted(latest.items()))


def predecessors(live: dict[str, Any], manager: str) -> tuple[str, ...]:
    """Who gives way and still shares a field with our manager; sorted, without repeats."""
    return tuple(sorted({str(entry.get("manager", "")) for entry in _going(live, manager)}))


def without_predecessors(live: dict[str, Any], manager: str) -> list[dict[str, Any]]:
    """The object's managedFields without them, in the server's order.

    Entries of subresources stay: whoever scales or reports status goes on doing so. So do
    entries that share nothing with ours: a label that somebody typed is no business of Git.
    """
    going = _going(live, manager)
    return [entry for entry in _entries(live) if entry not in going]


def tracking_marks(live: dict[str, Any], manager: str) -> tuple[tuple[str, str], ...]:
    """Marks of other tools on the object, as (labels or annotations, key); Git's own stay."""
    metadata = live.get("metadata") or {}
    ours = our_fields(live, manager)
    return tuple(
        (place, key)
        for place, keys in TRACKING_MARKS.items()
        for key in keys
        if key in (metadata.get(place) or {})
        and ("f:metadata", f"f:{place}", f"f:{key}") not in ours
    )


def _going(live: dict[str, Any], manager: str) -> list[dict[str, Any]]:
    ours = our_fields(live, manager).tree
    return [
        entry
        for entry in _entries(live)
        if not entry.get("subresource")
        and gives_way(str(entry.get("manager", "")))
        and intersection(parse_fields_v1(entry.get("fieldsV1")).tree, ours)
    ]


def _entries(live: dict[str, Any]) -> list[dict[str, Any]]:
    entries = (live.get("metadata") or {}).get("managedFields") or []
    return [entry for entry in entries if isinstance(entry, dict)]


def _is_controller(manager: str) -> bool:
    return any(fnmatchcase(manager, pattern) for pattern in _CONTROLLERS)
