"""Which nodes a service leaves out for failed starts, and whether it may start anything now.

Made once a pass from what every service remembers; asked service by service, each sees the
starts of those before it. Called by decide; transition and scheduler_mode read the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stoker.decide.bars import NO_BARS, Bar, Bars
from stoker.decide.learn_failures import PROVEN_MS, has_proven, quarantine_ms
from stoker.decide.slots import Standing, slots_of
from stoker.model.blame import NO_FAILURES, BadNode, Failures
from stoker.model.plan import ServiceDecision
from stoker.model.refs import UnitRef
from stoker.model.snapshot import Node, ReplicaPhase, ServiceState
from stoker.model.times import rfc3339

__all__ = ["Quarantine"]

FIRST_WAIT_MS = 10_000
LONGEST_WAIT_MS = 300_000
"""Before the second start that stands for failed ones, doubling: as the kubelet waits before it
runs a crashing container again. The first is not waited for."""


class Quarantine:
    """The bars of one pass. `begin` tells it of starts that were decided."""

    def __init__(
        self,
        failures: Mapping[UnitRef, Failures],
        services: Iterable[ServiceState],
        nodes: Iterable[Node],
        now_ms: int,
    ) -> None:
        self._failures = {ref: found for ref, found in failures.items() if found != NO_FAILURES}
        self._now_ms = now_ms
        self._names: dict[str, str] = {}
        self._shared: dict[str, list[BadNode]] = {}
        self._trying: set[str] = set()
        self._proven: dict[str, list[tuple[int, int]]] = {}
        if not self._failures:
            return
        self._names = {node.uid: node.name for node in nodes}
        for ref in sorted(self._failures):
            for row in self._failures[ref].nodes:
                if row.strikes:
                    self._shared.setdefault(row.uid, []).append(row)
        for state in services:
            self._see(state)

    def of(self, ref: UnitRef, rev: str, state: ServiceState) -> Bars:
        """What the service has to keep to."""
        if not self._failures:
            return NO_BARS
        known = self._failures.get(ref, NO_FAILURES)
        found = [self._bar(uid, known.node(uid)) for uid in sorted(self._shared)]
        bars = sorted((bar for bar in found if bar is not None), key=lambda bar: bar.node)
        current = known.rev == rev
        speaking = [row for row in known.nodes if row.strikes and row.rev == rev]
        ready = _ready_since(state, rev)
        proving = [since + PROVEN_MS for since in ready if since + PROVEN_MS > self._now_ms]
        waits = current and known.in_a_row > 1
        wait_ms = min(LONGEST_WAIT_MS, FIRST_WAIT_MS << min(max(0, known.in_a_row - 2), 10))
        return Bars(
            bars=tuple(bars),
            bad_rev=known.bad_rev if current else None,
            in_a_row=known.in_a_row if current else 0,
            reason=_last_reason(known),
            suspect=len(speaking) >= max(1, len(ready)),
            suspect_made_ms=max((row.made_ms for row in speaking), default=0),
            wait_until_ms=known.last_ms + wait_ms if waits else 0,
            proven_at_ms=min(proving, default=None),
            on_trial=tuple(sorted(self._on_trial(known))),
        )

    def _on_trial(self, known: Failures) -> Iterator[str]:
        for uid, rows in self._shared.items():
            own = known.node(uid)
            serious = sum(1 for row in rows if row.until_ms)
            if uid in self._names and (serious > 1 or (own is not None and own.until_ms)):
                yield self._names[uid]

    def begin(self, decision: ServiceDecision) -> None:
        """Starts of this decision are under way from now on."""
        if self._failures:
            new = [place for place in decision.placements if not place.exists]
            self._trying |= {node for place in new for node in place.nodes or (place.node,)}

    def _see(self, state: ServiceState) -> None:
        for placement in state.placements:
            for slot in slots_of(placement):
                if slot.standing is Standing.WARMING:
                    self._trying.update(slot.nodes)
            for pod in placement.pods:
                if has_proven(pod, self._now_ms):
                    for node in pod.nodes:
                        times = (pod.created_ms, pod.since_ms)
                        self._proven.setdefault(node, []).append(times)

    def _bar(self, uid: str, own: BadNode | None) -> Bar | None:
        """Why the service leaves that node out: for its own failures, or for those of two
        services; and afterwards while a start there is to show that it is well again.
        """
        name = self._names.get(uid)
        if name is None:
            return None
        rows = self._shared[uid]
        serious = [row for row in rows if row.until_ms]
        for_all = len(serious) > 1 and not self._is_well(name, serious)
        strikes = own.strikes if own is not None else 0
        if not for_all and not strikes:
            return None
        until_ms = own.until_ms if own is not None else 0
        last = max(serious, key=lambda row: (row.at_ms, row.reason)) if for_all else own
        assert last is not None, "either the service or two others failed there"
        if for_all:
            strikes = sum(row.strikes for row in serious)
            until_ms = max(until_ms, last.at_ms + quarantine_ms(strikes))
        starts = f"{strikes} start" if strikes == 1 else f"{strikes} starts"
        of = f" of {len(serious)} services" if for_all else ""
        why = f"{starts}{of} failed here, the last with {last.reason or 'no reason given'}"
        if self._now_ms < until_ms:
            return Bar(name, f"until {rfc3339(until_ms)}: {why}", until_ms)
        if until_ms and name in self._trying:
            return Bar(name, f"until the start there is Ready or fails: {why}", None)
        return None

    def _is_well(self, name: str, rows: Iterable[BadNode]) -> bool:
        """Whether a start made after these failures, of whatever service, has proven itself."""
        made_ms = max(row.made_ms for row in rows)
        at_ms = max(row.at_ms for row in rows)
        return any(
            created_ms >= made_ms and since_ms > at_ms
            for created_ms, since_ms in self._proven.get(name, ())
        )


def _last_reason(known: Failures) -> str:
    struck = [row for row in known.nodes if row.reason]
    return max(struck, key=lambda row: (row.at_ms, row.reason)).reason if struck else ""


def _ready_since(state: ServiceState, rev: str) -> list[int]:
    return [
        pod.since_ms
        for placement in state.placements
        if placement.rev == rev
        for pod in placement.pods
        if pod.phase is ReplicaPhase.READY
    ]
