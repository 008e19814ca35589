"""Which nodes hold what a start needs: images, weights, replicas of the same model.

Built once a pass for the facts that some service asks about. A common fact belongs to the
class of the nodes that hold it, a rare one singles its holders out, so that place loops over
classes and a few nodes, never over services times nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stoker.decide.case import Case, canonical_image
from stoker.decide.ready_in import Facts
from stoker.decide.slots import Standing, slots_of
from stoker.model.prefetch import IMAGE_URI, LivePrefetch, PrefetchState
from stoker.model.snapshot import Node

__all__ = ["COMMON", "Fact", "Warmth"]

COMMON = 64
"""A fact held by more nodes than this may be common. Small enough to look at one by one."""

HOLDER = 2
"""What a look at one holder takes, in looks at a class (measured 2026-11-30)."""

Fact = str | tuple[str, str]
"""An image reference, or uri and revision of weights."""


class Warmth:
    """Who holds which fact. Node lists are sorted by name."""

    def __init__(
        self, nodes: Iterable[Node], cases: Iterable[Case], prefetches: Iterable[LivePrefetch] = ()
    ) -> None:
        cases = tuple(cases)
        self._fetched, fetching = _fetched_ahead(prefetches)
        images = {case.image for case in cases}
        weights = {case.weights for case in cases}
        self._holders: dict[Fact, list[str]] = {image: [] for image in images}
        self._holders.update({copy: [] for copy in weights})
        self._serving: dict[Fact, set[str]] = {}
        self._warming: dict[Fact, set[str]] = {}
        self._whole_names: dict[str, str] = {}
        self._held: dict[str, tuple[Fact, ...]] = {}
        for node in nodes:
            self._held[node.name] = self._note(node, images, weights)
            for fact in fetching.get((node.name, node.uid), ()):
                self._warming.setdefault(fact, set()).add(node.name)
        for case in cases:
            self._note_replicas(case)
        sets = {fact: frozenset(names) for fact, names in self._holders.items()}
        self._holder_sets = sets
        self._common = self._worth_a_class(cases)

    def common(self, node: str) -> frozenset[Fact]:
        """The common facts that the node holds."""
        return self._common.intersection(self._held[node])

    def rare_holders(self, case: Case) -> list[str]:
        """Nodes that hold a rare fact of this service, each once."""
        names: dict[str, None] = {}
        for fact in (case.weights, case.image):
            if fact not in self._common:
                names.update(dict.fromkeys(self._holders[fact]))
        return list(names)

    def starting(self, case: Case) -> list[str]:
        """Nodes on which a replica of these weights serves or starts, or a copy is on its way."""
        serving = self._serving.get(case.weights, set())
        return sorted(serving | self._warming.get(case.weights, set()))

    def facts(self, case: Case, node: str) -> Facts:
        """What a start of this service would find on the node."""
        return Facts(
            image=node in self._holder_sets[case.image],
            weights=node in self._holder_sets[case.weights],
            serving=node in self._serving.get(case.weights, ()),
            warming=node in self._warming.get(case.weights, ()),
        )

    def _worth_a_class(self, cases: tuple[Case, ...]) -> frozenset[Fact]:
        """Facts of which classes are cheaper to tell apart than holders to look at.

        A class costs every service a look, a holder only those that ask for what it holds.
        Where many nodes hold a few of many models, all facts together would make nearly as
        many classes as there are nodes: then the dearest are told apart, while that pays.
        """
        askers = Counter(fact for case in cases for fact in (case.image, case.weights))
        looks = {
            fact: askers[fact] * len(holders)
            for fact, holders in self._holders.items()
            if len(holders) > COMMON
        }
        asked = frozenset(looks)
        classes = len({asked.intersection(held) for held in self._held.values()})
        if len(cases) * classes <= HOLDER * sum(looks.values()):
            return asked
        class_of = dict.fromkeys(self._held, 0)
        sizes = [len(self._held)]
        common: set[Fact] = set()
        for fact in sorted(looks, key=lambda each: (-looks[each], isinstance(each, str), each)):
            inside = Counter(class_of[name] for name in self._holders[fact])
            parted = sorted(number for number, count in inside.items() if count < sizes[number])
            if HOLDER * looks[fact] <= len(cases) * len(parted):
                continue
            common.add(fact)
            made = {number: len(sizes) + place for place, number in enumerate(parted)}
            for number in parted:
                sizes[number] -= inside[number]
                sizes.append(inside[number])
            for name in self._holders[fact]:
                class_of[name] = made.get(class_of[name], class_of[name])
        return frozenset(common)

    def _note(
        self, node: Node, images: set[str], weights: set[tuple[str, str]]
    ) -> tuple[Fact, ...]:
        held: list[Fact] = []
        for name in dict.fromkeys(map(self._spelled, node.images)):
            held += [name] if name in images else []
            held += [(IMAGE_URI, name)] if (IMAGE_URI, name) in weights else []
        for copy in dict.fromkeys(node.weights):
            fact = (copy.uri, copy.revision)
            if fact not in weights:
                continue
            if copy.complete:
                held.append(fact)
            else:
                self._warming.setdefault(fact, set()).add(node.name)
        for left in self._fetched.get((node.name, node.uid), ()):
            # Of weights in a folder its reporter knows better.
            told = node.weights and not isinstance(left, str) and left[0] != IMAGE_URI
            if left in (images if isinstance(left, str) else weights) and not told:
                held += [] if left in held else [left]
        for found in held:
            self._holders[found].append(node.name)
        return tuple(held)

    def _spelled(self, image: str) -> str:
        """The image's whole name; nodes hold the same few, so each is worked out once."""
        known = self._whole_names.get(image)
        if known is None:
            known = self._whole_names[image] = canonical_image(image)
        return known

    def _note_replicas(self, case: Case) -> None:
        """Replicas of the current rev load the current weights; of older ones nobody knows."""
        for placement in case.state.placements:
            if placement.rev != case.rev:
                continue
            for slot in slots_of(placement):
                if slot.standing is Standing.READY:
                    self._serving.setdefault(case.weights, set()).update(slot.nodes)
                elif slot.standing is Standing.WARMING:
                    self._warming.setdefault(case.weights, set()).update(slot.nodes)


_ByNode = dict[tuple[str, str], list[Fact]]
"""Facts by name and UID of a node."""


def _fetched_ahead(prefetches: Iterable[LivePrefetch]) -> tuple[_ByNode, _ByNode]:
    """What Jobs that are done have left on nodes, and which weights others are fetching."""
    fetched: _ByNode = {}
    fetching: _ByNode = {}
    for each in prefetches:
        node = (each.node, each.node_uid)
        if each.state is PrefetchState.DONE:
            image = canonical_image(each.image)
            fetched.setdefault(node, []).extend((image, (IMAGE_URI, image), *_weights(each)))
        elif each.state is PrefetchState.RUNNING:
            fetching.setdefault(node, []).extend(_weights(each))
    return fetched, fetching


def _weights(each: LivePrefetch) -> list[tuple[str, str]]:
    """The weights it fetches, under the name by which cases ask for them; or none."""
    if each.weights is None:
        return []
    uri, revision = each.weights
    return [(uri, canonical_image(revision) if uri == IMAGE_URI else revision)]
