"""Which objects are asked about today although facts call them Synced.

Each object has an instant of the day, by its name: as time passes over it, diff sends one
dry run, so 4,000 objects cost 28 requests in ten minutes and none twice a day. An answer
that differs from the verdict is a bug of ours or of a webhook, is counted, and is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from stoker.diff.admission import Admission, AdmissionRule
from stoker.log import get_log
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef

__all__ = ["Audit"]

_log = get_log("audit")

DAY_MS = 86_400_000
AFTER_UPGRADE = 24
"""So many times as fast after a new server version or a changed webhook, until all objects (that
it matches) were asked about.
"""
ROUND_MS = 300_000
"""The hand moves at most that often, so that few passes for a commit or an edit ask as well."""
AT_ONCE = 200
"""Dry runs of one pass; a pass after a long sleep must not hold up notices."""


@dataclass(slots=True)
class Audit:
    """Where the hand of the clock stands. One a process, for the reconciler's thread.

    It starts when the process does: a fresh process asks nothing in its first pass.
    `count` is told `agreed`, `disagreed` or `refused` once an answer, for metrics.
    """

    count: Callable[[str], None] = lambda _result: None
    admission: Admission = field(default_factory=Admission)
    _at: int | None = None
    _now_ms: int = 0
    _version: str = ""
    _hurry: int = 0
    """How much of the day is left to pass over at the higher speed."""
    _window: tuple[int, int] = (0, 0)
    _left: int = 0
    _rules: frozenset[AdmissionRule] = frozenset()
    """Of webhooks that changed: what they match is passed over by a second, faster hand."""
    _rest: int = 0
    """How much of the day that hand has before it."""
    _second: tuple[int, int] = (0, 0)

    def start(self, cluster: Cluster, now_ms: int) -> None:
        """Start a pass, with what the cluster says of itself; now and then that asks for webhooks.

        Raises what `Cluster.server` raises.
        """
        version = cluster.server().version
        self.begin(now_ms, version, self.admission.changed(cluster, now_ms))

    def begin(
        self, now_ms: int, server_version: str, changed: AbstractSet[AdmissionRule] = frozenset()
    ) -> None:
        """Start a pass: the objects whose instant came since the last one are due.

        `changed` are the rules of webhooks that came, went or changed since the last pass.
        """
        news = changed or server_version != self._version
        if self._at is not None and not news and 0 <= now_ms - self._now_ms < ROUND_MS:
            self._left = 0
            return
        at = now_ms % DAY_MS if self._at is None else self._at
        moved = 0 if self._at is None else max(0, now_ms - self._now_ms)
        self._hurry_after(changed, at, moved)
        if self._version and server_version != self._version:
            self._hurry = DAY_MS
        if self._hurry:
            moved *= AFTER_UPGRADE
            self._hurry = max(0, self._hurry - moved)
        moved = min(moved, DAY_MS)
        self._window = (at, moved)
        self._at = (at + moved) % DAY_MS
        self._now_ms, self._version, self._left = now_ms, server_version, AT_ONCE

    def _hurry_after(self, changed: AbstractSet[AdmissionRule], at: int, moved: int) -> None:
        """Move the second hand; one more change lets it go round once more, for all of them."""
        start = (self._second[0] + self._second[1]) % DAY_MS if self._rest else at
        length = min(moved * AFTER_UPGRADE, self._rest)
        self._second = (start, length)
        self._rest -= length
        if changed:
            self._rules = frozenset(changed) | (
                self._rules if self._rest or length else frozenset()
            )
            self._rest = DAY_MS

    def takes(self, ref: ObjectRef) -> bool:
        """Whether to ask about the object now."""
        if self._left == 0 or not (_within(self._window, ref) or self._is_hurried(ref)):
            return False
        self._left -= 1
        return True

    def _is_hurried(self, ref: ObjectRef) -> bool:
        return _within(self._second, ref) and any(rule.matches(ref) for rule in self._rules)

    def agree(self) -> None:
        """The server calls it Synced too."""
        self.count("agreed")

    def refuse(self, ref: ObjectRef, code: str) -> None:
        """The server did not say: it refuses what we would send, or cannot be reached."""
        self.count("refused")
        _log.info("audit.refused", ref=str(ref), code=code)

    def disagree(self, ref: ObjectRef, fields: tuple[str, ...]) -> None:
        """The server would change something."""
        self.count("disagreed")
        _log.error("audit.disagreed", ref=str(ref), fields=", ".join(fields[:10]))


def _within(window: tuple[int, int], ref: ObjectRef) -> bool:
    start, length = window
    return bool(length) and (_instant(ref) - start) % DAY_MS < length


def _instant(ref: ObjectRef) -> int:
    """When in the day the object is due, in milliseconds: spread evenly, the same for ever."""
    name = hashlib.blake2b(str(ref).encode(), digest_size=8).digest()
    return int.from_bytes(name, "big") % DAY_MS
