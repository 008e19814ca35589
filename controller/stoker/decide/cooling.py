"""Pools that cool down after a hint, so that the next start is not placed where the same may happen.

A recommendation to rebalance says of one node what is likely to come over its pool. It moves
nobody; but where another tool drains such nodes, a successor in the same pool would be drained
in turn, and so on. For COOL_MS after the last hint a service places new starts in its other
pools first. In: what it remembers and the nodes with a hint. Called by decide.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.decide.case import Case
from stoker.decide.place import Index
from stoker.model.fleet import PlacementMode
from stoker.model.history import PoolHint
from stoker.model.snapshot import Node

__all__ = ["COOL_MS", "cooling_after"]

COOL_MS = 600_000
"""10 minutes (cases.md row 133)."""
_REFRESH_MS = 60_000
"""While a hint stands it is noted once a minute, not in every pass."""


def cooling_after(
    known: tuple[PoolHint, ...], case: Case, index: Index, nodes: Iterable[Node], now_ms: int
) -> tuple[PoolHint, ...]:
    """The next `UnitHistory.cooling`, sorted by pool. A service with one pool has no other, and
    in mode Scheduler pods are placed by somebody else: nothing is remembered of these.
    """
    names = {pool.name for pool in case.ask.pools}
    if len(names) < 2 or case.spec.placement_mode is not PlacementMode.NODES:
        return ()
    until = {hint.pool: hint.until_ms for hint in known if hint.until_ms > now_ms}
    for pool in sorted({index.pool(case, node.name) for node in nodes if node.hint} - {""}):
        if until.get(pool, 0) < now_ms + COOL_MS:
            until[pool] = now_ms + COOL_MS + _REFRESH_MS
    return tuple(PoolHint(pool, until[pool]) for pool in sorted(until) if pool in names)
