"""What RULES say about one ask: which classes of nodes may be used, and who was turned away.

Made once a pass for each ask that differs; read by place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stoker.decide.classes import NodeClass
from stoker.decide.closed import NOTHING_CLOSED, Closed
from stoker.decide.eligible import Ask, Labels, first_rejection, pool_of
from stoker.decide.tally import Tally

__all__ = ["Answer", "answer_of"]


@dataclass(frozen=True, slots=True)
class Answer:
    """`usable` maps the number of a class to its pool: place in the service's list, and name."""

    usable: Mapping[int, tuple[int, str]]
    rejected: tuple[Tally, ...] = ()
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By pool: the domains that its usable nodes are in, sorted; empty without a spread."""

    def within(self, closed: Closed) -> Mapping[int, tuple[int, str]]:
        """`usable` without the classes of closed pools."""
        if closed == NOTHING_CLOSED:
            return self.usable
        return {number: at for number, at in self.usable.items() if closed.pool(at[1]) is None}


def answer_of(ask: Ask, classes: Sequence[NodeClass], labels: Mapping[str, Labels]) -> Answer:
    """Ask every class. `labels` are those of all nodes, by name."""
    usable: dict[int, tuple[int, str]] = {}
    domains: dict[str, set[str]] = {}
    turned: dict[str, list[tuple[str, str, int]]] = {}
    for number, home in enumerate(classes):
        rejection = first_rejection(home.node, home.labels, ask)
        if rejection is not None:
            entry = (home.names[0], rejection.reason, len(home.names))
            turned.setdefault(rejection.rule, []).append(entry)
            continue
        pool = pool_of(home.labels, ask.pools)
        assert pool is not None, "the first rule turns away nodes of other pools"
        usable[number] = pool
        if ask.spread_key:
            inside = (labels[name][ask.spread_key] for name in home.names)
            domains.setdefault(pool[1], set()).update(inside)
    rejected = tuple(
        Tally(rule, sum(count for _, _, count in found), *min(found)[:2])
        for rule, found in turned.items()
    )
    return Answer(usable, rejected, {pool: tuple(sorted(all_)) for pool, all_ in domains.items()})
