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
        self._preferred: dict[str, str] | None = None
        self._kinds: dict[tuple[str, str], dict[str, ApiResource]] = {}

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            self._preferred = None
            self._kinds = {}

    def resource(self, group: str, kind: str, version: str = "") -> ApiResource:
        """The served resource; without version the one the server prefers.

        Raises KindNotFound where group, version or kind are not served, and what the
        reader raises when discovery can't be read (that is no proof of absence).
        """
        version = version or ("v1" if not group else self._preferred_version(group, kind))
        with self._lock:
            known = self._kinds.get((group, version))
        if known is None or kind not in known:
            known = self._read_kinds(group, version, kind)
            with self._lock:
                self._kinds[group, version] = known
        if kind not in known:
            raise _kind_not_found(group, kind, version)
        return known[kind]

    def _preferred_version(self, group: str, kind: str) -> str:
        with self._lock:
            preferred = self._preferred
        if preferred is None or group not in preferred:
            groups = self._read("/apis", "list of API groups").get("groups") or ()
            preferred = {g["name"]: g["preferredVersion"]["version"] for g in groups}
            with self._lock:
                self._preferred = preferred
        if group not in preferred:
            raise _kind_not_found(group, kind, "")
        return preferred[group]

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


def _kind_not_found(group: str, kind: str, version: str) -> Exception:
    api_version = "/".join(part for part in (group, version) if part)
    return api_error(404, "the server does not serve it", what=f"kind {kind} of {api_version}")
