"""Classes of nodes that no rule can tell apart, each with its nodes by free GPUs and name.

Made and read by place. Room only shrinks within a pass, so what did not fit once never
fits later: a class remembers the needs it is full for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Hashable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace

from stoker.decide.booking import Need, Room, misfit
from stoker.decide.eligible import Labels
from stoker.decide.order import Key
from stoker.decide.warmth import Fact
from stoker.model.snapshot import Node

__all__ = ["NodeClass"]


class NodeClass:
    """Nodes alike in all that RULES and common facts say.

    `node` and `labels` are of the first of them and stand for all; `names` is sorted.
    """

    __slots__ = (
        "_full",
        "_heaps",
        "_misfits",
        "_rooms",
        "_shelves",
        "_taken",
        "facts",
        "labels",
        "names",
        "node",
    )

    def __init__(
        self, node: Node, labels: Labels, facts: frozenset[Fact], rooms: Mapping[str, Room]
    ) -> None:
        self.node = node
        self.labels = labels
        self.facts = facts
        self.names: list[str] = []
        self._rooms = rooms
        self._shelves: dict[str, dict[int, list[str]]] = {}
        self._full: dict[Need, tuple[str, ...]] = {}
        self._misfits: dict[Need, tuple[int, tuple[tuple[str, str, int], ...]]] = {}
        self._heaps: dict[Hashable, list[tuple[Key, str]]] = {}
        self._taken = 0

    def best(
        self, need: Need, skip: Container[str], *, most: bool = False
    ) -> tuple[int, str] | None:
        """Free GPUs and name of the node with the least (or most) of them that fits; ties by
        name.
        """
        unseen = self._full.get(need)
        if unseen is not None:
            fitting = (
                (self._rooms[name].device(need.gpu_resource), name)
                for name in unseen
                if name not in skip and not misfit(self._rooms[name], need)
            )
            by_count = (lambda each: (-each[0], each[1])) if most else None
            return min(fitting, default=None, key=by_count)
        skipped = []
        for free_gpus, name in self._with_gpus(need, most=most):
            if name in skip:
                skipped.append(name)
            elif not misfit(self._rooms[name], need):
                return free_gpus, name
        self._full[need] = tuple(skipped)
        return None

    def best_by(
        self, order: Hashable, need: Need, skip: Container[str], key: Callable[[str], Key]
    ) -> str | None:
        """The fitting node with the smallest key. Calls with an equal `order` give the same
        keys, which only grow within a pass.

        A node that does not fit is forgotten: it never will. A key that has grown is put
        right when it comes up.
        """
        heap = self._heaps.get(order)
        if heap is None:
            heap = self._heaps[order] = [(key(name), name) for name in self.names]
            heapify(heap)
        aside: list[tuple[Key, str]] = []
        found: str | None = None
        while heap and found is None:
            before, name = heap[0]
            now = key(name)
            if misfit(self._rooms[name], need):
                heappop(heap)
            elif now != before:
                heapreplace(heap, (now, name))
            elif name in skip:
                aside.append(heappop(heap))
            else:
                found = name
        for each in aside:
            heappush(heap, each)
        return found

    def book(self, name: str, need: Need) -> None:
        """Take the room of one replica on that node."""
        room = self._rooms[name]
        before = {resource: room.device(resource) for resource in self._shelves}
        room.take(need.requests)
        self._taken += 1
        for resource, shelf in self._shelves.items():
            free_gpus = room.device(resource)
            if free_gpus != before[resource]:
                old = shelf[before[resource]]
                del old[bisect_left(old, name)]
                insort(shelf.setdefault(free_gpus, []), name)

    def short_of_gpus(self, need: Need) -> tuple[str, int] | None:
        """The node that comes nearest to enough free GPUs without having them, and how many
        nodes lack them; None when no node does.
        """
        short = [
            (-free_gpus, names[0], len(names))
            for free_gpus, names in self._shelf(need).items()
            if names and free_gpus < need.gpus
        ]
        if not short:
            return None
        return min(short)[1], sum(count for _, _, count in short)

    def misfits(self, need: Need) -> tuple[tuple[str, str, int], ...]:
        """Nodes with enough free GPUs and too little of something else.

        Rule, first node and count, sorted by rule; kept until room is taken here again.
        """
        taken, known = self._misfits.get(need, (-1, ()))
        if taken == self._taken:
            return known
        found: dict[str, list[str]] = {}
        for _, name in self._with_gpus(need):
            rule = misfit(self._rooms[name], need)
            if rule:
                found.setdefault(rule, []).append(name)
        known = tuple((rule, min(names), len(names)) for rule, names in sorted(found.items()))
        self._misfits[need] = (self._taken, known)
        return known

    def _with_gpus(self, need: Need, *, most: bool = False) -> Iterator[tuple[int, str]]:
        shelf = self._shelf(need)
        for free_gpus in sorted(shelf, reverse=most):
            if free_gpus >= need.gpus:
                for name in shelf[free_gpus]:
                    yield free_gpus, name

    def _shelf(self, need: Need) -> dict[int, list[str]]:
        """Names by free devices of that resource; made when the first service asks."""
        shelf = self._shelves.get(need.gpu_resource)
        if shelf is None:
            shelf = self._shelves[need.gpu_resource] = {}
            for name in self.names:
                free_gpus = self._rooms[name].device(need.gpu_resource)
                shelf.setdefault(free_gpus, []).append(name)
        return shelf
