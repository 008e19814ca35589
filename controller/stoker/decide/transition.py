"""From the replicas that stand to those that are wanted: what to start and to retire now.

Mode Nodes, one service, one pass; decide calls it. Progress is read from the snapshot, so
the same facts always give the same step. Additions come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stoker.decide.case import Case
from stoker.decide.fate import Judged, judge
from stoker.decide.holds import (
    Shortfall,
    departing_nodes,
    held_for_capacity,
    held_for_failures,
)
from stoker.decide.moves import Moves, Standings, earliest, write_moves
from stoker.decide.place import Index
from stoker.decide.slots import Standing
from stoker.decide.tally import Tally
from stoker.decide.work import Work, ready_count
from stoker.model.plan import Hold

__all__ = ["Step", "failure_hold", "transition"]


@dataclass(frozen=True, slots=True)
class Step:
    """What the pass does for the service. `tallies` say who was turned away, nearest first."""

    moves: Moves
    judged: tuple[Judged, ...]
    holds: tuple[Hold, ...] = ()
    tallies: tuple[Tally, ...] = ()
    wake_at_ms: int | None = None


def transition(case: Case, index: Index, want: int, now_ms: int) -> Step:
    """One step towards `want` replicas of the current rev, each on a node that may hold it."""
    work = Work(case, index, want, case.spec.floor(want), now_ms)
    work.sort_out(judge(case, index))
    work.start_missing()
    work.leave_forced()
    work.give_up_useless()
    work.retire_surplus()
    work.surge()
    work.drain_first()
    standings = Standings(work.judged, (*work.going, *work.leaving), tuple(work.starts), want)
    moves = write_moves(case, index, case.state.placements, standings, now_ms)
    tallies = _tallies(work)
    return Step(
        moves=moves,
        judged=work.judged,
        holds=tuple(_holds(work, tallies)),
        tallies=tallies,
        wake_at_ms=earliest(work.wake_at_ms, moves.wake_at_ms, _next_start_ms(work)),
    )


def _next_start_ms(work: Work) -> int | None:
    """When a start that is wanted now may be possible; None where no instant is known."""
    bars = work.case.bars
    waits_ms = None
    if work.blamed:
        waits_ms = bars.proven_at_ms
    elif work.held_back and work.now_ms < bars.wait_until_ms:
        waits_ms = bars.wait_until_ms
    return earliest(waits_ms, bars.opens_ms() if work.missing or work.waiting else None)


def failure_hold(work: Work) -> Hold | None:
    """What failed starts keep from happening; None where they don't."""
    stuck = [j for j in work.good if j.standing is Standing.STUCK]
    stopped = work.blamed and (work.filled() < work.want or bool(work.moving))
    untried = work.case.bars.suspect and bool(stuck) and bool(work.missing or work.waiting)
    if not (stopped or untried or (work.held_back and not work.blamed)):
        return None
    old = [j for j in (*work.moving, *work.forced) if j.outdated]
    return held_for_failures(work.case, work.want, stuck, ready_count(old), work.now_ms)


def _tallies(work: Work) -> tuple[Tally, ...]:
    """Who was turned away; where no place was found, looked at node by node."""
    if not work.missing and not work.waiting:
        return work.tallies
    return work.index.rejections(work.case, work.barred, thorough=True)


def _holds(work: Work, tallies: tuple[Tally, ...]) -> Iterator[Hold]:
    failing = failure_hold(work)
    if failing is not None:
        yield failing
    if (work.missing or work.waiting) and not work.making_room:
        shortfall = Shortfall(work.missing, work.waiting, work.want, work.floor)
        departing = departing_nodes(work.case, work.index)
        yield held_for_capacity(work.case, shortfall, tallies, departing)
