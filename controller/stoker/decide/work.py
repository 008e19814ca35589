"""The seven moves of one transition, on its numbers.

Used by transition and scheduler_mode. A serving replica goes only when enough others serve;
every voluntary move counts against maxConcurrentMoves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.decide.fate import Fate, Judged, latest_stop_ms, victims
from stoker.decide.groups import anchors_of, rejections, would_fit_again
from stoker.decide.holds import departing_nodes
from stoker.decide.limits import Wish, out_of_place
from stoker.decide.moves import earliest
from stoker.decide.numbers import Numbers, live_count, ready_count
from stoker.decide.order import start_rule
from stoker.decide.slots import Standing, is_occupied
from stoker.decide.tally import Tally
from stoker.decide.updates import trial_of

__all__ = ["Work"]


@dataclass(slots=True)
class Work(Numbers):
    """The steps of one transition: its methods without underscore, in this order."""

    # 1. What stands.
    def sort_out(self, judged: tuple[Judged, ...]) -> None:
        """Fill the lists and what follows from them alone."""
        lists = {
            Fate.GOOD: self.good,
            Fate.MOVING: self.moving,
            Fate.FORCED: self.forced,
            Fate.LEAVING: self.leaving,
        }
        taken = self.reclaims.taken(self.case.ref) if self.reclaims is not None else {}
        for j in judged:
            if j.key in taken and j.fate is not Fate.LEAVING:
                self.going.append(replace(j, fate=Fate.FORCED, reason=taken[j.key]))
                self.given.append(self.going[-1])
            elif j.key in taken:
                lists[j.fate].append(replace(j, reason=taken[j.key]))
                self.given.append(lists[j.fate][-1])
            else:
                lists[j.fate].append(j)
            self.own.update(j.slot.nodes)
        self._bar_nodes()
        self.trial = trial_of(self.case, judged, self.bounds.past, self.now_ms)
        if self.trial.ends_ms is not None:
            self.wake_at_ms = earliest(self.wake_at_ms, self.trial.ends_ms)
        if self.limits.any:
            self._put_in_place()

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
            limit = min(short, max(urgent, self.moves_allowed()))
        for number in range(self._let(limit)):
            if not self._start(urgent=number < urgent):
                self.missing = limit - number
                break

    # 3. Nodes that go away: budgets do not count here.
    def leave_forced(self) -> None:
        """Let go of replicas on such nodes once the rest carries the load, or time is up.

        The rest is the wanted count while a successor comes in time, else the floor: then every
        second that admission goes on is one less for the answers under way.
        """
        serving = ready_count(self.good) + ready_count(self.moving) + ready_count(self.forced)
        ready_ms = self._successor_ms() if self.forced else None
        for j in victims(self.forced):
            latest_ms = latest_stop_ms(self.case, j.notice)
            late = latest_ms is not None and self.now_ms >= latest_ms
            in_time = self.placeless or (ready_ms is not None and ready_ms <= (latest_ms or 0))
            alone = latest_ms is not None and not in_time
            enough = self.floor if alone and self.floor else self.want
            if j.ready and (late or serving - 1 >= enough):
                serving -= 1
                self.going.append(j)
            elif not j.ready and (late or j.unasked or self.filled() >= self.want):
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
                if not j.ready and surplus > 0 and not self.bounds.calm:
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
        if self.bounds.calm and self.want:
            return
        serving = ready_count(self.good) + ready_count(self.moving)
        surplus = min(serving - self.want, self._retirements_allowed())
        good = self.limits.order_of_going(j for j in self.good if j.ready)
        ready = [*(j for j in victims(self.moving) if j.ready), *good]
        self.going.extend(ready[: max(0, surplus)])

    # 6. Successors for replicas that must move, onto GPUs known to be free.
    def surge(self) -> None:
        """Start as many as the budget allows once nothing else is missing."""
        movers = live_count(self._staying(self.moving))
        complete = self.filled() >= self.want and not self.missing and not self.claims
        if not complete:
            return
        if self.homeless():
            self.waiting = movers
            return
        for _ in range(self._let(min(self.moves_due(), movers))):
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
        if self.moves_allowed() <= 0 or departing_nodes(self.case, self.index):
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
                if self.limits.only_spread:
                    self._start(urgent=False)  # a GPU may be free, only the spread was in the way
                return

    def _successor_ms(self) -> int | None:
        """When the first start under way is expected to be Ready, at P90; one that is overdue is
        not expected any more. None: no start.
        """
        ends = [self.now_ms + choice.readiness.p90_ms for choice in self.starts]
        for j in self.good:
            if j.standing is Standing.WARMING and self.index.node(j.slot.node) is not None:
                began_ms = j.slot.pod.created_ms if j.slot.pod is not None else self.now_ms
                length_ms = self.index.readiness(self.case, j.slot.node).p90_ms
                ends.append(began_ms + length_ms)
        return min((end for end in ends if end >= self.now_ms), default=None)

    def _start(self, *, urgent: bool) -> bool:
        if self.placeless:
            self.added += 1
            return True
        if not self.tallies:
            self.tallies = self.rejections(thorough=False)
        anchors = anchors_of(self.case, self.starts)
        choice = self.limits.pick(
            Wish(self.remaining(), self.own, self.barred, urgent=urgent, anchors=anchors),
            floor=self.filled() < self.floor,
        )
        if choice is None:
            return False
        rule = start_rule(self.case.spec.placement_order, urgent=urgent)
        self.starts.append(replace(choice, rule=rule))
        for name in choice.nodes:
            self.index.book(name, self.case.need)
            self.index.begin(self.case, name)
            self.own.add(name)
            if name in self.case.bars.on_trial:
                self.barred[name] = "quarantined"
        return True

    def rejections(self, *, thorough: bool) -> tuple[Tally, ...]:
        """Who is turned away from one more start, within all limits."""
        closed = self.limits.told(self.remaining())
        asked = (self.index, self.case, self.barred)
        return rejections(*asked, thorough=thorough, closed=closed)

    def _put_in_place(self) -> None:
        """Let replicas move that stand against the limits."""
        anchors = anchors_of(self.case, ())
        wish = Wish(self.remaining(), self.own, self.barred, anchors=anchors)
        calm = len(self.good) == len(self.judged)
        moving = out_of_place(self.limits, self.good, wish, self.want, calm=calm)
        self.moving.extend(moving)
        keys = {j.key for j in moving}
        self.good = [j for j in self.good if j.key not in keys]

    def _makes_room(self, j: Judged) -> bool:
        """Whether a successor would fit where this replica is, were it gone."""
        shut = any(name in self.barred for name in j.slot.nodes)
        return not shut and self._frees_a_place(j)

    def _frees_a_place(self, j: Judged) -> bool:
        if not self.limits.admits(j.slot.node, self.remaining(without=j)):
            return False
        return would_fit_again(self.index, self.case, j.slot)

    def _bar_nodes(self) -> None:
        """Nodes where starts failed, whose Deployment of this rev is leaving, or where this rev

        is stuck.
        """
        for placement in self.case.state.placements:
            single = placement.size == 1
            if single and placement.rev == self.case.rev and is_occupied(placement):
                self.barred[placement.node] = "leaving-here"
        for j in self.good:
            if j.standing is Standing.STUCK:
                failed = j.slot.pod.blamed_node if j.slot.pod is not None else ""
                self.barred[failed or j.slot.node] = "failed-here"
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
