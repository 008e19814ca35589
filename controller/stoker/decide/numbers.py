"""The numbers behind one transition: what stands, what goes, what starts, and what that leaves.

Base of `work.Work`, whose steps change them. Pure; starts and goings only ever grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stoker.decide.bounds import FREE, Bounds
from stoker.decide.case import Case
from stoker.decide.disruption import voluntary_departures
from stoker.decide.fate import Fate, Judged
from stoker.decide.limits import Limits
from stoker.decide.place import Choice, Index
from stoker.decide.reclaim import Claim, Reclaims
from stoker.decide.slots import Standing
from stoker.decide.tally import Tally
from stoker.decide.updates import NO_TRIAL, Trial

__all__ = ["Numbers", "live_count", "ready_count"]


@dataclass(slots=True)
class Numbers:
    """The running numbers of one transition; starts and goings only ever grow.

    `placeless` starts take no node (mode Scheduler).
    """

    case: Case
    index: Index
    want: int
    floor: int
    now_ms: int
    placeless: bool = False
    bounds: Bounds = FREE
    trial: Trial = NO_TRIAL
    good: list[Judged] = field(default_factory=list)
    moving: list[Judged] = field(default_factory=list)
    forced: list[Judged] = field(default_factory=list)
    leaving: list[Judged] = field(default_factory=list)
    barred: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    starts: list[Choice] = field(default_factory=list)
    added: int = 0
    """Placeless starts."""
    going: list[Judged] = field(default_factory=list)
    tallies: tuple[Tally, ...] = ()
    """Who was turned away, before anything was placed here."""
    missing: int = 0
    """Replicas without a place, after start_missing."""
    waiting: int = 0
    """Moves that found no free place, after surge."""
    making_room: bool = False
    """Something leaves so that a successor can start there in a later pass."""
    held_back: bool = False
    """Starts are wanted that earlier ones, which failed, do not allow now."""
    wake_at_ms: int | None = None
    limits: Limits = field(init=False)
    reclaims: Reclaims | None = None
    claims: list[Claim] = field(default_factory=list)
    """Room that others make for what found no place."""
    given: list[Judged] = field(default_factory=list)
    """Replicas that make room for a service of higher priority."""

    def __post_init__(self) -> None:
        cooling = tuple(hint.pool for hint in self.bounds.cooling)
        self.limits = Limits(self.case, self.index, self.want, cooling)

    @property
    def judged(self) -> tuple[Judged, ...]:
        """Every replica that stands."""
        given = (j for j in self.given if j.fate is not Fate.LEAVING)
        return (*self.good, *self.moving, *self.forced, *self.leaving, *given)

    @property
    def blamed(self) -> bool:
        """The rev itself is broken: nothing more is bought of it. Remembered by its failed starts,
        and where an older rev serves by the update that it blocked.
        """
        if self.case.bars.bad_rev is not None:
            return True
        old_serves = any(j.outdated and j.slot.live for j in (*self.moving, *self.forced))
        blocked = self.bounds.past.blocked_rev == self.case.rev
        return old_serves and blocked and not ready_count(self.good)

    def remaining(self, without: Judged | None = None) -> list[str]:
        """Nodes of replicas that count against the limits, each as often as it has one."""
        if not self.limits.any:
            return []
        staying = [j for j in self._staying((*self.good, *self.moving)) if j.slot.live]
        nodes = [j.slot.node for j in staying if j is not without]
        return [*nodes, *(choice.node.name for choice in self.starts)]

    def started(self) -> int:
        """Starts of this pass."""
        return len(self.starts) + self.added

    def filled(self) -> int:
        """Capacity bought that need not leave by force, starts of this pass included."""
        staying = self._staying((*self.good, *self.moving))
        return live_count(staying) + self.started()

    def moves_due(self) -> int:
        """Successors that may start now and are not there yet."""
        room = self.want - live_count(self._staying(self.good)) - self.started()
        return min(self.moves_allowed(), room)

    def moves_allowed(self) -> int:
        """Voluntary moves that may begin: none while an earlier one is under way. A replica that
        is stuck is no longer under way: it has earned a substitute.
        """
        unfinished = sum(1 for j in self._staying(self.good) if j.standing is Standing.WARMING)
        spent = unfinished + self.started()
        allowed = self._within_fleet(self._budget) - spent - self._voluntary_departures()
        if self.trial.most is None:
            return allowed
        new = live_count(self._staying(self.good)) + self.started()
        return min(allowed, self.trial.most - new)

    @property
    def _budget(self) -> int:
        """Voluntary moves at once; while an update is under way, those that update allows."""
        spec = self.case.spec
        if self.trial.rev and spec.update.max_concurrent is not None:
            return spec.update.max_concurrent
        return spec.max_concurrent_moves

    def homeless(self) -> list[Judged]:
        """Replicas of this rev that no node takes: they need room, not patience."""
        good = self._staying(self.good)
        return [j for j in good if j.standing is Standing.STUCK and not j.slot.bound]

    def _retirements_allowed(self) -> int:
        """Serving replicas that may leave now; all of them when none is wanted."""
        if self.want == 0:
            return len(self.good) + len(self.moving)
        movers = live_count(self.moving)
        budget = self._within_fleet(self._budget) if movers else self._budget
        return budget - self._voluntary_departures()

    def _within_fleet(self, budget: int) -> int:
        """As many of these moves as the fleet's budget leaves."""
        most = self.bounds.allowance.most
        return budget if most is None else min(budget, most)

    @property
    def waits_for_fleet(self) -> bool:
        """Whether a move would begin now, were it not for moves of other services."""
        movers = live_count(self._staying(self.moving))
        if not movers or self.blamed or not self.bounds.allowance.others or self.going:
            return False
        short = self._budget - self._within_fleet(self._budget)
        return self.moves_allowed() <= 0 < self.moves_allowed() + short

    def moving_now(self) -> int:
        """Replicas in motion after this pass, for the budget of the fleet."""
        if not self.moving:
            return self._voluntary_departures()
        new = sum(1 for j in self._staying(self.good) if j.standing is Standing.WARMING)
        staying = live_count(self._staying((*self.good, *self.moving)))
        beside = staying + self.started() - self.want
        begun = max(new + self.started(), min(beside, live_count(self._staying(self.moving))))
        return self._voluntary_departures() + max(begun, 0)

    def _voluntary_departures(self) -> int:
        """Replicas on their way out, until their pods are told to stop; and those chosen now."""
        leaving = voluntary_departures(self.case, self.judged)
        return leaving + sum(1 for j in self.going if j.ready and j.fate is not Fate.FORCED)

    def _staying(self, judged: Iterable[Judged]) -> list[Judged]:
        going = {j.key for j in self.going}
        return [j for j in judged if j.key not in going]


def ready_count(judged: Iterable[Judged]) -> int:
    """How many are Ready, with traffic."""
    return sum(1 for j in judged if j.ready)


def live_count(judged: Iterable[Judged]) -> int:
    """How many are Ready or on their way."""
    return sum(1 for j in judged if j.slot.live)
