"""Choose a node for one start, from an index that is built once a pass.

Nodes that no rule can tell apart form a class. A choice looks at the classes a service may
use and at the few nodes that are special to it (they hold its weights, its image, or a
replica of it), so its cost does not grow with the nodes of the fleet. Called by transition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from stoker.decide.booking import Need, Room, book_missing_pods, misfit
from stoker.decide.case import Case
from stoker.decide.classes import NodeClass
from stoker.decide.eligible import (
    Ask,
    ask_labels,
    first_rejection,
    must_move,
    pool_of,
)
from stoker.decide.estimates import Estimates
from stoker.decide.order import (
    Key,
    Stand,
    active_services,
    fresh,
    near,
    place_in_class,
    warmth_rank,
)
from stoker.decide.queues import starts_under_way
from stoker.decide.ready_in import Facts
from stoker.decide.tally import RULE_ORDER, SHORTAGES, Tally
from stoker.decide.warmth import Warmth
from stoker.model.fleet import PlacementOrder
from stoker.model.plan import Readiness
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources, UnitShape
from stoker.model.snapshot import Node, Replica, ServiceState
from stoker.model.start_samples import NO_STARTS, Starts

__all__ = ["Choice", "Index"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A node that was chosen, and how many of its GPUs were free before."""

    node: Node
    pool: str
    readiness: Readiness
    free_gpus: int


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a start would find itself, as far as orders rank it; `nearness` is from `near`."""

    nearness: Key
    bucket: int
    pool: int


@dataclass(slots=True)
class _Answer:
    """What RULES say about one ask: usable classes with their pool, and who was turned away."""

    usable: dict[int, tuple[int, str]]
    rejected: tuple[Tally, ...]


class Index:
    """The nodes of one pass. `pick` reads, `book` takes room; room never grows back."""

    def __init__(
        self,
        nodes: Iterable[Node],
        services: Iterable[ServiceState],
        cases: Collection[Case],
        shapes: Mapping[UnitRef, UnitShape],
        now_ms: int,
        starts: Starts = NO_STARTS,
    ) -> None:
        self._now_ms = now_ms
        self._estimates = Estimates(starts)
        services = tuple(services)
        self._nodes = {node.name: node for node in sorted(nodes, key=lambda node: node.name)}
        self._labels = {name: dict(node.labels) for name, node in self._nodes.items()}
        self._rooms = {name: Room(node) for name, node in self._nodes.items()}
        book_missing_pods(self._rooms, services, shapes)
        self._warmth = Warmth(self._nodes.values(), cases)
        for case, name, pod in starts_under_way(cases):
            if name in self._nodes:
                self.begin(case, name, pod)
        self._classes: list[NodeClass] = []
        self._class_of: dict[str, int] = {}
        self._answers: dict[Ask, _Answer] = {}
        self._by_signals = any(case.spec.placement_order.reads_signals for case in cases)
        self._active = active_services(self._nodes.values(), services) if self._by_signals else {}
        self._group(sorted(set().union(*(ask_labels(case.ask) for case in cases))))

    def node(self, name: str) -> Node | None:
        """That node; None when it is not in the snapshot."""
        return self._nodes.get(name)

    def pool(self, case: Case, name: str) -> str:
        """Name of the service's pool that the node is in; empty for none."""
        found = pool_of(self._labels.get(name, {}), case.ask.pools)
        return found[1] if found is not None else ""

    def must_move(self, case: Case, name: str) -> str:
        """Why a replica of the service on that node has to move some day; empty: it may stay."""
        return must_move(self._nodes[name], self._labels[name], case.ask)

    def readiness(self, case: Case, name: str) -> Readiness:
        """The estimate for a start of the service there, were it the only one."""
        return self._estimates.of(case, self._warmth.facts(case, name), self._labels[name])

    def begin(self, case: Case, name: str, pod: Replica | None = None) -> None:
        """Let a start there take its place in the queues of its sources; a pod stands already."""
        facts = self._warmth.facts(case, name)
        self._estimates.begin(case, facts, self._labels[name], pod, self._now_ms)

    def start_key(self, case: Case, name: str) -> str:
        """The kind of a start of the service there now; empty where the node is not known."""
        if name not in self._nodes:
            return ""
        return self._estimates.key(case, self._warmth.facts(case, name), self._labels[name])

    def pick(
        self, case: Case, *, urgent: bool, own: Collection[str], barred: Mapping[str, str]
    ) -> Choice | None:
        """The best node for one more replica; None when nothing fits.

        `own` are nodes with a replica of the service, `barred` maps nodes that must not be
        used to the rule's name. For an urgent start what a node holds counts wherever it
        came from; for any other, nodes in `own` rank as if they held nothing, so that a
        service's own replicas never attract its own scale-up.
        """
        answer = self._answer(case.ask)
        best = self._best_special(case, answer, own, barred, urgent=urgent)
        skip = {*own, *barred}
        for place, number in self._nearest_first(case, answer, urgent=urgent):
            if best is not None and place.nearness > best[0]:
                break
            found = self._best_of_class(case, self._classes[number], skip)
            if found is not None:
                candidate = self._key(case, place, found, own_here=False, urgent=urgent)
                best = candidate if best is None else min(best, candidate)
        if best is None:
            return None
        name = best[1][-1]
        return Choice(
            node=self._nodes[name],
            pool=answer.usable[self._class_of[name]][1],
            readiness=self._estimates.next(
                case, self._warmth.facts(case, name), self._labels[name]
            ),
            free_gpus=self._rooms[name].device(case.spec.gpu_resource),
        )

    def book(self, name: str, need: Need) -> None:
        """Take the room of one replica on that node."""
        if self._by_signals:
            self._active[name] = (self._active.get(name) or 0) + 1
        self._classes[self._class_of[name]].book(name, need)

    def would_fit(self, case: Case, name: str, freed: Resources) -> bool:
        """Whether a start would fit on that node once `freed` is given back there."""
        if self._class_of.get(name, -1) not in self._answer(case.ask).usable:
            return False
        room = self._rooms[name]
        room.take(freed, -1)
        missing = misfit(room, case.need)
        room.take(freed)
        return not missing

    def rejections(
        self, case: Case, barred: Mapping[str, str], *, thorough: bool
    ) -> tuple[Tally, ...]:
        """Who was turned away and by which rule, those nearest to being chosen first.

        Nodes that fit are in no tally. Unless `thorough`, nodes with enough free GPUs
        are taken to fit: looking at each is worth its time only when no place was found.
        """
        answer = self._answer(case.ask)
        turned: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for number, (_, pool) in answer.usable.items():
            home = self._classes[number]
            short = home.short_of_gpus(case.need)
            if short is not None:
                turned.setdefault(("gpus", pool), []).append(short)
            for rule, name, count in home.misfits(case.need) if thorough else ():
                turned.setdefault((rule, pool), []).append((name, count))
        for name, rule in sorted(barred.items()):
            usable = answer.usable.get(self._class_of.get(name, -1))
            if usable is not None and not misfit(self._rooms[name], case.need):
                turned.setdefault((rule, usable[1]), []).append((name, 1))
        tallies = [
            Tally(rule, sum(count for _, count in found), name, self._why(case, rule, name), pool)
            for (rule, pool), found in turned.items()
            for name in [min(found)[0]]
        ]
        tallies.extend(answer.rejected)
        return tuple(sorted(tallies, key=lambda tally: (-RULE_ORDER[tally.rule], tally.node)))

    def _group(self, keys: list[str]) -> None:
        numbers: dict[tuple[object, ...], int] = {}
        for name, node in self._nodes.items():
            labels = self._labels[name]
            facts = self._warmth.common(name)
            signature = (
                tuple(labels.get(key) for key in keys),
                node.taints,
                node.ready,
                node.cordoned,
                node.notice.kind if node.notice else None,
                node.gpu_unknown,
                facts,
                node.signals.warmth if self._by_signals else None,
                self._estimates.class_of(labels),
            )
            number = numbers.setdefault(signature, len(numbers))
            if number == len(self._classes):
                self._classes.append(NodeClass(node, labels, facts, self._rooms))
            self._classes[number].names.append(name)
            self._class_of[name] = number

    def _answer(self, ask: Ask) -> _Answer:
        known = self._answers.get(ask)
        if known is not None:
            return known
        usable: dict[int, tuple[int, str]] = {}
        turned: dict[str, list[tuple[str, str, int]]] = {}
        for number, home in enumerate(self._classes):
            rejection = first_rejection(home.node, home.labels, ask)
            if rejection is not None:
                entry = (home.names[0], rejection.reason, len(home.names))
                turned.setdefault(rejection.rule, []).append(entry)
                continue
            pool = pool_of(home.labels, ask.pools)
            assert pool is not None, "the first rule turns away nodes of other pools"
            usable[number] = pool
        rejected = tuple(
            Tally(rule, sum(count for _, _, count in found), *min(found)[:2])
            for rule, found in turned.items()
        )
        return self._answers.setdefault(ask, _Answer(usable, rejected))

    def _nearest_first(
        self, case: Case, answer: _Answer, *, urgent: bool
    ) -> list[tuple[_Place, int]]:
        """Usable classes, nearest first, by what all their nodes hold."""
        bucket_of: dict[tuple[bool, bool, str], int] = {}
        found = []
        for number, (pool, _) in answer.usable.items():
            home = self._classes[number]
            facts = Facts(image=case.image in home.facts, weights=case.weights in home.facts)
            held = (facts.image, facts.weights, self._estimates.class_of(home.labels))
            if held not in bucket_of:
                bucket_of[held] = self._estimates.bucket(case, facts, home.labels)
            place = self._place(case, home.node, facts, bucket_of[held], pool, urgent=urgent)
            found.append((place, number))
        return sorted(found, key=lambda each: (each[0].nearness, each[1]))

    def _best_special(
        self,
        case: Case,
        answer: _Answer,
        own: Collection[str],
        barred: Mapping[str, str],
        *,
        urgent: bool,
    ) -> tuple[Key, Key] | None:
        """The best of the nodes that hold a rare fact or an own replica."""
        best: tuple[Key, Key] | None = None
        bucket_of: dict[tuple[Facts, str], int] = {}
        rare = self._warmth.rare_holders(case)
        if case.spec.placement_order.reads_signals:
            rare += self._warmth.starting(case)
        for name in dict.fromkeys((*rare, *sorted(own))):
            usable = answer.usable.get(self._class_of.get(name, -1))
            if usable is None or name in barred or misfit(self._rooms[name], case.need):
                continue
            own_here = name in own
            plain = own_here and not urgent
            facts = Facts() if plain else self._warmth.facts(case, name)
            labels = self._labels[name]
            alike = (facts, self._estimates.class_of(labels))
            bucket = bucket_of.get(alike)
            if bucket is None:
                bucket = bucket_of[alike] = self._estimates.bucket(case, facts, labels)
            place = self._place(case, self._nodes[name], facts, bucket, usable[0], urgent=urgent)
            candidate = self._key(case, place, name, own_here=own_here, urgent=urgent)
            best = candidate if best is None else min(best, candidate)
        return best

    def _place(
        self, case: Case, node: Node, facts: Facts, bucket: int, pool: int, *, urgent: bool
    ) -> _Place:
        order = case.spec.placement_order
        warmth = warmth_rank(facts, node.signals.warmth) if order.reads_signals else 0
        nearness = near(order, bucket=bucket, pool=pool, warmth=warmth, urgent=urgent)
        return _Place(nearness, bucket, pool)

    def _best_of_class(self, case: Case, home: NodeClass, skip: Collection[str]) -> str | None:
        """The node of a class that the order of the service puts first."""
        order = case.spec.placement_order
        if not order.reads_signals:
            found = home.best(case.need, skip, most=order is PlacementOrder.SPREAD)
            return None if found is None else found[1]
        token = (order, case.spec.signal_max_age_ms, case.need)
        any_place = _Place((), 0, 0)
        return home.best_by(
            token,
            case.need,
            skip,
            lambda name: self._key(case, any_place, name, own_here=False, urgent=False)[1],
        )

    def _key(
        self, case: Case, place: _Place, name: str, *, own_here: bool, urgent: bool
    ) -> tuple[Key, Key]:
        """The whole key of one node; ends with its name."""
        order = case.spec.placement_order
        free_gpus = self._rooms[name].device(case.spec.gpu_resource)
        if order.reads_signals:
            signals = fresh(self._nodes[name].signals, self._now_ms, case.spec.signal_max_age_ms)
            stand = Stand(free_gpus, own_here, name, signals, self._active.get(name))
        else:
            stand = Stand(free_gpus, own_here, name)
        within = place_in_class(order, stand, bucket=place.bucket, pool=place.pool, urgent=urgent)
        return place.nearness, within

    def _why(self, case: Case, rule: str, name: str) -> str:
        """The words for one node that a room rule turned away."""
        if rule == "gpus":
            total = self._nodes[name].allocatable.device(case.spec.gpu_resource)
            free = max(0, self._rooms[name].device(case.spec.gpu_resource))
            return f"{free} of {total} GPUs free, a replica needs {case.need.gpus}"
        if rule == "quarantined":
            return case.bars.why(name) or SHORTAGES[rule]
        return SHORTAGES[rule]
