"""Who was turned away from one start, counted by rule: the words of holds and explain.

Made by place with what it knows of the nodes; what RULES say is counted there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stoker.decide.booking import Room, misfit
from stoker.decide.case import Case
from stoker.decide.classes import NodeClass
from stoker.decide.closed import Closed
from stoker.decide.eligible import Labels
from stoker.decide.tally import Tally, shortage
from stoker.model.snapshot import Node

__all__ = ["Turned"]


@dataclass(frozen=True, slots=True)
class Turned:
    """The nodes of one pass as one service sees them. `usable` maps the number of a class that
    RULES let pass to its pool (place in the service's list, and name).
    """

    case: Case
    usable: Mapping[int, tuple[int, str]]
    classes: Sequence[NodeClass]
    class_of: Mapping[str, int]
    nodes: Mapping[str, Node]
    labels: Mapping[str, Labels]
    rooms: Mapping[str, Room]
    barred: Mapping[str, str]
    closed: Closed

    def tallies(self, *, thorough: bool) -> Iterator[Tally]:
        """One for each rule and pool. Unless `thorough`, nodes with enough free GPUs are taken
        to fit: looking at each is worth its time only when no place was found.
        """
        turned: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for number, (_, pool) in self.usable.items():
            home = self.classes[number]
            shut = self.closed.pool(pool)
            if shut is not None:
                turned.setdefault((shut[0], pool), []).append((home.names[0], len(home.names)))
                continue
            if self.closed.domains:
                for name in home.names:
                    rule = self._rule(name)
                    if rule:
                        turned.setdefault((rule, pool), []).append((name, 1))
                continue
            short = home.short_of_gpus(self.case.need)
            if short is not None:
                turned.setdefault(("gpus", pool), []).append(short)
            for rule, name, count in home.misfits(self.case.need) if thorough else ():
                turned.setdefault((rule, pool), []).append((name, count))
        for name, rule in sorted(self.barred.items()):
            usable = self.usable.get(self.class_of.get(name, -1))
            if usable is None or self.closed.pool(usable[1]) is not None:
                continue
            if not self._rule(name):
                turned.setdefault((rule, usable[1]), []).append((name, 1))
        for (rule, pool), found in turned.items():
            node = min(found)[0]
            why = self._why(rule, pool, node)
            yield Tally(rule, sum(count for _, count in found), node, why, pool)

    def _rule(self, name: str) -> str:
        """The first rule by which a node of an open pool is turned away."""
        if self.closed.domain(self.labels[name]):
            return "topology-spread"
        return misfit(self.rooms[name], self.case.need)

    def _why(self, rule: str, pool: str, name: str) -> str:
        shut = self.closed.pool(pool)
        if shut is not None:
            return shut[1]
        if rule == "topology-spread":
            return self.closed.domain(self.labels[name])
        if rule == "quarantined" and (why := self.case.bars.why(name)):
            return why
        return shortage(rule, self.nodes[name], self.rooms[name], self.case.need)
