"""From the replicas that stand to those that are wanted: what to start and to retire now.

Mode Nodes, one service, one pass; decide calls it. Progress is read from the snapshot, so
the same facts always give the same step. Additions come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stoker.decide.bounds import FREE, Bounds
from stoker.decide.case import Case
from stoker.decide.disruption import held_for_fleet
from stoker.decide.eligible import FIT_RULES
from stoker.decide.fate import Judged, judge
from stoker.decide.holds import (
    Shortfall,
    departing_nodes,
    held_by_giving,
    held_for_capacity,
    held_for_claims,
    held_for_failures,
    why_failed,
)
from stoker.decide.moves import Moves, Standings, earliest, write_moves
from stoker.decide.no_place import ask_for_moves, ask_for_nodes, take_room
from stoker.decide.numbers import live_count, ready_count
from stoker.decide.place import Index
from stoker.decide.reclaim import Reclaims
from stoker.decide.slots import Standing
from stoker.decide.tally import Tally
from stoker.decide.updates import NO_TRIAL, Trial, held_for_pause
from stoker.decide.work import Work
from stoker.model.plan import Attempt, Hold

__all__ = ["Step", "failure_hold", "transition"]

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
    trial: Trial = NO_TRIAL
    moving: int = 0
    """Replicas in motion after this step."""
    coldest: tuple[str, ...] = ()
    """Mode Scheduler: pods that the lower count should take, the coldest first."""
    failed: str = ""
    """Why the rev is to blame next to an older one that serves; empty when it is not."""


def transition(
    case: Case,
    index: Index,
    want: int,
    now_ms: int,
    bounds: Bounds = FREE,
    reclaims: Reclaims | None = None,
) -> Step:
    """One step towards `want` replicas of the current rev, each on a node that may hold it."""
    floor = case.spec.floor(want)
    work = Work(case, index, want, floor, now_ms, bounds=bounds, reclaims=reclaims)
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
    holds = tuple(_holds(work, tallies))
    failed = failure_message(work) if work.blamed and _old_serves(holds) else ""
    return Step(
        moves=moves,
        judged=work.judged,
        holds=holds,
        tallies=tallies,
        claims=tuple(claim.attempt for claim in work.claims),
        wake_at_ms=earliest(work.wake_at_ms, moves.wake_at_ms, _next_start_ms(work)),
        trial=work.trial,
        failed=failed,
        moving=work.moving_now(),
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
    past = work.bounds.past
    blocked = past.blocked_commit if past.blocked_rev == work.case.rev else ""
    why = failure_message(work)
    return held_for_failures(work.case, why, ready_count(old), work.now_ms, blocked=blocked)


def failure_message(work: Work) -> str:
    """What is wrong with the rev, or was when it was blocked."""
    stuck = [j for j in work.good if j.standing is Standing.STUCK and not j.lost]
    return why_failed(work.case, work.want, stuck) or work.bounds.past.blocked_why


def _old_serves(holds: tuple[Hold, ...]) -> bool:
    return any(hold.code == "UpdateFailed" for hold in holds)


def _tallies(work: Work) -> tuple[Tally, ...]:
    """Who was turned away; where no place was found, looked at node by node."""
    if not work.missing and not work.waiting:
        return work.tallies
    return work.rejections(thorough=True)


def _holds(work: Work, tallies: tuple[Tally, ...]) -> Iterator[Hold]:
    failing = failure_hold(work)
    if failing is not None:
        yield failing
    elif work.trial.ends_ms is not None and work.moving:
        old = [j for j in work.moving if j.outdated]
        yield held_for_pause(work.trial, ready_count(work.good), live_count(old))
    if work.waits_for_fleet:
        yield held_for_fleet(work.bounds.allowance)
    if work.claims:
        yield held_for_claims(work.claims, work.want)
    if work.given and work.filled() < work.want:
        yield held_by_giving(work.given, work.want)
    if (work.missing or work.waiting) and not work.making_room:
        shortfall = Shortfall(
            work.missing, work.waiting, work.want, work.floor, work.bounds.pool_waits
        )
        departing = departing_nodes(work.case, work.index)
        closed = work.limits.told(work.remaining())
        full = [tally.node for tally in tallies if tally.rule in FIT_RULES]
        hint = work.reclaims.hint(work.case, full[:HINTS]) if work.reclaims is not None else ""
        hold = held_for_capacity(work.case, shortfall, tallies, departing, closed)
        yield replace(hold, remedy=f"{hold.remedy}; or {hint}") if hint else hold
