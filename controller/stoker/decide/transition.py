"""From the replicas that stand to those that are wanted: what to start and to retire now.

Mode Nodes, one service, one pass; decide calls it. Progress is read from the snapshot, so
the same facts always give the same step. Additions come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stoker.decide.case import Case
from stoker.decide.eligible import FIT_RULES
from stoker.decide.fate import Judged, judge
from stoker.decide.holds import (
    Shortfall,
    departing_nodes,
    held_by_giving,
    held_for_capacity,
    held_for_claims,
    held_for_stuck_rev,
)
from stoker.decide.moves import Moves, Standings, earliest, write_moves
from stoker.decide.no_place import ask_for_moves, ask_for_nodes, take_room
from stoker.decide.place import Index
from stoker.decide.reclaim import Reclaims
from stoker.decide.slots import Standing
from stoker.decide.tally import Tally
from stoker.decide.work import Work, ready_count
from stoker.model.history import PoolWait
from stoker.model.plan import Attempt, Hold

__all__ = ["Step", "transition"]

HINTS = 3
"""Nodes that are looked at for what another priority would give."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the pass does for the service. `tallies` say who was turned away, nearest first."""

    moves: Moves
    judged: tuple[Judged, ...]
    holds: tuple[Hold, ...] = ()
    tallies: tuple[Tally, ...] = ()
    claims: tuple[Attempt, ...] = ()
    """Nodes on which others make room for what found no place."""
    wake_at_ms: int | None = None


def transition(
    case: Case,
    index: Index,
    want: int,
    now_ms: int,
    reclaims: Reclaims | None = None,
    pool_waits: tuple[PoolWait, ...] = (),
) -> Step:
    """One step towards `want` replicas of the current rev, each on a node that may hold it."""
    work = Work(case, index, want, case.spec.floor(want), now_ms, reclaims=reclaims)
    work.pool_waits = pool_waits
    work.sort_out(judge(case, index))
    work.start_missing()
    take_room(work)
    ask_for_nodes(work)
    work.leave_forced()
    work.give_up_useless()
    work.retire_surplus()
    work.surge()
    work.drain_first()
    ask_for_moves(work)
    standings = Standings(work.judged, (*work.going, *work.leaving), tuple(work.starts), want)
    moves = write_moves(case, index, case.state.placements, standings, now_ms)
    tallies = _tallies(work)
    return Step(
        moves=moves,
        judged=work.judged,
        holds=tuple(_holds(work, tallies)),
        tallies=tallies,
        claims=tuple(claim.attempt for claim in work.claims),
        wake_at_ms=earliest(work.wake_at_ms, moves.wake_at_ms),
    )


def _tallies(work: Work) -> tuple[Tally, ...]:
    """Who was turned away; where no place was found, looked at node by node."""
    if not work.missing and not work.waiting:
        return work.tallies
    return work.rejections(thorough=True)


def _holds(work: Work, tallies: tuple[Tally, ...]) -> Iterator[Hold]:
    if work.blamed and (work.filled() < work.want or work.moving):
        stuck = [j for j in work.good if j.standing is Standing.STUCK]
        old = [j for j in (*work.moving, *work.forced) if j.outdated]
        yield held_for_stuck_rev(work.case, work.want, stuck, ready_count(old))
    if work.claims:
        yield held_for_claims(work.claims, work.want)
    if work.given and work.filled() < work.want:
        yield held_by_giving(work.given, work.want)
    if (work.missing or work.waiting) and not work.making_room:
        shortfall = Shortfall(work.missing, work.waiting, work.want, work.floor, work.pool_waits)
        departing = departing_nodes(work.case, work.index)
        closed = work.limits.told(work.remaining())
        full = [tally.node for tally in tallies if tally.rule in FIT_RULES]
        hint = work.reclaims.hint(work.case, full[:HINTS]) if work.reclaims is not None else ""
        hold = held_for_capacity(work.case, shortfall, tallies, departing, closed)
        yield replace(hold, remedy=f"{hold.remedy}; or {hint}") if hint else hold
