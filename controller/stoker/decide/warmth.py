"""Which nodes hold what a start needs: images, weights, replicas of the same model.

Built once a pass for the facts that some service asks about. A fact that many nodes hold
belongs to their class, a rare one singles its holders out, so that place loops over
classes and a few nodes, never over services times nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.decide.case import Case, canonical_image
from stoker.decide.ready_in import Facts
from stoker.decide.slots import Standing, slots_of
from stoker.model.snapshot import Node

__all__ = ["COMMON", "Fact", "Warmth"]

COMMON = 64
"""A fact held by more nodes than this is common. Small enough to look at one by one."""

Fact = str | tuple[str, str]
"""An image reference, or uri and revision of weights."""


class Warmth:
    """Who holds which fact. Node lists are sorted by name."""

    def __init__(self, nodes: Iterable[Node], cases: Iterable[Case]) -> None:
        cases = tuple(cases)
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
        for case in cases:
            self._note_replicas(case)
        sets = {fact: frozenset(names) for fact, names in self._holders.items()}
        self._holder_sets = sets

    def common(self, node: str) -> frozenset[Fact]:
        """The common facts that the node holds."""
        return frozenset(f for f in self._held[node] if len(self._holders[f]) > COMMON)

    def rare_holders(self, case: Case) -> list[str]:
        """Nodes that hold a rare fact of this service, each once."""
        names: dict[str, None] = {}
        for fact in (case.weights, case.image):
            holders = self._holders[fact]
            if len(holders) <= COMMON:
                names.update(dict.fromkeys(holders))
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

    def _note(
        self, node: Node, images: set[str], weights: set[tuple[str, str]]
    ) -> tuple[Fact, ...]:
        held: list[Fact] = []
        held.extend(
            dict.fromkeys(name for name in map(self._spelled, node.images) if name in images)
        )
        for copy in dict.fromkeys(node.weights):
            fact = (copy.uri, copy.revision)
            if fact not in weights:
                continue
            if copy.complete:
                held.append(fact)
            else:
                self._warming.setdefault(fact, set()).add(node.name)
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
                    self._serving.setdefault(case.weights, set()).add(slot.node)
                elif slot.standing is Standing.WARMING:
                    self._warming.setdefault(case.weights, set()).add(slot.node)
