"""The live view: what is known of the cluster's objects at one instant.

The observer's caches come in, frozen; diff, apply and report read through the LiveView
port. Bodies are parsed when they are asked for, so nothing is held twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from stoker.errors import StokerError
from stoker.kube.errors import KindNotFound, NotFound
from stoker.model.live import LiveObject
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, ref_from_manifest
from stoker.objects import names
from stoker.objects.health_fields import mapping, text
from stoker.objects.kinds import is_builtin_namespaced
from stoker.observe.external import ScaleTarget, scalers_by_target
from stoker.observe.keys import HPAS, NAMESPACES, SCALED_OBJECTS, WatchKey
from stoker.observe.projection import Entry
from stoker.observe.reflector import NO_SUCH_KIND

__all__ = ["CachedLive", "KindView", "ScalerMemo", "scalers_of"]

NOT_WATCHED = "not watched"

_SCALERS = frozenset({(HPAS.group, HPAS.kind), (SCALED_OBJECTS.group, SCALED_OBJECTS.kind)})


@dataclass(frozen=True, slots=True)
class KindView:
    """One cache at one instant. `why_unknown` empty: the content is what the cluster holds."""

    key: WatchKey
    entries: Mapping[tuple[str, str], Entry]
    why_unknown: str


class _CachedObject(LiveObject):
    """Decodes its body when it is asked for one: most passes need none."""

    __slots__ = ("_decoded", "_entry")
    _decoded: dict[str, Any] | None
    _entry: Entry

    def __init__(self, entry: Entry) -> None:
        set_once = object.__setattr__  # the base is frozen
        set_once(self, "ref", entry.ref)
        set_once(self, "uid", entry.uid)
        set_once(self, "resource_version", entry.resource_version)
        set_once(self, "owner", entry.owner)
        set_once(self, "_entry", entry)
        set_once(self, "_decoded", None)

    @property
    def body(self) -> dict[str, Any]:
        if self._decoded is None:
            object.__setattr__(self, "_decoded", msgspec.json.decode(self._entry.body))
        assert self._decoded is not None
        return self._decoded

    @property
    def content_version(self) -> str:
        return self._entry.content or self.resource_version

    @property
    def is_leaving(self) -> bool:
        return self._entry.leaving


class CachedLive:
    """Implements model.live.LiveView over frozen caches.

    Objects that are neither marked nor managed by this fleet have only `apiVersion`,
    `kind` and `metadata` (without managedFields) in their body. Secrets are cached by
    nobody: `get` reads ours anew, once a call.
    """

    def __init__(
        self,
        kinds: Iterable[KindView],
        unsettled: Mapping[ObjectRef, str],
        cluster: Cluster,
        scalers: ScalerMemo | None = None,
    ) -> None:
        self._kinds: dict[tuple[str, str], tuple[KindView, ...]] = {}
        for kind in sorted(kinds, key=lambda view: view.key):
            place = (kind.key.group, kind.key.kind)
            self._kinds[place] = (*self._kinds.get(place, ()), kind)
        self._unsettled = unsettled
        self._cluster = cluster
        self._served: dict[tuple[str, str, str], bool | None] = {}
        self._chosen: dict[tuple[str, str, str, str], KindView | None] = {}
        self._phases: dict[str, str] = {}
        self._scalers: Mapping[ObjectRef, str] | None = None
        self._scalers_read = False
        self._scalers_of = scalers_of if scalers is None else scalers.of

    def get(self, ref: ObjectRef) -> LiveObject | None:
        """The object, or None when it is known to be absent. Ask `known` first.

        Raises what the Cluster port raises, for our own Secrets only.
        """
        view = self._view(ref)
        entry = view.entries.get((ref.namespace, ref.name)) if view is not None else None
        if view is None or entry is None:
            return None
        if ref.kind == "Secret" and not ref.group and entry.unit is not None:
            return self._secret(entry.ref)
        return _CachedObject(entry)

    def known(self, ref: ObjectRef) -> bool:
        """Whether presence or absence of this object is known for certain."""
        return not self.why_unknown(ref)

    def why_unknown(self, ref: ObjectRef) -> str:
        """Why it is not known: empty when it is."""
        if self._unsettled and ref in self._unsettled:
            return self._unsettled[ref]
        view = self._view(ref)
        return NOT_WATCHED if view is None else view.why_unknown

    def owned(self, fleet_id: str) -> tuple[LiveObject, ...]:
        """Every known object whose owner mark names this fleet and itself, sorted by ref.

        Secrets come with their metadata only.
        """
        found: dict[ObjectRef, LiveObject] = {}
        for views in self._kinds.values():
            for view in views:
                for entry in () if view.why_unknown else view.entries.values():
                    ref = entry.ref
                    if names.unit_of_mark(entry.owner, fleet_id, ref) and ref not in found:
                        found[ref] = _CachedObject(entry)
        ordered = sorted(found, key=lambda ref: (ref.group, ref.kind, ref.namespace, ref.name))
        return tuple(found[ref] for ref in ordered if ref not in self._unsettled)

    def has_kind(self, ref: ObjectRef) -> bool | None:
        """Whether the API server serves that kind and version; None when it cannot be read."""
        place = (ref.group, ref.version, ref.kind)
        if place not in self._served:
            try:
                self._cluster.resource(ref.group, ref.kind, ref.version)
                self._served[place] = True
            except KindNotFound:
                self._served[place] = False
            except StokerError:
                self._served[place] = None
        return self._served[place]

    def is_namespaced(self, ref: ObjectRef) -> bool:
        """Whether the kind lives in namespaces (True when unknown)."""
        builtin = is_builtin_namespaced(ref.group, ref.kind)
        if builtin is not None:
            return builtin
        try:
            return self._cluster.resource(ref.group, ref.kind, ref.version).namespaced
        except StokerError:
            return True

    def namespace_phase(self, name: str) -> str:
        """`Active`, `Terminating`, empty for absent, `Unknown`."""
        if name not in self._phases:
            self._phases[name] = self._phase_of(name)
        return self._phases[name]

    def _phase_of(self, name: str) -> str:
        ref = NAMESPACES.ref("", name)
        view = self._view(ref)
        if view is None or self.why_unknown(ref):
            return "Unknown"
        entry = view.entries.get(("", name))
        if entry is None:
            return ""
        return entry.facts if isinstance(entry.facts, str) else "Active"

    def scaler(self, ref: ObjectRef) -> str | None:
        """Who else owns the count of a workload (`HorizontalPodAutoscaler/x`).

        Empty for nobody, None when the autoscalers could not be read.
        """
        if not self._scalers_read:
            self._scalers = self._scalers_of(v for views in self._kinds.values() for v in views)
            self._scalers_read = True
        return None if self._scalers is None else self._scalers.get(ref, "")

    def _view(self, ref: ObjectRef) -> KindView | None:
        """The cache to look in: known ones first, then of the same version, then wider."""
        place = (ref.group, ref.kind, ref.version, ref.namespace)
        if place not in self._chosen:
            self._chosen[place] = self._choose(ref)
        return self._chosen[place]

    def _choose(self, ref: ObjectRef) -> KindView | None:
        covering = [
            view for view in self._kinds.get((ref.group, ref.kind), ()) if view.key.covers(ref)
        ]
        return min(
            covering,
            key=lambda view: (bool(view.why_unknown), view.key.version != ref.version, view.key),
            default=None,
        )

    def _secret(self, ref: ObjectRef) -> LiveObject | None:
        try:
            body = self._cluster.get(ref)
        except NotFound:
            return None
        metadata = mapping(body, "metadata")
        return LiveObject(
            ref=ref_from_manifest(body),
            uid=text(metadata, "uid"),
            resource_version=text(metadata, "resourceVersion"),
            owner=text(mapping(metadata, "annotations"), names.OWNER),
            body=body,
        )


class ScalerMemo:
    """`scalers_of`, asked of the same autoscalers again and again."""

    def __init__(self) -> None:
        self._asked: tuple[KindView, ...] | None = None
        self._answer: Mapping[ObjectRef, str] | None = None

    def of(self, kinds: Iterable[KindView]) -> Mapping[ObjectRef, str] | None:
        """The same answer, without looking while the caches are the same."""
        asked = tuple(view for view in kinds if (view.key.group, view.key.kind) in _SCALERS)
        if self._asked is None or not _is_same(self._asked, asked):
            self._asked, self._answer = asked, scalers_of(asked)
        return self._answer


def _is_same(one: tuple[KindView, ...], other: tuple[KindView, ...]) -> bool:
    return len(one) == len(other) and all(
        a.entries is b.entries and a.why_unknown == b.why_unknown and a.key == b.key
        for a, b in zip(one, other, strict=True)
    )


def scalers_of(kinds: Iterable[KindView]) -> Mapping[ObjectRef, str] | None:
    """Who else owns counts, by workload; None when a kind of autoscaler could not be read.

    A kind that the API server does not serve has no autoscalers.
    """
    targets: list[ScaleTarget] = []
    missing = set(_SCALERS)
    for view in kinds:
        place = (view.key.group, view.key.kind)
        if place not in _SCALERS or view.key.namespace:
            continue
        if view.why_unknown not in {"", NO_SUCH_KIND}:
            return None
        missing.discard(place)
        targets += [
            entry.facts for entry in view.entries.values() if isinstance(entry.facts, ScaleTarget)
        ]
    return None if missing else scalers_by_target(targets)
