"""Discovery documents of the in-memory API server, and what custom kinds it serves.

In: the store's CRDs. Out: Resources by path, and the documents of /version, /api and /apis.
Used by kube.memory.
"""

from __future__ import annotations

from typing import Any, Final

from stoker.kube.memory_commit import Commits
from stoker.kube.memory_kinds import BUILT_IN, Resource, resources_from_crd
from stoker.kube.memory_store import Store

__all__ = ["CRDS", "VERSION", "Served", "establish"]

Json = dict[str, Any]

CRDS: Final = "apiextensions.k8s.io/customresourcedefinitions"
VERSION: Final = "v1.37.2"
_MEMBERS: Final = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)


class Served:
    """Every kind that is served now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._built_in = {(r.group, r.version, r.plural): r for r in BUILT_IN}
        self._all = dict(self._built_in)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copied server reads its CRDs again; the types of built-in kinds are never copied."""
        return _served_again, (self._store,)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a path, or None."""
        return self._all.get((group, version, plural))

    def key_of(self, group: str, kind: str) -> str:
        """Where the store keeps the objects of a kind; empty when it is not served."""
        found = (r.key for r in self._all.values() if r.kind == kind and r.group == group)
        return next(found, "")

    def is_built_in(self, group: str) -> bool:
        """Whether a group is one of the server's own."""
        return any(r.group == group for r in BUILT_IN)

    def keys_of(self, crd: Json) -> str:
        """Where the store keeps the objects of a CRD."""
        spec = crd["spec"]
        return f"{spec['group']}/{spec['names']['plural']}"

    def refresh(self) -> None:
        """Read the CRDs again after one came, changed or went."""
        self._all = dict(self._built_in)
        for _, stored in self._store.items(CRDS):
            for resource in resources_from_crd(stored.manifest):
                self._all[resource.group, resource.version, resource.plural] = resource

    def document(self, path: str, accept: str = "") -> Json | None:
        """The discovery document at a path, or None where there is none.

        With everything below the path in one where the Accept header offers that.
        """
        parts = [part for part in path.split("/") if part]
        match parts:
            case ["version"]:
                return _version()
            case ["api"] if _aggregated_wanted(accept):
                return self._aggregated([""])
            case ["apis"] if _aggregated_wanted(accept):
                return self._aggregated(self._groups())
            case ["api"]:
                return {
                    "kind": "APIVersions",
                    "versions": ["v1"],
                    "serverAddressByClientCIDRs": [],
                }
            case ["api", version]:
                return self._kinds("", version)
            case ["apis"]:
                groups = [self._group(group) for group in self._groups()]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", group] if group in self._groups():
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            case ["apis", group, version]:
                return self._kinds(group, version)
            case _:
                return None

    def _groups(self) -> list[str]:
        return list(dict.fromkeys(group for group, _, _ in self._all if group))

    def _group(self, group: str) -> Json:
        versions = dict.fromkeys(v for g, v, _ in self._all if g == group)
        listed = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
        return {"name": group, "versions": listed, "preferredVersion": listed[0]}

    def _aggregated(self, groups: list[str]) -> Json:
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": group, "creationTimestamp": None},
                    "versions": [
                        {
                            "version": version,
                            "resources": [_told(r) for r in self._all_of(group, version)],
                            "freshness": "Current",
                        }
                        for version in dict.fromkeys(v for g, v, _ in self._all if g == group)
                    ],
                }
                for group in groups
            ],
        }

    def _all_of(self, group: str, version: str) -> list[Resource]:
        return [r for r in self._all.values() if (r.group, r.version) == (group, version)]

    def _kinds(self, group: str, version: str) -> Json | None:
        found = self._all_of(group, version)
        if not found:
            return None
        resources: list[Json] = []
        for resource in found:
            resources.append(_entry(resource, resource.plural, resource.kind, _MEMBERS))
            for name in resource.subresources:
                kind, verbs = _below(resource, name)
                entry = _entry(resource, f"{resource.plural}/{name}", kind, verbs)
                if name == "scale":
                    entry |= {"group": "autoscaling", "version": "v1"}
                resources.append(entry)
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": resources,
        }


def _aggregated_wanted(accept: str) -> bool:
    """Whether the aggregated form is among the offers: the server prefers it to the plain one."""
    for offer in accept.split(","):
        kind, *parameters = (part.strip() for part in offer.split(";"))
        wanted = dict(p.partition("=")[::2] for p in parameters)
        aggregated = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
        if kind == "application/json" and wanted == aggregated:
            return True
    return False


def _below(resource: Resource, subresource: str) -> tuple[str, tuple[str, ...]]:
    """Kind and verbs of a subresource."""
    kind = {"scale": "Scale", "binding": "Binding", "eviction": "Eviction"}.get(subresource)
    made = subresource in {"binding", "eviction"}
    return kind or resource.kind, ("create",) if made else ("get", "patch", "update")


def _told(resource: Resource) -> Json:
    """One resource of an aggregated answer."""
    below = []
    for name in resource.subresources:
        kind, verbs = _below(resource, name)
        told = {"subresource": name, "responseKind": _kind(resource, kind), "verbs": list(verbs)}
        below.append(told)
    return {
        "resource": resource.plural,
        "responseKind": _kind(resource, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.kind.lower(),
        "verbs": list(_MEMBERS),
        **({"subresources": below} if below else {}),
    }


def _kind(resource: Resource, kind: str) -> Json:
    if kind == "Scale":
        return {"group": "autoscaling", "version": "v1", "kind": kind}
    return {"group": resource.group, "version": resource.version, "kind": kind}


def _entry(resource: Resource, name: str, kind: str, verbs: tuple[str, ...]) -> Json:
    singular = "" if "/" in name else resource.kind.lower()
    return {
        "name": name,
        "singularName": singular,
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": list(verbs),
    }


def _version() -> Json:
    return {
        "major": "1",
        "minor": "37",
        "gitVersion": VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "memory",
    }


def _served_again(store: Store) -> Served:
    served = Served(store)
    served.refresh()
    return served


def establish(commits: Commits, name: str) -> None:
    """Accept a new CRD's names: what the real server does within 0.1 s of its creation."""
    live = commits.store.get(CRDS, "", name)
    if live is None or (live.manifest.get("status") or {}).get("conditions"):
        return
    conditions = [
        {
            "type": kind,
            "status": "True",
            "lastTransitionTime": commits.now(),
            "reason": reason,
            "message": text,
        }
        for kind, reason, text in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    status = {
        **live.manifest["status"],
        "acceptedNames": live.manifest["spec"]["names"],
        "conditions": conditions,
    }
    commits.server_status(CRDS, "", name, live, status)
