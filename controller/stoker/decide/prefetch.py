"""Where image and weights are fetched ahead of a start: the next-best nodes of each service.

In: the decisions of the pass, its cases and index, the Jobs that stand. Out: the decisions
with their prefetches. Nothing is booked and nobody is moved. Called by decide, last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from stoker.decide.case import Case, canonical_image
from stoker.decide.moves import earliest
from stoker.decide.place import Index
from stoker.decide.slots import slots_of
from stoker.model.plan import ServiceDecision
from stoker.model.prefetch import LivePrefetch, Prefetch, PrefetchState, weights_ahead
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources
from stoker.model.snapshot import Snapshot
from stoker.objects.names import prefetch_name

__all__ = ["DONE_FOR_MS", "FAILED_FOR_MS", "FORM", "with_prefetches"]

FORM = "1"
"""Which form of Job is made; part of its name, for the pod of a Job cannot be changed."""
DONE_FOR_MS = 86_400_000
"""How long a Job that is done stands for what it fetched; then the node is looked at again.
It bounds downloads where a full disk loses again what was fetched."""
FAILED_FOR_MS = 3_600_000
"""How long a node is left alone after a Job failed there."""

_NO_ROOM_FREED = Resources()


def with_prefetches(
    decisions: Iterable[ServiceDecision],
    cases: Iterable[Case],
    index: Index,
    snapshot: Snapshot,
    most: int,
    left_alone: Collection[UnitRef],
    now_ms: int,
) -> tuple[tuple[ServiceDecision, ...], int | None]:
    """The decisions with their prefetches, and when the answer changes by itself.

    `most` are the Jobs that may run at once, of all services. What is `left_alone`, and what
    of a namespace whose Jobs could not be read, goes on as it stands.
    """
    decisions, cases = tuple(decisions), tuple(cases)
    if not snapshot.prefetches and not any(case.spec.cache.prefetch_nodes for case in cases):
        return decisions, None
    desk = _Desk(index, snapshot, now_ms)
    live: dict[UnitRef, list[LivePrefetch]] = {}
    for each in snapshot.prefetches:
        live.setdefault(each.unit, []).append(each)
    decided = {decision.ref: decision for decision in decisions}
    rows = []
    for case in cases:
        standing = live.get(case.ref, [])
        if case.ref in left_alone or desk.is_blind(case.ref):
            rows.append(_Row(case.ref, [_standing(each) for each in standing]))
        else:
            rows.append(desk.row(case, decided[case.ref], standing))
    new = _within(rows, snapshot.prefetches, most)
    found = {
        row.ref: (*row.standing, *(wish.prefetch for wish in new if wish.ref == row.ref))
        for row in rows
    }
    made = tuple(
        replace(each, prefetches=tuple(sorted(found[each.ref], key=lambda one: one.name)))
        if found.get(each.ref)
        else each
        for each in decisions
    )
    return made, desk.wake_at_ms


@dataclass(frozen=True, slots=True)
class _Wish:
    """A Job that should be made: the `rank`-th best node of its service."""

    rank: int
    ref: UnitRef
    prefetch: Prefetch
    weights: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class _Row:
    """One service: its Jobs that stand, and those it would make."""

    ref: UnitRef
    standing: list[Prefetch]
    wishes: list[_Wish] = field(default_factory=list)


class _Desk:
    """What every service is asked against."""

    def __init__(self, index: Index, snapshot: Snapshot, now_ms: int) -> None:
        self._index = index
        self._now_ms = now_ms
        self._unknown = {what for what, _ in snapshot.unknown}
        self._hinted = {node.name: "hinted" for node in snapshot.nodes if node.hint}
        self.wake_at_ms: int | None = None

    def is_blind(self, ref: UnitRef) -> bool:
        """Whether Jobs of its namespace could not be read."""
        return bool(self._unknown & {"jobs", f"jobs/{ref.namespace}"})

    def row(self, case: Case, decision: ServiceDecision, standing: list[LivePrefetch]) -> _Row:
        """Judge the Jobs that stand, then look for further nodes."""
        own = {slot.node for place in case.state.placements for slot in slots_of(place)}
        own |= {placement.node for placement in decision.placements}
        wanted = case.spec.cache.prefetch_nodes
        if wanted:
            wanted += len(own & self._hinted.keys())
        barred = {**dict.fromkeys(sorted(own - {""}), "own"), **self._hinted}
        row = _Row(case.ref, [])
        for each in sorted(standing, key=_done_first):
            over = self._over(case, each, barred, wanted)
            row.standing.append(_standing(each, over))
            if over:
                continue
            barred[each.node] = "prefetched"
            fits = self._index.would_fit(case, each.node, _NO_ROOM_FREED)
            wanted -= int(fits and each.state is not PrefetchState.FAILED)
        for rank in range(max(0, wanted)):
            choice = self._index.pick(case, urgent=True, own=(), barred=barred)
            if choice is None:
                break
            barred[choice.node.name] = "prefetched"
            if not self._holds(case, choice.node.name):
                row.wishes.append(_wish(rank, case, choice.node.name, choice.node.uid))
        return row

    def _over(self, case: Case, each: LivePrefetch, barred: Mapping[str, str], wanted: int) -> str:
        """Why a Job that stands is over; empty while it is not."""
        node = self._index.node(each.node)
        if not case.spec.cache.prefetch_nodes:
            return "nothing is fetched ahead any more"
        if node is None or node.uid != each.node_uid:
            return f"node {each.node} is gone"
        if node.notice is not None or node.cordoned or not self._index.pool(case, each.node):
            return f"node {each.node} takes no replica of it any more"
        if canonical_image(each.image) != case.image or each.weights != weights_ahead(case.spec):
            return "it fetches another image or model revision"
        if each.node in barred:
            words = {"own": "a replica is there", "hinted": "its node may be taken back"}
            return words.get(barred[each.node], "another one fetches the same there")
        ends_ms = each.since_ms + (
            FAILED_FOR_MS if each.state is PrefetchState.FAILED else DONE_FOR_MS
        )
        if each.state is not PrefetchState.RUNNING:
            if self._now_ms >= ends_ms:
                return f"it ended long ago ({each.state})"
            self.wake_at_ms = earliest(self.wake_at_ms, ends_ms)
        enough = wanted <= 0 and each.state is not PrefetchState.FAILED
        return "enough other nodes are warm" if enough else ""

    def _holds(self, case: Case, node: str) -> bool:
        """Whether a start there would find everything that can be fetched ahead."""
        facts = self._index.facts(case, node)
        return facts.image and (facts.weights or weights_ahead(case.spec) is None)


def _within(rows: list[_Row], live: Iterable[LivePrefetch], most: int) -> list[_Wish]:
    """As many wishes as may begin: best nodes first, one at a time for a node and its weights."""
    running = [each for each in live if each.state is PrefetchState.RUNNING]
    busy: set[tuple[str, tuple[str, str] | None]] = {
        (each.node, each.weights) for each in running if each.weights is not None
    }
    begun: list[_Wish] = []
    wishes = [wish for row in rows for wish in row.wishes]
    for wish in sorted(wishes, key=lambda each: (each.rank, each.ref)):
        if len(running) + len(begun) >= most:
            break
        key = (wish.prefetch.node, wish.weights)
        if key not in busy:
            begun.append(wish)
            if wish.weights is not None:
                busy.add(key)
    return begun


def _wish(rank: int, case: Case, node: str, node_uid: str) -> _Wish:
    weights = weights_ahead(case.spec)
    identity = (node, node_uid, case.rev, case.image, *(weights or ()), FORM)
    name = prefetch_name(case.ref.name, *identity)
    return _Wish(rank, case.ref, Prefetch(name, node, node_uid), weights)


def _standing(live: LivePrefetch, over: str = "") -> Prefetch:
    return Prefetch(live.name, live.node, live.node_uid, live.state, over)


def _done_first(live: LivePrefetch) -> tuple[int, int, str]:
    states = (PrefetchState.DONE, PrefetchState.RUNNING, PrefetchState.FAILED)
    return states.index(live.state), live.since_ms, live.name
