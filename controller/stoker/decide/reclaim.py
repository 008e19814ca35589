"""Room that services of lower priority give to one above them: opt-in, and never below a floor.

`placement.reclaim: LowerPriority` lets a service that finds no free place take replicas of
services of lower priority, down to their `minReady`. Those leave without loss, as any other;
their room is booked for the winner from the first pass on, read from the cluster each time:
pods of lower services that are leaving a node come first. Made by decide, used by work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from stoker.decide.case import Case
from stoker.decide.fate import Fate, Judged, judge, victims
from stoker.decide.place import Index
from stoker.decide.slots import departing_pods
from stoker.model.fleet import PlacementMode
from stoker.model.plan import Attempt
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources

__all__ = ["Claim", "Reclaims"]

Key = tuple[str, int]
"""Of a replica: Deployment and index."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Room for one replica on a node, and the services that make it."""

    node: str
    pool: str
    givers: tuple[tuple[UnitRef, int], ...]
    """Each with its priority, sorted."""
    priority: int

    @property
    def reason(self) -> str:
        """`llm/low (priority 0 below 100)`."""
        names = ", ".join(f"{ref.short} (priority {low})" for ref, low in self.givers)
        return f"{names} below {self.priority}"

    @property
    def attempt(self) -> Attempt:
        """The same as a line of explain."""
        return Attempt(self.node, self.pool, f"waits for the room of {self.reason}")


@dataclass(frozen=True, slots=True)
class _Giver:
    """A replica that stands on a node and may go."""

    case: Case
    judged: Judged

    @property
    def priority(self) -> int:
        return self.case.spec.priority

    @property
    def requests(self) -> Resources:
        return self.judged.slot.placement.requests or self.case.need.requests


@dataclass(slots=True)
class _Stock:
    """One node: who may go, lowest priority and least worth first, and what leaves already."""

    givers: list[_Giver] = field(default_factory=list)
    leaving: list[_Giver] = field(default_factory=list)
    freed: list[tuple[Case, Resources]] = field(default_factory=list)


class Reclaims:
    """What may be taken in one pass. `floors` are those of services that can be decided."""

    def __init__(self, cases: Iterable[Case], floors: Mapping[UnitRef, int], index: Index) -> None:
        self._cases = [
            case
            for case in cases
            if case.ref in floors and case.spec.placement_mode is PlacementMode.NODES
        ]
        self._floors = floors
        self._index = index
        self._spare: dict[UnitRef, int] = {}
        """Ready replicas that a service may still lose."""
        self._stocks: dict[str, _Stock] | None = None
        self._taken: dict[UnitRef, dict[Key, str]] = {}

    def taken(self, ref: UnitRef) -> Mapping[Key, str]:
        """Replicas of the service that make room for another, each with the reason."""
        return self._taken.get(ref, {})

    def claim(self, case: Case, admits: Callable[[str], bool]) -> Claim | None:
        """Book room for one replica where the fewest serving replicas have to go for it.

        None when services of lower priority have nothing to give.
        """
        below = case.spec.priority
        found = [
            (sum(1 for giver in givers if giver.judged.ready), len(givers), node)
            for node in sorted(self._all())
            if admits(node) and (givers := self._enough(case, node, below)) is not None
        ]
        if not found:
            return None
        node = min(found)[2]
        givers = self._enough(case, node, below)
        assert givers is not None
        stock = self._all()[node]
        for giver in givers:
            stock.givers.remove(giver)
            stock.leaving.append(giver)
            stock.freed.append((giver.case, giver.requests))
            self._spare[giver.case.ref] -= giver.judged.ready
        for giver in stock.leaving:
            if giver.priority < below:
                why = f"makes room for {case.ref.short} (priority {below} above {giver.priority})"
                self._taken.setdefault(giver.case.ref, {}).setdefault(giver.judged.key, why)
        self._index.book(node, case.need)
        names = {given.ref: given.spec.priority for given, _ in stock.freed}
        lower = sorted((ref, low) for ref, low in names.items() if low < below)
        return Claim(node, self._index.pool(case, node), tuple(lower), below)

    def hint(self, case: Case, nodes: Iterable[str]) -> str:
        """What more priority, or leave to take, would give on one of these nodes; else empty."""
        for node in nodes:
            givers = self._enough(case, node, None)
            if givers:
                least = max(giver.priority for giver in givers)
                names = ", ".join(sorted({giver.case.ref.short for giver in givers}))
                above = f"priority above {least} and " if least >= case.spec.priority else ""
                return f"{above}placement.reclaim: LowerPriority takes {node} from {names}"
        return ""

    def _enough(self, case: Case, node: str, below: int | None) -> list[_Giver] | None:
        """As few replicas on that node as have to go for one of the service to fit, beside what
        leaves already; lowest priority first. None when all together are too few.
        """
        stock = self._all().get(node)
        if stock is None:
            return None
        freed = Resources()
        for given, requests in stock.freed:
            if below is None or given.spec.priority < below:
                freed = freed.plus(requests)
        if self._index.would_fit(case, node, freed):
            return []
        spare = dict(self._spare)
        chosen: list[_Giver] = []
        for giver in stock.givers:
            ref = giver.case.ref
            lower = below is None or giver.priority < below
            if not lower or ref == case.ref or (giver.judged.ready and spare[ref] <= 0):
                continue
            spare[ref] -= giver.judged.ready
            chosen.append(giver)
            freed = freed.plus(giver.requests)
            if self._index.would_fit(case, node, freed):
                return self._needed(case, node, chosen, freed)
        return None

    def _needed(
        self, case: Case, node: str, chosen: list[_Giver], freed: Resources
    ) -> list[_Giver]:
        """The same without those whose room is not needed after all; the last one is."""
        kept = list(chosen)
        for giver in reversed(chosen[:-1]):
            less = freed.plus(giver.requests, -1)
            if self._index.would_fit(case, node, less):
                kept.remove(giver)
                freed = less
        return kept

    def _all(self) -> dict[str, _Stock]:
        """By node; made when somebody asks first, for that is rare."""
        if self._stocks is not None:
            return self._stocks
        stocks = self._stocks = {}
        ranked: list[tuple[tuple[int, bool, UnitRef, int], _Giver]] = []
        for case in self._cases:
            judged = judge(case, self._index)
            staying = [j for j in judged if j.fate in {Fate.GOOD, Fate.MOVING}]
            serving = sum(1 for j in staying if j.ready)
            self._spare[case.ref] = serving - self._floors[case.ref]
            for place, j in enumerate(victims(staying)):
                key = (case.spec.priority, j.ready, case.ref, place)
                ranked.append((key, _Giver(case, j)))
            for j in judged:
                if j.fate is Fate.LEAVING:
                    stock = stocks.setdefault(j.slot.node, _Stock())
                    stock.leaving.append(_Giver(case, j))
            for placement in case.state.placements:
                for pod in departing_pods(placement):
                    requests = placement.requests or case.need.requests
                    stocks.setdefault(pod.node, _Stock()).freed.append((case, requests))
        for _, giver in sorted(ranked, key=lambda each: each[0]):
            stocks.setdefault(giver.judged.slot.node, _Stock()).givers.append(giver)
        return stocks
