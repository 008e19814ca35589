"""Which replica a request goes to: round robin, least queue, prefix affinity with fallback.

In: a request and the replicas that serve, by number. Out: one of them. A router remembers
only what a gateway could; `sim.fleet_run` asks it. Pure but for that memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from stoker.sim.traffic import Request

__all__ = ["LeastQueue", "PrefixAffinity", "RoundRobin", "Router", "RouterName", "router_named"]

MOST_BEHIND = 4
"""How many requests more than the least busy replica one may have and still be chosen for its
cache: about what a seat's wait costs beside the prefill of a long prompt [ours]."""
MAX_KNOWN_BLOCKS = 200_000
"""Prefix blocks that a router remembers, about 20 MB."""


class Target(Protocol):
    """A replica as a router sees it."""

    @property
    def number(self) -> int:
        """Its number, never used twice in a run."""
        ...

    @property
    def load(self) -> int:
        """Requests running and waiting in it."""
        ...


class Router(Protocol):
    """Chooses; `targets` is never empty and sorted by number."""

    def choose(self, request: Request, targets: Sequence[Target]) -> int:
        """The place in `targets` of the replica that gets the request."""
        ...


class RouterName(StrEnum):
    """The routers, as they are asked for."""

    ROUND_ROBIN = "round-robin"
    LEAST_QUEUE = "least-queue"
    PREFIX = "prefix"


def router_named(name: RouterName) -> Router:
    """A router without memory yet."""
    match name:
        case RouterName.ROUND_ROBIN:
            return RoundRobin()
        case RouterName.LEAST_QUEUE:
            return LeastQueue()
        case RouterName.PREFIX:
            return PrefixAffinity()


class RoundRobin:
    """One after the other, by number; who comes or goes shifts nobody else's turn."""

    def __init__(self) -> None:
        self._last = -1

    def choose(self, request: Request, targets: Sequence[Target]) -> int:  # noqa: ARG002 - the port
        """The next number after the last one, else the first."""
        place = next((i for i, t in enumerate(targets) if t.number > self._last), 0)
        self._last = targets[place].number
        return place


class LeastQueue:
    """Where the fewest requests run and wait; the lowest number of several."""

    def choose(self, request: Request, targets: Sequence[Target]) -> int:  # noqa: ARG002 - the port
        """The least busy one."""
        loads = [target.load for target in targets]
        return loads.index(min(loads))


class PrefixAffinity:
    """Where the longest beginning of the prompt was sent last, unless that one is too busy.

    Falls back to the least queue where nothing is known, or where the replica has more than
    MOST_BEHIND requests more than the least busy one.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[int, int] = OrderedDict()
        """Prefix block to the number of its replica, the block sent longest ago first."""

    def choose(self, request: Request, targets: Sequence[Target]) -> int:
        """The one with the cache, or the least busy one."""
        loads = [target.load for target in targets]
        least = min(loads)
        place = loads.index(least)
        known = self._known(request.prefix, targets)
        if known is not None and loads[known] <= least + MOST_BEHIND:
            place = known
        number = targets[place].number
        for block in request.prefix:
            self._sent.pop(block, None)
            self._sent[block] = number
        while len(self._sent) > MAX_KNOWN_BLOCKS:
            self._sent.popitem(last=False)
        return place

    def _known(self, prefix: Sequence[int], targets: Sequence[Target]) -> int | None:
        places = {target.number: place for place, target in enumerate(targets)}
        for block in reversed(prefix):
            place = places.get(self._sent.get(block, -1))
            if place is not None:
                return place
        return None
