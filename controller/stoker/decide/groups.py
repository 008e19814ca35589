"""Choose the nodes of a group: all of one pool and one domain, or none at all.

A group takes as many nodes as `parallelism.nodes` says, one pod each. It is as far as the
farthest of its nodes, so the domain is best whose n-th best node is. Ties end by name. Called
by limits and work in place of what Index answers for single nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from stoker.decide.case import Case
from stoker.decide.choice import Choice
from stoker.decide.closed import NOTHING_CLOSED, Closed
from stoker.decide.order import Key
from stoker.decide.place import Index, Ranked
from stoker.decide.slots import Slot
from stoker.decide.tally import RULE_ORDER, Tally

__all__ = ["DOMAIN_RULE", "anchors_of", "pick", "rejections", "would_fit_again"]

DOMAIN_RULE = "group-domain"


@dataclass(frozen=True, slots=True)
class _Domain:
    """Nodes of one pool and one value of the label that fit a pod, the best first."""

    pool: str
    name: str
    nodes: tuple[Ranked, ...]


def pick(
    index: Index,
    case: Case,
    *,
    urgent: bool,
    own: Collection[str],
    barred: Mapping[str, str],
    closed: Closed = NOTHING_CLOSED,
    anchors: Collection[str] = (),
) -> Choice | None:
    """The best place for one more replica, a group or not; None where nothing fits.

    No leader goes to one of `anchors`: the name of a LeaderWorkerSet is made of its node.
    """
    if case.spec.nodes == 1:
        return index.pick(case, urgent=urgent, own=own, barred=barred, closed=closed)
    found = index.ranked(case, urgent=urgent, own=own, barred=barred, closed=closed)
    best: tuple[tuple[Key, Key], str, tuple[str, ...], str] | None = None
    for domain in _domains(index, case, found):
        chosen = _whole(domain.nodes, case.spec.nodes, anchors)
        if chosen is None:
            continue
        key = max(each.key for each in chosen)
        candidate = (key, chosen[0].name, tuple(each.name for each in chosen), domain.pool)
        best = candidate if best is None else min(best, candidate)
    return None if best is None else _choice(index, case, best[2], best[3])


def rejections(
    index: Index,
    case: Case,
    barred: Mapping[str, str],
    *,
    thorough: bool,
    closed: Closed = NOTHING_CLOSED,
) -> tuple[Tally, ...]:
    """Who was turned away, as Index has it; of groups also the nodes that fit, in domains with
    too few of them.
    """
    tallies = index.rejections(case, barred, thorough=thorough, closed=closed)
    if case.spec.nodes == 1:
        return tallies
    found = index.ranked(case, urgent=False, own=(), barred=barred, closed=closed)
    more = [_unlabelled(case, each) for each in found if not index.label(each.name, _key(case))]
    for domain in _domains(index, case, found):
        few = len(domain.nodes)
        if few < case.spec.nodes:
            names = sorted(each.name for each in domain.nodes)
            reason = f"{few} of {case.spec.nodes} nodes of {domain.name} fit: a group starts whole"
            more.append(Tally(DOMAIN_RULE, few, names[0], reason, domain.pool))
    return tuple(sorted((*tallies, *more), key=lambda t: (-RULE_ORDER[t.rule], t.node)))


def anchors_of(case: Case, choices: Collection[Choice]) -> frozenset[str]:
    """Nodes of leaders of this rev, standing or chosen in this pass; empty without groups."""
    if case.spec.nodes == 1:
        return frozenset()
    standing = {place.node for place in case.state.placements if place.rev == case.rev}
    return frozenset(standing | {choice.node.name for choice in choices})


def would_fit_again(index: Index, case: Case, slot: Slot) -> bool:
    """Whether a successor would fit on the nodes of a replica, were that gone."""
    freed = slot.placement.requests or case.need.requests
    nodes = slot.nodes
    if len(nodes) < case.spec.nodes or len(nodes) != slot.placement.size:
        return False
    domains = {index.label(name, _key(case)) for name in nodes} if case.spec.nodes > 1 else set()
    if len(domains) > 1 or "" in domains:
        return False
    return all(index.would_fit(case, name, freed) for name in nodes[: case.spec.nodes])


def _key(case: Case) -> str:
    return case.spec.group_key


def _unlabelled(case: Case, ranked: Ranked) -> Tally:
    reason = f"has no label {_key(case)}, by which groups stay together"
    return Tally(DOMAIN_RULE, 1, ranked.name, reason, ranked.pool)


def _domains(index: Index, case: Case, found: Collection[Ranked]) -> list[_Domain]:
    """Sorted by pool and name; nodes without the label are in none."""
    inside: dict[tuple[str, str], list[Ranked]] = {}
    for each in found:
        if domain := index.label(each.name, _key(case)):
            inside.setdefault((each.pool, domain), []).append(each)
    return [_Domain(*place, tuple(inside[place])) for place in sorted(inside)]


def _whole(
    nodes: tuple[Ranked, ...], size: int, anchors: Collection[str]
) -> tuple[Ranked, ...] | None:
    """The best nodes for a group, its leader's first; None where they are too few."""
    leader = next((each for each in nodes if each.name not in anchors), None)
    if leader is None or len(nodes) < size:
        return None
    return (leader, *[each for each in nodes if each is not leader][: size - 1])


def _choice(index: Index, case: Case, names: tuple[str, ...], pool: str) -> Choice:
    node = index.node(names[0])
    assert node is not None, "it was ranked"
    starts = [index.readiness_next(case, name) for name in names]
    return Choice(
        node=node,
        pool=pool,
        readiness=max(starts, key=lambda each: (each.p50_ms, each.p90_ms)),
        free_gpus=min(index.free_gpus(case, name) for name in names),
        others=names[1:],
        domain=index.label(names[0], _key(case)),
    )
