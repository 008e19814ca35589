"""The numbers behind one transition, and the seven moves that change them.

Used by transition and scheduler_mode. A serving replica goes only when enough others serve;
every voluntary move counts against maxConcurrentMoves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stoker.decide.case import Case
from stoker.decide.fate import Fate, Judged, latest_stop_ms, victims
from stoker.decide.holds import departing_nodes
from stoker.decide.moves import earliest
from stoker.decide.place import Choice, Index
from stoker.decide.slots import Standing, departing_pods, is_occupied
from stoker.decide.tally import Tally
from stoker.model.snapshot import ReplicaPhase

__all__ = ["Work", "live_count", "ready_count"]


@dataclass(slots=True)
class Work:
    """The running numbers of one transition; starts and goings only ever grow.

    The methods without underscore are its steps, in this order. `placeless` starts take no
    node (mode Scheduler).
    """

    case: Case
    index: Index
    want: int
    floor: int
    now_ms: int
    placeless: bool = False
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

    # 1. What stands.
    def sort_out(self, judged: tuple[Judged, ...]) -> None:
        """Fill the lists and what follows from them alone."""
        lists = {
            Fate.GOOD: self.good,
            Fate.MOVING: self.moving,
            Fate.FORCED: self.forced,
            Fate.LEAVING: self.leaving,
        }
        for j in judged:
            lists[j.fate].append(j)
            self.own.add(j.slot.node)
        self._bar_nodes()

    @property
    def blamed(self) -> bool:
        """The rev itself is broken: nothing more is bought of it."""
        return self.case.bars.bad_rev is not None

    @property
    def judged(self) -> tuple[Judged, ...]:
        """Every replica that stands."""
        return (*self.good, *self.moving, *self.forced, *self.leaving)

    # 2. Additions first: replicas that nothing standing stands for.
    def start_missing(self) -> None:
        """Start what is missing at once; while an older rev stands, no more than the budget
        allows, except to restore the floor or to answer a notice. What failed earlier comes
        before all of that.
        """
        short = max(0, self.want - self.filled())
        urgent = min(short, max(self.floor - self.filled(), len(self.forced)))
        limit = short
        if any(j.outdated for j in (*self.moving, *self.forced)):
            limit = min(short, max(urgent, self._moves_allowed()))
        for number in range(self._let(limit)):
            if not self._start(urgent=number < urgent):
                self.missing = limit - number
                break

    # 3. Nodes that go away: budgets do not count here.
    def leave_forced(self) -> None:
        """Let go of replicas on such nodes once the rest carries the load, or time is up."""
        serving = ready_count(self.good) + ready_count(self.moving) + ready_count(self.forced)
        for j in victims(self.forced):
            latest_ms = latest_stop_ms(self.case, j.notice)
            late = latest_ms is not None and self.now_ms >= latest_ms
            if j.ready and (late or serving - 1 >= self.want):
                serving -= 1
                self.going.append(j)
            elif not j.ready and (late or self.filled() >= self.want):
                self.going.append(j)
            elif latest_ms is not None and not late:
                self.wake_at_ms = earliest(self.wake_at_ms, latest_ms)

    # 4. What serves nobody and is not needed goes without a drain and beyond the budget.
    def give_up_useless(self) -> None:
        """Stuck and warming replicas that something better stands for."""
        filled = self.filled()
        further = ready_count(self.good) + live_count(self.moving)
        for j in victims(self.moving):
            if j.standing is Standing.STUCK:
                needed = bool(self.missing) and self._makes_room(j)
                if needed or j.slot.refused or filled >= self.want:
                    self.making_room = self.making_room or needed
                    self.going.append(j)
            elif not j.ready and further > self.want:
                # Successors that are on their way do not count: this one began earlier.
                further -= 1
                self.going.append(j)
        surplus = live_count(self.good) + self.started() - self.want
        replaced = self.started()
        for j in victims(self.good):
            if j.standing is not Standing.STUCK:
                if not j.ready and surplus > 0:
                    surplus -= 1
                    self.going.append(j)
            elif j.slot.refused:
                self.going.append(j)
            elif j.slot.bound:
                if ready_count(self.good) >= self.want:
                    self.going.append(j)
            elif replaced > 0 or surplus >= 0:
                # No node takes the pod: it holds nothing, and its substitute is under way.
                replaced -= 1
                self.going.append(j)

    # 5. Serving replicas beyond the wanted count: the old ones first.
    def retire_surplus(self) -> None:
        """Retire under the budget, never below the wanted count of serving replicas."""
        serving = ready_count(self.good) + ready_count(self.moving)
        surplus = min(serving - self.want, self._retirements_allowed())
        ready = [j for j in (*victims(self.moving), *victims(self.good)) if j.ready]
        self.going.extend(ready[: max(0, surplus)])

    # 6. Successors for replicas that must move, onto GPUs known to be free.
    def surge(self) -> None:
        """Start as many as the budget allows once nothing else is missing."""
        movers = live_count(self._staying(self.moving))
        complete = self.filled() >= self.want and not self.missing
        if not complete:
            return
        if self._homeless():
            self.waiting = movers
            return
        room = self.want - live_count(self._staying(self.good)) - self.started()
        for _ in range(self._let(min(self._moves_allowed(), room, movers))):
            if not self._start(urgent=False):
                self.waiting = movers
                return

    # 7. With no GPU free: one leaves first, where the service survives it.
    def drain_first(self) -> None:
        """Let one old replica go when that makes the place for its successor: never for a rev

        of which nothing but failed starts is known.
        """
        if not (self.missing or self.waiting) or self.blamed or self._is_suspect():
            return
        if self._moves_allowed() <= 0 or departing_nodes(self.case, self.index):
            return
        if any(self._frees_a_place(j) for j in self.going):
            return
        staying = self._staying(self.moving)
        serving = ready_count(self._staying(self.good)) + ready_count(staying)
        for j in victims(staying):
            left = serving - 1 if j.ready else serving
            if j.outdated and left >= self.floor and self._makes_room(j):
                self.going.append(j)
                self.making_room = True
                return

    def _start(self, *, urgent: bool) -> bool:
        if self.placeless:
            self.added += 1
            return True
        if not self.tallies:
            self.tallies = self.index.rejections(self.case, self.barred, thorough=False)
        choice = self.index.pick(self.case, urgent=urgent, own=self.own, barred=self.barred)
        if choice is None:
            return False
        self.index.book(choice.node.name, self.case.need)
        self.index.begin(self.case, choice.node.name)
        self.own.add(choice.node.name)
        self.starts.append(choice)
        if choice.node.name in self.case.bars.on_trial:
            self.barred[choice.node.name] = "quarantined"
        return True

    def started(self) -> int:
        """Starts of this pass."""
        return len(self.starts) + self.added

    def filled(self) -> int:
        """Capacity bought that need not leave by force, starts of this pass included."""
        staying = self._staying((*self.good, *self.moving))
        return live_count(staying) + self.started()

    def _moves_allowed(self) -> int:
        """Voluntary moves that may begin: none while an earlier one is under way. A replica that

        is stuck is no longer under way: it has earned a substitute.
        """
        unfinished = sum(1 for j in self._staying(self.good) if j.standing is Standing.WARMING)
        spent = unfinished + self.started()
        return self.case.spec.max_concurrent_moves - spent - self._voluntary_departures()

    def _homeless(self) -> list[Judged]:
        """Replicas of this rev that no node takes: they need room, not patience."""
        good = self._staying(self.good)
        return [j for j in good if j.standing is Standing.STUCK and not j.slot.bound]

    def _retirements_allowed(self) -> int:
        """Serving replicas that may leave now; all of them when none is wanted."""
        if self.want == 0:
            return len(self.good) + len(self.moving)
        return self.case.spec.max_concurrent_moves - self._voluntary_departures()

    def _voluntary_departures(self) -> int:
        """Replicas on their way out, until their pods are told to stop; and those chosen now."""
        noticed = {j.slot.node for j in self.judged if j.notice is not None}
        leaving = sum(
            1
            for placement in self.case.state.placements
            for pod in departing_pods(placement)
            if pod.phase is not ReplicaPhase.TERMINATING and pod.node not in noticed
        )
        return leaving + sum(1 for j in self.going if j.ready and j.fate is not Fate.FORCED)

    def _staying(self, judged: Iterable[Judged]) -> list[Judged]:
        going = {j.key for j in self.going}
        return [j for j in judged if j.key not in going]

    def _makes_room(self, j: Judged) -> bool:
        """Whether a successor would fit where this replica is, were it gone."""
        return j.slot.node not in self.barred and self._frees_a_place(j)

    def _frees_a_place(self, j: Judged) -> bool:
        freed = j.slot.placement.requests or self.case.need.requests
        return self.index.would_fit(self.case, j.slot.node, freed)

    def _bar_nodes(self) -> None:
        """Nodes where starts failed, whose Deployment of this rev is leaving, or where this rev

        is stuck.
        """
        for placement in self.case.state.placements:
            if placement.rev == self.case.rev and is_occupied(placement):
                self.barred[placement.node] = "leaving-here"
        for j in self.good:
            if j.standing is Standing.STUCK:
                self.barred[j.slot.node] = "failed-here"
        self.barred |= {bar.node: "quarantined" for bar in self.case.bars.bars}

    def _let(self, wanted: int) -> int:
        """How many of the wanted starts failed ones allow: none of a blamed rev, none before the
        wait is over, one at a time of a rev that may be to blame.
        """
        if wanted <= 0:
            return 0
        bars = self.case.bars
        allowed = wanted
        if self.blamed or self.now_ms < bars.wait_until_ms:
            allowed = 0
        elif bars.suspect:
            allowed = 0 if self._is_tried() else 1
        self.held_back = self.held_back or allowed < wanted
        return min(wanted, allowed)

    def _is_tried(self) -> bool:
        """Whether a start made after the failed ones is under way to show what is to blame."""
        made_ms = self.case.bars.suspect_made_ms
        warming = (j for j in self.good if j.standing is Standing.WARMING)
        return bool(self.started()) or any(j.slot.created_ms > made_ms for j in warming)

    def _is_suspect(self) -> bool:
        """Whether a start of the rev failed, and none has shown since that it can run."""
        return self.case.bars.suspect and not ready_count(self.good)


def ready_count(judged: Iterable[Judged]) -> int:
    """How many are Ready, with traffic."""
    return sum(1 for j in judged if j.ready)


def live_count(judged: Iterable[Judged]) -> int:
    """How many are Ready or on their way."""
    return sum(1 for j in judged if j.slot.live)
