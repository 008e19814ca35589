"""Where the in-memory API server keeps its objects: by kind, with versions and a history.

In: manifests that are written as they are. Out: manifests, and events after a version. All
of it runs under the server's one lock; stored manifests are never changed in place.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Event", "Gone", "Store", "Stored"]

EVENTS_KEPT = 50_000
"""Events kept of one kind; beyond it the older half is compacted."""

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


class Gone(Exception):  # noqa: N818 - an answer of the store
    """Events after that version are compacted."""


@dataclass(slots=True)
class Stored:
    """One object at one version; its JSON is made once, when first asked for."""

    manifest: dict[str, Any]
    version: int
    _text: bytes = b""
    _item: bytes = b""

    def text(self) -> bytes:
        """The manifest as JSON."""
        if not self._text:
            self._text = json.dumps(self.manifest, separators=(",", ":")).encode()
        return self._text

    def item(self) -> bytes:
        """As an item of a list of a built-in kind, which says neither kind nor apiVersion."""
        if not self._item:
            bare = {k: v for k, v in self.manifest.items() if k not in {"kind", "apiVersion"}}
            self._item = json.dumps(bare, separators=(",", ":")).encode()
        return self._item


@dataclass(frozen=True, slots=True)
class Event:
    """A change: ADDED (`before` is None), MODIFIED or DELETED.

    For DELETED `after` is the last state, with the version of the deletion.
    """

    version: int
    type: str
    key: Key
    before: Stored | None
    after: Stored


@dataclass(slots=True)
class _Kind:
    objects: dict[Key, Stored] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    compacted: int = 0
    version: int = 0
    """Of the last write to any of them."""


class Store:
    """All objects. `changed` is notified after every write."""

    def __init__(self, lock: threading.RLock) -> None:
        self.changed = threading.Condition(lock)
        self.version = 1
        self.compacted = 0
        self._kinds: dict[str, _Kind] = {}

    def _kind(self, kind: str) -> _Kind:
        return self._kinds.setdefault(kind, _Kind())

    def get(self, kind: str, namespace: str, name: str) -> Stored | None:
        """The object, or None."""
        found = self._kinds.get(kind)
        return found.objects.get((namespace, name)) if found else None

    def items(self, kind: str, namespace: str = "") -> list[tuple[Key, Stored]]:
        """All objects of a kind, or of one namespace, sorted by namespace and name."""
        found = self._kinds.get(kind)
        if found is None:
            return []
        pairs = found.objects.items()
        if namespace:
            pairs = {k: v for k, v in pairs if k[0] == namespace}.items()
        return sorted(pairs, key=lambda pair: pair[0])

    def kinds(self) -> Iterator[str]:
        """Kinds that have ever had an object, sorted."""
        return iter(sorted(self._kinds))

    def put(self, kind: str, namespace: str, name: str, manifest: dict[str, Any]) -> Stored:
        """Store a new state; metadata.resourceVersion is set here."""
        key = (namespace, name)
        self.version += 1
        metadata = {**manifest["metadata"], "resourceVersion": str(self.version)}
        stored = Stored({**manifest, "metadata": metadata}, self.version)
        held = self._kind(kind)
        before = held.objects.get(key)
        held.objects[key] = stored
        event = "MODIFIED" if before else "ADDED"
        self._record(held, Event(self.version, event, key, before, stored))
        return stored

    def remove(self, kind: str, namespace: str, name: str) -> Stored:
        """Delete an object; the answer is its last state at the version of the deletion."""
        key = (namespace, name)
        held = self._kind(kind)
        before = held.objects.pop(key)
        self.version += 1
        metadata = {**before.manifest["metadata"], "resourceVersion": str(self.version)}
        last = Stored({**before.manifest, "metadata": metadata}, self.version)
        self._record(held, Event(self.version, "DELETED", key, before, last))
        return last

    def forget_kind(self, kind: str) -> None:
        """Drop a kind whose CRD is gone, with a DELETED event for each object."""
        for (namespace, name), _ in self.items(kind):
            self.remove(kind, namespace, name)

    def events_after(self, kind: str, version: int) -> list[Event]:
        """Events of a kind after a version, oldest first; raises Gone when some are missing."""
        held = self._kind(kind)
        if version < max(self.compacted, held.compacted):
            raise Gone
        start = bisect_right(held.events, version, key=lambda event: event.version)
        return held.events[start:]

    def compact(self) -> None:
        """Forget all events up to now: watches from older versions get 410."""
        self.compacted = self.version
        for held in self._kinds.values():
            held.events.clear()
        self.changed.notify_all()

    def version_of(self, kind: str) -> int:
        """The version of the last write to any object of the kind; 0 before the first."""
        held = self._kinds.get(kind)
        return held.version if held else 0

    def _record(self, held: _Kind, event: Event) -> None:
        held.version = event.version
        held.events.append(event)
        if len(held.events) > EVENTS_KEPT:
            forgotten = held.events[: EVENTS_KEPT // 2]
            held.compacted = forgotten[-1].version
            del held.events[: EVENTS_KEPT // 2]
        self.changed.notify_all()
