"""One cache: the objects of one WatchKey, in the newest version that was ever seen.

Entries come in from lists, watches and answered writes, in any order and more than once;
the newest resourceVersion of each name wins, so all orders end in the same content. What
changed is given back. Readers take `view()`, a mapping that never changes again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stoker.observe.keys import WatchKey
from stoker.observe.projection import Entry

__all__ = ["Changed", "KindStore", "Name", "is_newer"]

Name = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One name before and after; None for absent."""

    before: Entry | None
    after: Entry | None

    @property
    def goes_back(self) -> bool:
        """Whether the object is in an older version than before, which no history has."""
        if self.before is None or self.after is None:
            return False
        return is_newer(self.before.resource_version, self.after.resource_version)


class KindStore:
    """Guarded by the lock it is given, which all caches share and nobody holds across I/O.

    `why_unknown` is empty while the content is what the cluster holds, as far as watches
    can tell; otherwise it says why not, and the content proves nothing.
    """

    def __init__(self, key: WatchKey, lock: threading.RLock) -> None:
        self.key = key
        self.why_unknown = "not synced"
        self.resource_version = ""
        """Of the last whole list; empty before it."""
        self._lock = lock
        self._entries: dict[Name, Entry] = {}
        self._gone: dict[Name, str] = {}
        self._view: Mapping[Name, Entry] | None = None

    def view(self) -> Mapping[Name, Entry]:
        """The content now; the same object until something changes."""
        with self._lock:
            if self._view is None:
                self._view = MappingProxyType(dict(self._entries))
            return self._view

    def replace(self, resource_version: str, entries: Iterable[Entry]) -> tuple[Changed, ...]:
        """Take a whole list as the truth at its version; the store is known from then on.

        What was seen newer than the list stays; what the list lacks is deleted, unless it
        is newer than the list. Changes are sorted by name.
        """
        listed = {(entry.namespace, entry.name): entry for entry in entries}
        with self._lock:
            content: dict[Name, Entry] = {}
            for name, entry in listed.items():
                held = self._entries.get(name)
                if held is not None and _outlasts(held, entry, resource_version):
                    content[name] = held
                elif not is_newer(self._gone.get(name, ""), resource_version):
                    content[name] = entry
            content |= {
                name: held
                for name, held in self._entries.items()
                if name not in listed and is_newer(held.resource_version, resource_version)
            }
            changes = _differences(self._entries, content)
            self._gone = {
                name: version
                for name, version in self._gone.items()
                if is_newer(version, resource_version)
            }
            self._entries = content
            self._view = None
            self.resource_version = resource_version
            self.why_unknown = ""
        return changes

    def has_seen(self, name: Name, resource_version: str) -> bool:
        """Whether `put` of that version would say nothing new."""
        if not resource_version:
            return True
        with self._lock:
            held = self._entries.get(name)
            if held is not None:
                return _is_stale(resource_version, held.resource_version)
            return self._is_past(name, resource_version)

    def put(self, entry: Entry) -> Changed | None:
        """Take one object; None when it says nothing new (or was never stored: no version)."""
        name = (entry.namespace, entry.name)
        with self._lock:
            if self.has_seen(name, entry.resource_version):
                return None
            held = self._entries.get(name)
            self._gone.pop(name, None)
            self._entries[name] = entry
            self._view = None
        return Changed(held, entry)

    def remove(self, name: Name, resource_version: str) -> Changed | None:
        """Take a deletion; None when it is older than what is held, or nothing is held."""
        with self._lock:
            held = self._entries.get(name)
            if held is not None and is_newer(held.resource_version, resource_version):
                return None
            if held is None and self._is_past(name, resource_version):
                return None
            self._gone[name] = resource_version
            if held is None:
                return None
            del self._entries[name]
            self._view = None
        return Changed(held, None)

    def get(self, name: Name) -> Entry | None:
        """The entry of that name now."""
        with self._lock:
            return self._entries.get(name)

    def lose(self, why: str) -> bool:
        """Say that the content proves nothing any more; True when that is news."""
        with self._lock:
            news = self.why_unknown != why
            self.why_unknown = why
            return news

    def drop(self, why: str) -> None:
        """Forget everything: what was seen may never have happened (a restored etcd)."""
        with self._lock:
            self._entries = {}
            self._gone = {}
            self._view = None
            self.resource_version = ""
            self.why_unknown = why

    def _is_past(self, name: Name, resource_version: str) -> bool:
        """Whether an absent name was already known to be absent at that version."""
        return any(
            bound and _is_stale(resource_version, bound)
            for bound in (self.resource_version, self._gone.get(name, ""))
        )


def is_newer(one: str, other: str) -> bool:
    """Whether a resourceVersion is certainly after another: whole numbers, as KEP-5504 has it.

    False where one of them is no number: then nothing is certain.
    """
    return _is_number(one) and _is_number(other) and (len(one), one) > (len(other), other)


def _outlasts(held: Entry, entry: Entry, listed_at: str) -> bool:
    """Whether what is held is newer than a listed entry, and was made after the list.

    Newer than the entry but older than the list, it was undone: etcd was restored.
    """
    return is_newer(held.resource_version, entry.resource_version) and not is_newer(
        listed_at, held.resource_version
    )


def _is_stale(one: str, other: str) -> bool:
    """Whether a version certainly brings nothing new beside another."""
    return one == other or is_newer(other, one)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit()


def _differences(before: Mapping[Name, Entry], after: Mapping[Name, Entry]) -> tuple[Changed, ...]:
    changed = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None or old.resource_version != new.resource_version:
            changed.append(Changed(old, new))
    return tuple(changed)
