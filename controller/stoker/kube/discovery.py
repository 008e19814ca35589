"""Which kinds the API server serves, read when first asked for and kept.

Aggregated discovery (Kubernetes 1.30 and later) tells all kinds below /api or /apis in one
answer; a server without it is asked for one group version after the other, and so is what
the one answer left out. In: a function that reads one JSON document. Out: ApiResources.
Used by kube.client.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from stoker.kube.errors import Forbidden, Invalid, KindNotFound, NotFound, api_error
from stoker.kube.requests import ACCEPT_DISCOVERY, ACCEPT_JSON
from stoker.model.ports import ApiResource

__all__ = ["Discovery"]

Reader = Callable[[str, str, str], dict[str, Any]]
"""Reads a path; the second argument names the request in errors, the third is its Accept."""
Kinds = dict[str, ApiResource]
"""The kinds of one group version by name."""
_ROOTS = ("/api", "/apis")
"""Above the core group, and above all others."""


class Discovery:
    """A cache of discovery. A kind that is missing is asked for again every time."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._roots: frozenset[str] = frozenset()
        self._versions: dict[str, tuple[str, ...]] = {}
        self._kinds: dict[tuple[str, str], Kinds] = {}

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            self._roots, self._versions, self._kinds = frozenset(), {}, {}

    def learn(self, other: Discovery) -> None:
        """Know what another cache of the same server knows, once it has read both roots."""
        for root in _ROOTS:
            other._read_root(root)
        with other._lock:
            roots, versions, kinds = other._roots, dict(other._versions), dict(other._kinds)
        with self._lock:
            self._roots, self._versions, self._kinds = roots, versions, kinds

    def resource(self, group: str, kind: str, version: str = "") -> ApiResource:
        """The served resource; without version in the first version that has the kind.

        The server's preferred version is asked first. Raises KindNotFound where group,
        version or kind are not served, and what the reader raises when discovery can't be
        read (that is no proof of absence).
        """
        self._read_root(_ROOTS[bool(group)])
        for candidate in (version,) if version else self._versions_of(group, kind):
            with self._lock:
                known = self._kinds.get((group, candidate))
            if known is None or kind not in known:
                known = self._read_kinds(group, candidate, kind)
                with self._lock:
                    self._kinds[group, candidate] = known
            if kind in known:
                return known[kind]
        raise _kind_not_found(group, kind, version)

    def _read_root(self, root: str) -> None:
        """Read all kinds below a root at once, the first time that one of them is asked for.

        What refuses it leaves everything to the reads of single group versions.
        """
        with self._lock:
            if root in self._roots:
                return
        try:
            document = self._read(root, f"kinds below {root}", ACCEPT_DISCOVERY)
        except (Forbidden, Invalid, KindNotFound, NotFound):
            document = {}
        versions, kinds = _from_root(document)
        with self._lock:
            self._roots |= {root}
            self._versions |= versions
            self._kinds |= kinds

    def _versions_of(self, group: str, kind: str) -> tuple[str, ...]:
        if not group:
            return ("v1",)
        with self._lock:
            known = self._versions.get(group)
        if known is None:
            document = self._read("/apis", "list of API groups", ACCEPT_JSON)
            versions = _versions_from_groups(document)
            with self._lock:
                self._versions |= versions
            if group not in versions:
                raise _kind_not_found(group, kind, "")
            known = versions[group]
        return known

    def _read_kinds(self, group: str, version: str, kind: str) -> Kinds:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            document = self._read(path, f"kinds of {group or 'core'}/{version}", ACCEPT_JSON)
        except (KindNotFound, NotFound) as absent:
            raise _kind_not_found(group, kind, version) from absent
        resources = document.get("resources") or ()
        below: dict[str, list[str]] = {}
        for entry in resources:
            plural, _, subresource = str(entry["name"]).partition("/")
            if subresource:
                below.setdefault(plural, []).append(subresource)
        return {
            entry["kind"]: ApiResource(
                group=group,
                version=version,
                kind=entry["kind"],
                plural=entry["name"],
                namespaced=bool(entry["namespaced"]),
                subresources=tuple(sorted(below.get(entry["name"], ()))),
            )
            for entry in resources
            if "/" not in entry["name"]
        }


def _from_root(
    document: dict[str, Any],
) -> tuple[dict[str, tuple[str, ...]], dict[tuple[str, str], Kinds]]:
    """Versions by group, preferred first, and kinds by group and version, as far as told.

    A server without aggregated discovery answers with its groups alone. What it could not ask
    an extension server again for it marks Stale: that proves nothing and is left out.
    """
    if document.get("kind") != "APIGroupDiscoveryList":
        return _versions_from_groups(document), {}
    versions: dict[str, tuple[str, ...]] = {}
    kinds: dict[tuple[str, str], Kinds] = {}
    for entry in document.get("items") or ():
        group = str(entry["metadata"].get("name", ""))
        told = entry.get("versions") or ()
        versions[group] = tuple(str(one["version"]) for one in told)
        for one in told:
            if one.get("freshness") != "Stale":
                version = str(one["version"])
                kinds[group, version] = _kinds_told(group, version, one.get("resources") or ())
    return versions, kinds


def _kinds_told(group: str, version: str, resources: Iterable[dict[str, Any]]) -> Kinds:
    """One group version of an aggregated answer; a resource without a kind has no objects."""
    return {
        entry["responseKind"]["kind"]: ApiResource(
            group=group,
            version=version,
            kind=entry["responseKind"]["kind"],
            plural=entry["resource"],
            namespaced=entry["scope"] == "Namespaced",
            subresources=tuple(
                sorted(str(below["subresource"]) for below in entry.get("subresources") or ())
            ),
        )
        for entry in resources
        if (entry.get("responseKind") or {}).get("kind")
    }


def _versions_from_groups(document: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    groups = document.get("groups") or ()
    return {str(entry["name"]): _preferred_first(entry) for entry in groups}


def _preferred_first(group: dict[str, Any]) -> tuple[str, ...]:
    preferred = str(group["preferredVersion"]["version"])
    others = (str(entry["version"]) for entry in group.get("versions") or ())
    return (preferred, *(version for version in others if version != preferred))


def _kind_not_found(group: str, kind: str, version: str) -> Exception:
    api_version = "/".join(part for part in (group, version) if part)
    return api_error(404, "the server does not serve it", what=f"kind {kind} of {api_version}")
