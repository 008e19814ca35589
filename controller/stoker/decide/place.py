"""Choose a node for one start, from an index that is built once a pass.

Nodes that no rule can tell apart form a class. A choice looks at the classes a service may
use and at the few nodes that are special to it (they hold its weights, its image, or a
replica of it), so its cost does not grow with the nodes of the fleet. Called by transition.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, replace

from stoker.decide.answers import Answer, answer_of
from stoker.decide.booking import Need, Room, book_missing_pods, misfit
from stoker.decide.case import Case
from stoker.decide.classes import NodeClass
from stoker.decide.closed import NOTHING_CLOSED, Closed, Skip
from stoker.decide.eligible import Ask, ask_labels, must_move, pool_of
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
from stoker.decide.ready_in import P90_PERCENT, PROVISION_MS, Facts
from stoker.decide.tally import RULE_ORDER, Tally
from stoker.decide.turned_away import Turned
from stoker.decide.warmth import Warmth
from stoker.model.fleet import PlacementOrder
from stoker.model.plan import Readiness
from stoker.model.prefetch import LivePrefetch
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources, UnitShape
from stoker.model.snapshot import Node, Replica, ServiceState
from stoker.model.start_samples import NO_STARTS, Starts
from stoker.objects.names import pool_of_place

__all__ = ["Choice", "Index"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A node that was chosen by `rule`, and how many of its GPUs were free before. `beyond`: limits
    that it goes beyond for the floor, or pools left alone for now; empty for none.
    """

    node: Node
    pool: str
    readiness: Readiness
    free_gpus: int
    beyond: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a start would find itself, as far as orders rank it; `nearness` is from `near`."""

    nearness: Key
    bucket: int
    pool: int


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
        prefetches: Iterable[LivePrefetch] = (),
    ) -> None:
        self._now_ms = now_ms
        self.estimates = Estimates(starts)
        services = tuple(services)
        self._nodes = {node.name: node for node in sorted(nodes, key=lambda node: node.name)}
        self._labels = {name: dict(node.labels) for name, node in self._nodes.items()}
        self._rooms = {name: Room(node) for name, node in self._nodes.items()}
        book_missing_pods(self._rooms, services, shapes)
        self._warmth = Warmth(self._nodes.values(), cases, prefetches)
        for case, name, pod in starts_under_way(cases):
            if name in self._nodes:
                self.begin(case, name, pod)
        self._classes: list[NodeClass] = []
        self._class_of: dict[str, int] = {}
        self._answers: dict[Ask, Answer] = {}
        self._by_signals = any(case.spec.placement_order.reads_signals for case in cases)
        self._active = active_services(self._nodes.values(), services) if self._by_signals else {}
        spread_keys = sorted({case.ask.spread_key for case in cases} - {""})
        self._group(sorted(set().union(*(ask_labels(case.ask) for case in cases))), spread_keys)

    def node(self, name: str) -> Node | None:
        """That node; None when it is not in the snapshot."""
        return self._nodes.get(name)

    def pool(self, case: Case, name: str) -> str:
        """Name of the service's pool that the node is in; empty for none."""
        if asked := pool_of_place(name):
            return next((pool.name for pool in case.ask.pools if pool.name == asked), "")
        found = pool_of(self._labels.get(name, {}), case.ask.pools)
        return found[1] if found is not None else ""

    def domain(self, case: Case, name: str) -> str:
        """The domain of that node for the service's spread; empty for none."""
        return self._labels.get(name, {}).get(case.ask.spread_key, "")

    def domains(self, case: Case) -> Mapping[str, tuple[str, ...]]:
        """By pool: the domains in which RULES let some node pass; empty without a spread."""
        return self._answer(case.ask).domains

    def must_move(self, case: Case, name: str) -> str:
        """Why a replica of the service on that node has to move some day; empty: it may stay."""
        return must_move(self._nodes[name], self._labels[name], case.ask)

    def readiness(self, case: Case, name: str) -> Readiness:
        """The estimate for a start of the service there, were it the only one."""
        return self.estimates.of(case, self._warmth.facts(case, name), self._labels[name])

    def facts(self, case: Case, name: str) -> Facts:
        """What a start of the service would find there."""
        return self._warmth.facts(case, name)

    def readiness_of_new(self, case: Case) -> Readiness:
        """The estimate for a start on a node that has to be added first."""
        cold = self.estimates.next(case, Facts(), {})
        return replace(
            cold,
            p50_ms=cold.p50_ms + PROVISION_MS,
            p90_ms=cold.p90_ms + PROVISION_MS * P90_PERCENT // 100,
            facts=f"a new node, {cold.facts}",
        )

    def begin(self, case: Case, name: str, pod: Replica | None = None) -> None:
        """Let a start there take its place in the queues of its sources; a pod stands already."""
        facts = self._warmth.facts(case, name)
        self.estimates.begin(case, facts, self._labels[name], pod, self._now_ms)

    def start_key(self, case: Case, name: str) -> str:
        """The kind of a start of the service there now; empty where the node is not known."""
        if name not in self._nodes:
            return ""
        return self.estimates.key(case, self._warmth.facts(case, name), self._labels[name])

    def pick(
        self,
        case: Case,
        *,
        urgent: bool,
        own: Collection[str],
        barred: Mapping[str, str],
        closed: Closed = NOTHING_CLOSED,
    ) -> Choice | None:
        """The best node for one more replica; None when nothing fits.

        `own` are nodes with a replica of the service, `barred` maps nodes that must not be
        used to the rule's name. For an urgent start what a node holds counts wherever it
        came from; for any other, nodes in `own` rank as if they held nothing, so that a
        service's own replicas never attract its own scale-up.
        """
        answer = Answer(self._answer(case.ask).within(closed))
        shut: Container[str] = barred
        skip: Container[str] = {*own, *barred}
        if closed.domains:
            shut = Skip((), barred, closed, self._labels)
            skip = Skip(own, barred, closed, self._labels)
        best = self._best_special(case, answer, own, shut, urgent=urgent)
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
            readiness=self.estimates.next(case, self._warmth.facts(case, name), self._labels[name]),
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
        self,
        case: Case,
        barred: Mapping[str, str],
        *,
        thorough: bool,
        closed: Closed = NOTHING_CLOSED,
    ) -> tuple[Tally, ...]:
        """Who was turned away and by which rule, those nearest to being chosen first.

        Nodes that fit are in no tally.
        """
        answer = self._answer(case.ask)
        turned = Turned(
            case,
            answer.usable,
            self._classes,
            self._class_of,
            self._nodes,
            self._labels,
            self._rooms,
            barred,
            closed,
        )
        tallies = [*turned.tallies(thorough=thorough), *answer.rejected]
        return tuple(sorted(tallies, key=lambda tally: (-RULE_ORDER[tally.rule], tally.node)))

    def _group(self, keys: list[str], spread_keys: list[str]) -> None:
        numbers: dict[tuple[object, ...], int] = {}
        for name, node in self._nodes.items():
            labels = self._labels[name]
            facts = self._warmth.common(name)
            signature = (
                tuple(labels.get(key) for key in keys),
                tuple(key in labels for key in spread_keys),
                node.taints,
                node.ready,
                node.cordoned,
                node.notice.kind if node.notice else None,
                node.gpu_unknown,
                facts,
                node.signals.warmth if self._by_signals else None,
                self.estimates.class_of(labels),
            )
            number = numbers.setdefault(signature, len(numbers))
            if number == len(self._classes):
                self._classes.append(NodeClass(node, labels, facts, self._rooms))
            self._classes[number].names.append(name)
            self._class_of[name] = number

    def _answer(self, ask: Ask) -> Answer:
        known = self._answers.get(ask)
        if known is not None:
            return known
        answer = answer_of(ask, self._classes, self._labels)
        return self._answers.setdefault(ask, answer)

    def _nearest_first(
        self, case: Case, answer: Answer, *, urgent: bool
    ) -> list[tuple[_Place, int]]:
        """Usable classes, nearest first, by what all their nodes hold."""
        bucket_of: dict[tuple[bool, bool, str], int] = {}
        found = []
        for number, (pool, _) in answer.usable.items():
            home = self._classes[number]
            facts = Facts(image=case.image in home.facts, weights=case.weights in home.facts)
            held = (facts.image, facts.weights, self.estimates.class_of(home.labels))
            if held not in bucket_of:
                bucket_of[held] = self.estimates.bucket(case, facts, home.labels)
            place = self._place(case, home.node, facts, bucket_of[held], pool, urgent=urgent)
            found.append((place, number))
        return sorted(found, key=lambda each: (each[0].nearness, each[1]))

    def _best_special(
        self,
        case: Case,
        answer: Answer,
        own: Collection[str],
        barred: Container[str],
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
            alike = (facts, self.estimates.class_of(labels))
            bucket = bucket_of.get(alike)
            if bucket is None:
                bucket = bucket_of[alike] = self.estimates.bucket(case, facts, labels)
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

    def _best_of_class(self, case: Case, home: NodeClass, skip: Container[str]) -> str | None:
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
