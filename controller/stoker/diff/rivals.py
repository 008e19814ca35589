"""Whether another GitOps controller still writes an object that Git is to take over.

A live object and the clock's word come in; a reason to wait or refuse goes out. Evidence is
a Flux or Argo CD object in this cluster that lists it and is neither suspended nor manual,
or a write within minutes by a controller that is nowhere to be found (Argo CD often runs
in another cluster). Asked by diff for adopted objects only; lists are read once a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from stoker.errors import StokerError
from stoker.kube.errors import KindNotFound
from stoker.model.change import Action
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.model.times import to_milliseconds
from stoker.objects.takeover import (
    ARGO_CD,
    FLUX_HELM,
    FLUX_KUSTOMIZE,
    Rival,
)

__all__ = ["Objection", "Rivals"]

RECENT_MS = 300_000
"""A write this long ago still means that the controller works: Flux and Argo CD look at each
object every few minutes, but write only what differs."""

Place = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an object is not taken over now: ERROR for a person to mend, WAIT for the unknown."""

    action: Action
    code: str
    note: str


@dataclass(slots=True, eq=False)
class Rivals:
    """The GitOps objects of a cluster, read when first asked for."""

    cluster: Cluster
    now_ms: int = 0
    """Milliseconds since 1970; 0 asks nothing of times."""
    _read: dict[str, dict[Place, tuple[str, bool]] | str] = field(default_factory=dict)

    def objection(
        self, ref: ObjectRef, writers: Iterable[Rival], labels: Mapping[str, str]
    ) -> Objection | None:
        """Why Git must not take the object over yet; None when nobody else writes it.

        `writers` are its `controllers_of`, `labels` those of the object.
        """
        for manager, time in writers:
            found = self._objection(manager, time, ref, labels)
            if found is not None:
                return found
        return None

    def _objection(
        self, manager: str, time: str, ref: ObjectRef, labels: Mapping[str, str]
    ) -> Objection | None:
        kind = next(kind for kind in _KINDS if fnmatchcase(manager, kind.manager))
        listed = self._listed(kind)
        if isinstance(listed, str):
            note = f"whether {manager} still writes it could not be read: {listed}"
            return Objection(Action.WAIT, "live-state-unknown", note)
        place = (ref.group, ref.kind, ref.namespace, ref.name)
        name, active = listed.get(place) or listed.get(kind.home(labels)) or ("", False)
        if name and not active:
            return None
        if not name and not self._is_recent(time):
            return None
        who = f"{manager}, last write {time or 'unknown'}"
        remedy = f"{name}: {kind.remedy}" if name else "stop it first"
        return Objection(Action.ERROR, "other-controller-active", f"{who} ({remedy})")

    def _listed(self, kind: _Kind) -> dict[Place, tuple[str, bool]] | str:
        """What the objects of a kind hold: name and whether it is active; or why unknown."""
        if kind.kind not in self._read:
            try:
                items = self.cluster.list(kind.group, kind.kind).items
                found = {place: entry for item in items for place, entry in kind.holds(item)}
                self._read[kind.kind] = found
            except KindNotFound:
                self._read[kind.kind] = {}
            except StokerError as error:
                self._read[kind.kind] = error.message
        return self._read[kind.kind]

    def _is_recent(self, time: str) -> bool:
        try:
            at_ms = to_milliseconds(time)
        except ValueError:
            return False
        return bool(self.now_ms) and self.now_ms - at_ms < RECENT_MS


Holds = Iterator[tuple[Place, tuple[str, bool]]]


def _kustomization(item: dict[str, Any]) -> Holds:
    entry = (_named(item), not (item.get("spec") or {}).get("suspend"))
    inventory = (item.get("status") or {}).get("inventory") or {}
    for held in inventory.get("entries") or ():
        namespace, _, rest = str(held.get("id", "")).partition("_")
        rest, _, kind = rest.rpartition("_")
        name, _, group = rest.rpartition("_")
        yield (group, kind, namespace, name.replace("__", ":")), entry


def _application(item: dict[str, Any]) -> Holds:
    """Without an automated policy an Application writes only when a person says so."""
    policy = ((item.get("spec") or {}).get("syncPolicy") or {}).get("automated")
    entry = (_named(item), policy is not None and policy.get("enabled") is not False)
    for held in (item.get("status") or {}).get("resources") or ():
        parts = (held.get(key) or "" for key in ("group", "kind", "namespace", "name"))
        group, kind, namespace, name = (str(part) for part in parts)
        yield (group, kind, namespace, name), entry


def _helm_release(item: dict[str, Any]) -> Holds:
    """Its status names no objects: they name it, by their labels."""
    metadata = item["metadata"]
    entry = (_named(item), not (item.get("spec") or {}).get("suspend"))
    yield ("", "HelmRelease", str(metadata.get("namespace", "")), str(metadata["name"])), entry


def _named(item: dict[str, Any]) -> str:
    metadata = item["metadata"]
    return f"{item.get('kind')} {metadata.get('namespace')}/{metadata['name']}"


def _no_home(labels: Mapping[str, str]) -> Place:
    del labels
    return ("", "", "", "")


def _helm_home(labels: Mapping[str, str]) -> Place:
    prefix = "helm.toolkit.fluxcd.io"
    space, name = labels.get(f"{prefix}/namespace", ""), labels.get(f"{prefix}/name", "")
    return ("", "HelmRelease", str(space), str(name))


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of object that makes a controller write."""

    manager: str
    group: str
    kind: str
    holds: Callable[[dict[str, Any]], Holds]
    remedy: str
    home: Callable[[Mapping[str, str]], Place] = _no_home


_KINDS = (
    _Kind(
        FLUX_KUSTOMIZE,
        "kustomize.toolkit.fluxcd.io",
        "Kustomization",
        _kustomization,
        "suspend it first",
    ),
    _Kind(
        FLUX_HELM,
        "helm.toolkit.fluxcd.io",
        "HelmRelease",
        _helm_release,
        "suspend it first",
        _helm_home,
    ),
    _Kind(
        ARGO_CD,
        "argoproj.io",
        "Application",
        _application,
        "take its syncPolicy.automated out first",
    ),
)
