"""Watches of the in-memory API server.

In: Calls with a version to start from. Out: lines of JSON events, until the time is over, the
server closes or history is compacted. Used by kube.memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any, Final

from stoker.kube.memory_call import Call
from stoker.kube.memory_errors import StatusAnswer
from stoker.kube.memory_kinds import Resource
from stoker.kube.memory_read import Selector, metadata_only, partial_wanted, selector_of
from stoker.kube.memory_store import Event, Gone, Store
from stoker.model.ports import Clock

__all__ = ["Watches"]

Json = dict[str, Any]

_WAIT_SECONDS: Final = 0.2
"""How long a quiet watch sleeps before it looks at the clock again (real seconds)."""
_BOOKMARK_SECONDS: Final = 60.0
_LONGEST_SECONDS: Final = 1800.0


class Watches:
    """Watches over one store."""

    def __init__(self, store: Store, clock: Clock, lock: threading.RLock) -> None:
        self._store = store
        self._clock = clock
        self._lock = lock
        self._closed = False

    def close(self) -> None:
        """End every running watch."""
        self._closed = True
        self._store.changed.notify_all()

    def start(self, call: Call) -> tuple[list[bytes], int]:
        """What a watch starts with: the present objects, unless it names a version."""
        version = call.query.get("resourceVersion", "")
        if version and not version.isdigit():
            text = (
                f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing'
                f' "{version}": invalid syntax'
            )
            raise StatusAnswer(500, "", text)
        matches = selector_of(call)
        partial = partial_wanted(call.request.accept)
        if version not in {"", "0"}:
            return [], int(version)
        found = self._store.items(call.resource.key, call.namespace)
        return [
            _added(stored.manifest, partial=partial)
            for _, stored in found
            if matches(stored.manifest)
        ], self._store.version

    def lines(self, call: Call, first: list[bytes], version: int) -> Iterator[bytes]:
        """`first`, then what happens after `version`."""
        yield from first
        matches = selector_of(call)
        partial = partial_wanted(call.request.accept)
        wants_bookmarks = call.query.get("allowWatchBookmarks") in {"true", "1"}
        now = self._clock.monotonic()
        deadline = now + float(call.query.get("timeoutSeconds") or _LONGEST_SECONDS)
        bookmark_at = min(now + _BOOKMARK_SECONDS, deadline)
        while not self._closed:
            try:
                events, now, current = self._wait(call.resource, version, bookmark_at)
            except Gone:
                yield _gone(version, self._store.version)
                return
            for event in events:
                if not call.namespace or event.key[0] == call.namespace:
                    line = _event_line(event, matches, partial=partial)
                    if line:
                        yield line
            version = current
            if now < bookmark_at:
                continue
            if wants_bookmarks:
                yield _bookmark(call.resource, version)
            if now >= deadline:
                return
            bookmark_at = min(now + _BOOKMARK_SECONDS, deadline)

    def _wait(
        self, resource: Resource, version: int, until: float
    ) -> tuple[list[Event], float, int]:
        """Events after a version (none after a short wait), the time, and the version of now."""
        with self._lock:
            events = self._store.events_after(resource.key, version)
            now, current = self._clock.monotonic(), self._store.version
            if not events and now < until and not self._closed:
                self._store.changed.wait(_WAIT_SECONDS)
            return events, now, current


def _line(kind: str, body: Json) -> bytes:
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode() + b"\n"


def _added(manifest: Json, *, partial: bool) -> bytes:
    return _line("ADDED", metadata_only(manifest) if partial else manifest)


def _bookmark(resource: Resource, version: int) -> bytes:
    body = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"resourceVersion": str(version)},
    }
    return _line("BOOKMARK", body)


def _gone(version: int, current: int) -> bytes:
    text = f"too old resource version: {version} ({current})"
    return _line("ERROR", StatusAnswer(410, "Expired", text).body())


def _event_line(event: Event, matches: Selector, *, partial: bool) -> bytes:
    """The line a watcher sees; empty when the event is none of its business.

    An object that stops matching the selector is DELETED for the watcher, one that starts
    to match is ADDED.
    """
    kind = event.type
    now = matches(event.after.manifest) and kind != "DELETED"
    before = event.before is not None and matches(event.before.manifest)
    if now:
        kind = "MODIFIED" if before else "ADDED"
    elif before:
        kind = "DELETED"
    else:
        return b""
    if partial:
        text = json.dumps(metadata_only(event.after.manifest), separators=(",", ":")).encode()
    else:
        text = event.after.text()
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), text)
