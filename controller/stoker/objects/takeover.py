"""Which other tools an adopted object comes from, and its entries without them.

managedFields of a live object come in; the tools whose place Git takes, and the entries
that are left when they have gone, go out. Without this a field that leaves Git would stay
for ever, co-owned by a tool that nobody runs any more (ssa-facts 59, 62). Values never
change: an entry only says who answers for a field. Used by import, diff and apply.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from stoker.objects.conflicts import is_persons_tool

__all__ = [
    "ARGO_CD",
    "FLUX_HELM",
    "FLUX_KUSTOMIZE",
    "LAST_APPLIED",
    "LAST_APPLIED_MANAGER",
    "Rival",
    "controllers_of",
    "gives_way",
    "predecessors",
    "remaining_entries",
]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation of client-side apply (kubectl, Argo CD): the manifest that was applied last."""
LAST_APPLIED_MANAGER = "kubectl-last-applied"
"""Who owns that annotation after `kubectl apply --server-side` (ssa-facts 60)."""

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


def predecessors(live: dict[str, Any]) -> tuple[str, ...]:
    """Managers with an entry on the object itself that give way; sorted, without repeats."""
    return tuple(sorted({str(entry.get("manager", "")) for entry in _going(live)}))


def controllers_of(live: dict[str, Any]) -> tuple[Rival, ...]:
    """GitOps controllers with an entry on the object itself, each with its last write."""
    latest: dict[str, str] = {}
    for entry in _going(live):
        manager, time = str(entry.get("manager", "")), str(entry.get("time", ""))
        if _is_controller(manager):
            latest[manager] = max(time, latest.get(manager, ""))
    return tuple(sorted(latest.items()))


def remaining_entries(live: dict[str, Any]) -> list[dict[str, Any]]:
    """The object's managedFields without the entries that give way, in the server's order.

    Entries of subresources stay: whoever scales or reports status goes on doing so.
    """
    going = _going(live)
    return [entry for entry in _entries(live) if entry not in going]


def _going(live: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        entry
        for entry in _entries(live)
        if not entry.get("subresource") and gives_way(str(entry.get("manager", "")))
    ]


def _entries(live: dict[str, Any]) -> list[dict[str, Any]]:
    entries = (live.get("metadata") or {}).get("managedFields") or []
    return [entry for entry in entries if isinstance(entry, dict)]


def _is_controller(manager: str) -> bool:
    return any(fnmatchcase(manager, pattern) for pattern in _CONTROLLERS)
