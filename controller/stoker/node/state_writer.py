"""Writes one NodeState: only its status, only what changed, only while nobody else does.

In: wanted status fields. Out: what came of it. The object names the reporter that writes it;
a second one on the same node stands back until the first has written nothing for a while, by
the second's own clock, so that two clocks need not agree. Used by node.reporter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stoker.errors import Retryable
from stoker.kube.errors import AlreadyExists, Conflict, NotFound
from stoker.log import get_log
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.node.facts import news, renewals
from stoker.objects.health_fields import mapping, text
from stoker.objects.names import GROUP, VERSION

__all__ = ["StateWriter", "Written"]

_log = get_log("reporter")

HEARTBEAT_SECONDS = 60.0
"""How often it is said that the facts still hold, where none changed."""
TAKEOVER_SECONDS = 130.0
"""Two heartbeats and a while: a reporter that is silent for that long has died."""
MANAGER = "stoker-reporter"
_TRIES = 3


class Written(StrEnum):
    """What came of a write."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    STANDING_BACK = "standing-back"


@dataclass(slots=True)
class StateWriter:
    """One node's object. `other` names the reporter that is stood back for; else empty.

    `node_uid` makes the object go with its node; empty leaves it standing.
    """

    cluster: Cluster
    clock: Clock
    node: str
    holder: str
    node_uid: str = ""
    other: str = ""
    _live: dict[str, Any] | None = field(default=None, init=False)
    _seen: tuple[str, str] = field(default=("", ""), init=False)
    _seen_at: float = field(default=0.0, init=False)
    _written_at: float | None = field(default=None, init=False)

    def write(self, wanted: Mapping[str, Any]) -> Written:
        """Bring the status up to `wanted`. Raises what the Cluster port raises; retry then."""
        for _ in range(_TRIES):
            live = self._live if self._live is not None else self._read()
            if self._stands_back(live):
                self._live = None
                return Written.STANDING_BACK
            status = mapping(live, "status")
            changed = news(status, wanted)
            if not changed and not self._heartbeat_due():
                return Written.UNCHANGED
            stamp = {"lastReportTime": rfc3339(self.clock.now_ms())}
            body = {**renewals(status, wanted), **changed, **stamp}
            try:
                self._live = self._patch(live, body)
            except (Conflict, NotFound):
                self._live = None
                continue
            self._written_at = self.clock.monotonic()
            return Written.WRITTEN
        raise Retryable(f"NodeState {self.node} changes under our hands", code="conflict")

    @property
    def interval_seconds(self) -> int | None:
        """`spec.reportIntervalSeconds`, as last read; None where nobody set it."""
        asked = mapping(self._live or {}, "spec").get("reportIntervalSeconds")
        return asked if isinstance(asked, int) and asked >= 1 else None

    def release(self) -> None:
        """Give the object up, so that the next reporter need not wait. Raises as `write`."""
        live = self._live
        if live is not None and _holder(live) == self.holder:
            self._live = None
            self._patch(live, {"reporter": None})

    def _read(self) -> dict[str, Any]:
        ref = self._ref
        try:
            return self.cluster.get(ref)
        except NotFound:
            metadata: dict[str, Any] = {"name": self.node}
            if self.node_uid:
                node = {"apiVersion": "v1", "kind": "Node"}
                owner = {**node, "name": self.node, "uid": self.node_uid}
                metadata["ownerReferences"] = [owner]
            body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "NodeState", "metadata": metadata}
            try:
                return self.cluster.create(body, manager=MANAGER)
            except AlreadyExists:
                return self.cluster.get(ref)

    def _stands_back(self, live: dict[str, Any]) -> bool:
        """Whether another reporter writes this object, as far as it has been watched."""
        other = _holder(live)
        if other in {"", self.holder}:
            self.other = ""
            return False
        seen = (other, text(mapping(live, "status"), "lastReportTime"))
        now = self.clock.monotonic()
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        if now - self._seen_at >= TAKEOVER_SECONDS:
            _log.warning("reporter.took-over", node=self.node, holder=other)
            self.other = ""
            return False
        if self.other != other:
            _log.warning("reporter.stood-back", node=self.node, holder=other)
        self.other = other
        return True

    def _heartbeat_due(self) -> bool:
        last = self._written_at
        return last is None or self.clock.monotonic() - last >= HEARTBEAT_SECONDS

    def _patch(self, live: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
        """With the version that was read: whoever wrote since is read first."""
        version = text(mapping(live, "metadata"), "resourceVersion")
        body = {"metadata": {"resourceVersion": version}, "status": status}
        return self.cluster.patch(self._ref, "merge", body, manager=MANAGER, subresource="status")

    @property
    def _ref(self) -> ObjectRef:
        return ObjectRef(GROUP, "NodeState", "", self.node, VERSION)


def _holder(live: dict[str, Any]) -> str:
    return text(mapping(mapping(live, "status"), "reporter"), "holder")
