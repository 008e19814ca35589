"""How many replicas of a service may stand where: bases of pools, share on spot, spread.

Counts are of replicas that will remain, Ready or on their way, starts of this pass included:
what a notice takes, what leaves and what is stuck is not counted. A start that restores the
floor comes before every limit (decision note 24). Read by work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stoker.decide.case import Case
from stoker.decide.closed import NOTHING_CLOSED, Closed
from stoker.decide.fate import Fate, Judged, victims
from stoker.decide.groups import pick
from stoker.decide.place import Choice, Index
from stoker.model.fleet import CapacityType
from stoker.model.limits import NO_LIMITS

__all__ = ["Limits", "Wish", "out_of_place"]

COOLING = "pool-cooling"
SUCCEEDED = "a replica within the limits takes its place"


@dataclass(frozen=True, slots=True)
class _Counts:
    """Replicas by name of pool and by domain; `spot` is how many stand in pools of spot."""

    pools: Mapping[str, int]
    domains: Mapping[str, int]
    spot: int


@dataclass(frozen=True, slots=True)
class Wish:
    """One more replica: nodes of those that remain, and what `Index.pick` asks for."""

    beside: Sequence[str]
    own: Collection[str]
    barred: Mapping[str, str]
    urgent: bool = False
    anchors: Collection[str] = ()
    """Nodes that no leader of a group may take."""


class Limits:
    """The limits of one service at a wanted count. Nodes are given once for each replica.

    Pools of `cooling` come last: within what the limits leave open, others are tried first.
    """

    def __init__(self, case: Case, index: Index, want: int, cooling: Sequence[str] = ()) -> None:
        self._case = case
        self._cooling = tuple((name, COOLING, "cools down after a hint") for name in cooling)
        self._index = index
        self._want = want
        self._limits = case.spec.limits
        spot = self._limits.spot_max_percent is not None
        self._spot = tuple(
            pool.name for pool in case.ask.pools if spot and pool.capacity_type is CapacityType.SPOT
        )

    @property
    def any(self) -> bool:
        """Whether the service has limits at all."""
        return self._limits != NO_LIMITS

    @property
    def only_spread(self) -> bool:
        """Whether a spread is all that limits it: a replica that leaves is in nobody's way then."""
        limits = self._limits
        return bool(limits.spread_key) and not limits.bases and limits.spot_max_percent is None

    def tries(self, nodes: Iterable[str], *, floor: bool) -> tuple[Closed, ...]:
        """What to keep closed for one more start, the best first: the start goes where the first
        of them leaves a node. For the floor the spread gives way first, then bases, then the
        share on spot.
        """
        if not self.any:
            return self._cool_first((NOTHING_CLOSED,))
        counts = self._counts(nodes)
        spot = self._spot_closed(counts)
        strict = [(*spot, *self._base_closed([name], counts)) for name in self._unmet(counts)]
        strict = strict or [spot]
        found = [self._with_domains(pools, counts) for pools in strict]
        if floor:
            found += [*(Closed(pools) for pools in strict), Closed(spot), NOTHING_CLOSED]
        return self._cool_first(tuple(dict.fromkeys(found)))

    def _cool_first(self, tries: tuple[Closed, ...]) -> tuple[Closed, ...]:
        """Each try twice where pools cool down: without these pools, then with them."""
        if not self._cooling:
            return tries
        return tuple(
            each
            for closed in tries
            for each in (replace(closed, pools=(*closed.pools, *self._cooling)), closed)
        )

    def pick(self, wish: Wish, *, floor: bool) -> Choice | None:
        """The best node within the limits; for the floor, beyond them where there is no other."""
        for number, closed in enumerate(self.tries(wish.beside, floor=floor)):
            choice = pick(
                self._index,
                self._case,
                urgent=wish.urgent,
                own=wish.own,
                barred=wish.barred,
                closed=closed,
                anchors=wish.anchors,
            )
            if choice is not None and number and not self.admits(choice.node.name, wish.beside):
                return replace(choice, beyond="beyond its limits, for the floor")
            if choice is not None:
                cool = [name for name, rule, _ in closed.pools if rule == COOLING]
                told = f"{' and '.join(cool)} cooling down after a hint" if cool else ""
                return replace(choice, beyond=told)
        return None

    def told(self, nodes: Iterable[str]) -> Closed:
        """What is closed to every start that is not for the floor, for people."""
        if not self.any:
            return NOTHING_CLOSED
        counts = self._counts(nodes)
        unmet = self._unmet(counts)
        bases = self._base_closed(unmet, counts) if unmet else ()
        return self._with_domains((*self._spot_closed(counts), *bases), counts)

    def admits(self, node: str, others: Iterable[str]) -> bool:
        """Whether one more replica may stand on that node beside the others."""
        pool = self._index.pool(self._case, node)
        domain = {self._limits.spread_key: self._index.domain(self._case, node)}
        return any(
            closed.pool(pool) is None and not closed.domain(domain)
            for closed in self.tries(others, floor=False)
        )

    def order_of_going(self, judged: Iterable[Judged]) -> list[Judged]:
        """Who goes first where some are too many: as `victims` has it, but none whose going
        breaks a limit while another can go.
        """
        left = victims(judged)
        if not self.any:
            return left
        gone: list[Judged] = []
        while left:
            counts = self._counts(j.slot.node for j in left)
            first = min(left, key=lambda j: self._keeps(j, counts))
            left.remove(first)
            gone.append(first)
        return gone

    def misplaced(self, judged: Sequence[Judged]) -> tuple[Judged, str] | None:
        """A replica that should stand elsewhere, with the reason; None when all are in place."""
        counts = self._counts(j.slot.node for j in judged)
        unmet = self._unmet(counts)
        for j in self.order_of_going(judged):
            if self._is_over(j, counts):
                return j, self._share(counts)
            if unmet and not self._is_base(j, counts):
                return j, f"{unmet[0]} has {self._of_base(unmet[0], counts)}"
        return None

    def _counts(self, nodes: Iterable[str]) -> _Counts:
        pools: dict[str, int] = {}
        domains: dict[str, int] = {}
        for node in nodes:
            pool = self._index.pool(self._case, node)
            pools[pool] = pools.get(pool, 0) + 1
            domain = self._index.domain(self._case, node)
            domains[domain] = domains.get(domain, 0) + 1
        return _Counts(pools, domains, sum(pools.get(name, 0) for name in self._spot))

    def _unmet(self, counts: _Counts) -> list[str]:
        """Open pools that lack replicas of their base, in the order of the service's pools."""
        closed = {name for name, _, _ in self._spot_closed(counts)}
        return [
            name
            for name, base in self._limits.bases
            if counts.pools.get(name, 0) < base and name not in closed
        ]

    def _base_closed(
        self, names: Sequence[str], counts: _Counts
    ) -> tuple[tuple[str, str, str], ...]:
        reason = f"{names[0]} has {self._of_base(names[0], counts)}, which comes first"
        return tuple(
            (pool.name, "pool-base", reason)
            for pool in self._case.ask.pools
            if pool.name not in names
        )

    def _spot_closed(self, counts: _Counts) -> tuple[tuple[str, str, str], ...]:
        if counts.spot < self._limits.most_on_spot(self._want):
            return ()
        reason = self._share(counts)
        return tuple((name, "spot-share", reason) for name in self._spot)

    def _with_domains(self, pools: tuple[tuple[str, str, str], ...], counts: _Counts) -> Closed:
        """The same, and the domains where one more replica would be one too many next to the
        emptiest domain of the open pools.
        """
        if not self._limits.spread_key:
            return Closed(pools)
        shut = {name for name, _, _ in pools}
        by_pool = self._index.domains(self._case)
        domains = {name for pool in sorted(by_pool) if pool not in shut for name in by_pool[pool]}
        low = min((counts.domains.get(name, 0) for name in sorted(domains)), default=0)
        most = low + self._limits.max_skew
        crowded = tuple(
            (name, f"{counts.domains[name]} replicas in {name}, {low} elsewhere: maxSkew")
            for name in sorted(domains)
            if counts.domains.get(name, 0) >= most
        )
        return Closed(pools, self._limits.spread_key, crowded) if crowded else Closed(pools)

    def _share(self, counts: _Counts) -> str:
        most = self._limits.spot_max_percent
        return f"{counts.spot} of {self._want} replicas on spot, at most {most} %"

    def _of_base(self, pool: str, counts: _Counts) -> str:
        return f"{counts.pools.get(pool, 0)} of its base of {self._limits.base(pool)}"

    def _is_base(self, judged: Judged, counts: _Counts) -> bool:
        """Whether its pool would lack it."""
        pool = self._index.pool(self._case, judged.slot.node)
        return counts.pools.get(pool, 0) <= self._limits.base(pool)

    def _is_over(self, judged: Judged, counts: _Counts) -> bool:
        """Whether it stands on spot while too many do."""
        over = counts.spot > self._limits.most_on_spot(self._want)
        return over and self._index.pool(self._case, judged.slot.node) in self._spot

    def _keeps(self, judged: Judged, counts: _Counts) -> tuple[bool, bool, int]:
        """The less, the sooner it goes; `victims` settles what is equal."""
        domain = self._index.domain(self._case, judged.slot.node)
        return (
            not self._is_over(judged, counts),
            self._is_base(judged, counts),
            -counts.domains.get(domain, 0) if self._limits.spread_key else 0,
        )


def out_of_place(
    limits: Limits, good: Sequence[Judged], wish: Wish, want: int, *, calm: bool
) -> list[Judged]:
    """Those of the good replicas that stand against the limits and can go elsewhere, as MOVING.

    One at a time, and only where its successor has a place or is under way already, so that
    nobody waits for what may never come. None begins unless all is `calm`.
    """
    live = [j for j in good if j.slot.live]
    many = len(live) - want
    if many > 0:
        order = limits.order_of_going(live)
        under_way = any(not j.ready for j in order[many:])
        return [_moved(j, SUCCEEDED) for j in order[:many] if j.ready and under_way]
    whole = calm and not many and all(j.ready for j in good)
    found = limits.misplaced(live) if whole else None
    if found is None or limits.pick(wish, floor=False) is None:
        return []
    return [_moved(*found)]


def _moved(judged: Judged, reason: str) -> Judged:
    return replace(judged, fate=Fate.MOVING, reason=reason)
