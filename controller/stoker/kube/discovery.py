"""Which kinds the API server serves, read when first asked for and kept.

In: a function that reads one JSON document. Out: ApiResources. Used by kube.client.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from stoker.kube.errors import KindNotFound, NotFound, api_error
from stoker.model.ports import ApiResource

__all__ = ["Discovery"]

Reader = Callable[[str, str], dict[str, Any]]
"""Reads a path; the second argument names the request in errors."""


class Discovery:
    """A cache of discovery. A kind that is missing is asked for again every time."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._versions: dict[str, tuple[str, ...]] | None = None
        self._kinds: dict[tuple[str, str], dict[str, ApiResource]] = {}

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            self._versions = None
            self._kinds = {}

    def learn(self, other: Discovery) -> None:
        """Know what another cache of the same server knows now."""
        with other._lock:
            versions, kinds = other._versions, dict(other._kinds)
        with self._lock:
            self._versions, self._kinds = versions, kinds

    def resource(self, group: str, kind: str, version: str = "") -> ApiResource:
        """The served resource; without version in the first version that has the kind.

        The server's preferred version is asked first. Raises KindNotFound where group,
        version or kind are not served, and what the reader raises when discovery can't be
        read (that is no proof of absence).
        """
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

    def _versions_of(self, group: str, kind: str) -> tuple[str, ...]:
        if not group:
            return ("v1",)
        with self._lock:
            versions = self._versions
        if versions is None or group not in versions:
            groups = self._read("/apis", "list of API groups").get("groups") or ()
            versions = {entry["name"]: _preferred_first(entry) for entry in groups}
            with self._lock:
                self._versions = versions
        if group not in versions:
            raise _kind_not_found(group, kind, "")
        return versions[group]

    def _read_kinds(self, group: str, version: str, kind: str) -> dict[str, ApiResource]:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            document = self._read(path, f"kinds of {group or 'core'}/{version}")
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


def _preferred_first(group: dict[str, Any]) -> tuple[str, ...]:
    preferred = str(group["preferredVersion"]["version"])
    others = (str(entry["version"]) for entry in group.get("versions") or ())
    return (preferred, *(version for version in others if version != preferred))


def _kind_not_found(group: str, kind: str, version: str) -> Exception:
    api_version = "/".join(part for part in (group, version) if part)
    return api_error(404, "the server does not serve it", what=f"kind {kind} of {api_version}")
