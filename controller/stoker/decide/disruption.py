"""What voluntary moves of the whole fleet may cost at once: `disruption` of the Fleet. Pure.

Built once a pass by decide from what stands; each service, in the order in which they are
decided, gets what those before it left, and its own moves count for those after it. Moves
that notices force are outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stoker.decide.case import Case
from stoker.decide.eligible import pool_of
from stoker.decide.fate import Fate, Judged, judge
from stoker.decide.place import Index
from stoker.decide.slots import Standing, departing_pods
from stoker.model.fleet import Fleet
from stoker.model.plan import Hold
from stoker.model.refs import UnitRef
from stoker.model.snapshot import Node, ReplicaPhase

__all__ = [
    "NO_LIMIT",
    "Allowance",
    "Ledger",
    "held_for_fleet",
    "in_motion",
    "ledger_of",
    "voluntary_departures",
]


@dataclass(frozen=True, slots=True)
class Allowance:
    """Most replicas of one service that may be in motion now, and whose moves it waits for.

    `most` None: no limit but its own.
    """

    most: int | None = None
    others: tuple[UnitRef, ...] = ()
    rule: str = ""


NO_LIMIT = Allowance()


@dataclass(slots=True)
class Ledger:
    """Replicas in motion by service, and the GPUs of one replica of each."""

    most_moves: int | None = None
    most_gpus: int | None = None
    moving: dict[UnitRef, int] = field(default_factory=dict)
    gpus: dict[UnitRef, int] = field(default_factory=dict)

    def allowance(self, case: Case) -> Allowance:
        """What is left for the service. What it began it may always end; and where nothing else
        moves it may move one replica, however small the budget is next to it.
        """
        if self.most_moves is None and self.most_gpus is None:
            return NO_LIMIT
        others = {r: n for r, n in self.moving.items() if n and r != case.ref}
        gpus = max(1, case.gpus)
        busy = sum(n * self.gpus.get(ref, 1) for ref, n in others.items())
        rooms: list[tuple[int, str]] = []
        if self.most_moves is not None:
            left = self.most_moves - sum(others.values())
            rooms.append((left, f"disruption.maxConcurrentMoves {self.most_moves}"))
        if self.most_gpus is not None:
            left = (self.most_gpus - busy) // gpus
            rooms.append((left, f"disruption.maxUnavailableGPUs {self.most_gpus}"))
        room, rule = min(rooms, key=lambda each: each[0])
        least = max(self.moving.get(case.ref, 0), 0 if others else 1)
        return Allowance(max(room, least), tuple(sorted(others)), rule)

    def note(self, case: Case, moving: int) -> None:
        """The service has so many replicas in motion after its turn."""
        self.moving[case.ref] = moving
        self.gpus[case.ref] = max(1, case.gpus)


def ledger_of(fleet: Fleet, cases: Iterable[Case], index: Index, nodes: Iterable[Node]) -> Ledger:
    """The moves under way as they stand. Without limits nothing is looked at."""
    limits = fleet.disruption
    if limits.max_concurrent_moves is None and limits.max_unavailable_gpus is None:
        return Ledger()
    cases = tuple(cases)
    ledger = Ledger(most_moves=limits.max_concurrent_moves)
    if limits.max_unavailable_gpus is not None:
        ledger.most_gpus = limits.max_unavailable_gpus.resolve(_gpus(fleet, cases, nodes))
    for case in cases:
        judged = judge(case, index)
        want = case.spec.replicas
        ledger.note(case, in_motion(case, judged, want))
    return ledger


def held_for_fleet(allowance: Allowance) -> Hold:
    """A move waits for those of other services."""
    named = ", ".join(ref.short for ref in allowance.others[:3])
    more = f" and {len(allowance.others) - 3} more" if len(allowance.others) > 3 else ""
    return Hold(
        "WaitingForMoves",
        f"waits for moves of {named}{more}: {allowance.rule} of the Fleet",
        "goes on by itself when one of them is done",
    )


def in_motion(case: Case, judged: Iterable[Judged], want: int | None) -> int:
    """Replicas of the service in motion: those that leave, and, where some have to move,

    successors that are not Ready or stand beside what they replace. `want` None: as many as
    stand for good.
    """
    judged = tuple(judged)
    leaving = voluntary_departures(case, judged)
    movers = sum(1 for j in judged if j.fate is Fate.MOVING and j.slot.live)
    if not movers:
        return leaving
    good = [j for j in judged if j.fate is Fate.GOOD]
    warming = sum(1 for j in good if j.standing is Standing.WARMING)
    beside = 0 if want is None else sum(1 for j in good if j.slot.live) + movers - want
    return leaving + max(warming, min(beside, movers), 0)


def voluntary_departures(case: Case, judged: Iterable[Judged]) -> int:
    """Replicas on their way out, until their pods are told to stop; not those of nodes that
    are noticed.
    """
    noticed = {name for j in judged if j.notice is not None for name in j.slot.nodes}
    return sum(
        1
        for placement in case.state.placements
        for pod in departing_pods(placement)
        if pod.phase is not ReplicaPhase.TERMINATING and noticed.isdisjoint(pod.nodes)
    )


def _gpus(fleet: Fleet, cases: Iterable[Case], nodes: Iterable[Node]) -> int:
    """GPUs of the fleet's pools, of the resources that its services ask for."""
    resources = sorted({case.spec.gpu_resource for case in cases})
    return sum(
        node.allocatable.device(name)
        for node in nodes
        if pool_of(dict(node.labels), fleet.pools) is not None
        for name in resources
    )
