"""Mode Scheduler: one Deployment, and only its count is decided. Called by decide.

Where its pods run is the scheduler's business and its updates are the Deployment
controller's. While Deployments of mode Nodes still stand they are moved over as an update
would be: the one Deployment grows by the budget, the others leave as its pods become Ready,
and never below the floor. Its pods may have to wait for GPUs: nothing is booked for them.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.decide.bounds import FREE, Bounds
from stoker.decide.case import Case
from stoker.decide.coldness import is_cache_aware
from stoker.decide.fate import Fate, Judged, is_home, judge, victims
from stoker.decide.holds import Shortfall, departing_nodes, held_for_capacity
from stoker.decide.moves import Moves, Standings, earliest, write_moves
from stoker.decide.numbers import ready_count
from stoker.decide.place import Index
from stoker.decide.transition import Step, failure_hold
from stoker.decide.work import Work
from stoker.model.plan import Attempt, Hold, Placement
from stoker.model.snapshot import LivePlacement
from stoker.objects.names import workload_name

__all__ = ["count_only"]


def count_only(case: Case, index: Index, want: int, now_ms: int, bounds: Bounds = FREE) -> Step:
    """One step towards `want` replicas in the one Deployment; its updates are not ours.

    While an earlier Deployment of that name is being deleted none is written.
    """
    judged = tuple(_at_home(case, j) for j in judge(case, index))
    others = [live for live in case.state.placements if not is_home(case, live)]
    homes = [live for live in case.state.placements if is_home(case, live)]
    work = Work(case, index, want, case.spec.floor(want), now_ms, placeless=True, bounds=bounds)
    work.sort_out(judged)
    count, holds = (_crossing(work), _holds(work)) if others else (want, ())
    going = tuple(j for j in (*work.going, *work.leaving) if not is_home(case, j.slot.placement))
    movers = tuple(j for j in judged if not is_home(case, j.slot.placement))
    moves = write_moves(case, index, others, Standings(movers, going, (), want), now_ms)
    return Step(
        moves=_with_home(case, homes, count, moves),
        judged=judged,
        holds=holds,
        wake_at_ms=earliest(work.wake_at_ms, moves.wake_at_ms),
        moving=work.moving_now() if others else 0,
        coldest=_coldest(case, homes, judged, count),
    )


def _coldest(
    case: Case, homes: list[LivePlacement], judged: tuple[Judged, ...], count: int
) -> tuple[str, ...]:
    """Who should leave with the lower count, where caches have a say: a ReplicaSet looks at pods
    that serve by their mark, while a LeaderWorkerSet removes its last groups whatever they hold.
    """
    surplus = sum(live.replicas for live in homes) - count
    if surplus <= 0 or case.spec.nodes > 1 or not is_cache_aware(case.spec.scaling):
        return ()
    pods = (j.slot.pod for j in victims(j for j in judged if is_home(case, j.slot.placement)))
    return tuple(pod.name for pod in pods if pod is not None)[:surplus]


def _at_home(case: Case, judged: Judged) -> Judged:
    """Replicas of the one Deployment stay whatever their node or rev: not ours to move."""
    if not is_home(case, judged.slot.placement) or judged.fate is Fate.LEAVING:
        return judged
    return replace(judged, fate=Fate.GOOD, reason="", outdated=False)


def _crossing(work: Work) -> int:
    """Take the steps of a transition; gives the count of the one Deployment now."""
    work.start_missing()
    work.leave_forced()
    work.give_up_useless()
    work.retire_surplus()
    work.surge()
    _give_way(work)
    return min(work.want, len(work.good) + work.added)


def _give_way(work: Work) -> None:
    """Where pods of the one Deployment find no room, let an old replica leave first."""
    homeless = [j for j in work.good if j.slot.pod is not None and not j.slot.bound]
    serving = [j for j in victims(work.moving) if j.ready]
    if not homeless or not serving or work.going or departing_nodes(work.case, work.index):
        return
    if ready_count(work.good) + len(serving) - 1 >= work.floor:
        work.going.append(serving[0])
    else:
        work.waiting = len(serving)


def _holds(work: Work) -> tuple[Hold, ...]:
    failing = failure_hold(work)
    found = () if failing is None else (failing,)
    if not work.waiting:
        return found
    shortfall = Shortfall(0, work.waiting, work.want, work.floor)
    return (*found, held_for_capacity(work.case, shortfall, (), ()))


def _with_home(case: Case, homes: list[LivePlacement], count: int, moves: Moves) -> Moves:
    name = case.spec.adopt or workload_name(case.ref.name, "", "", grouped=case.spec.nodes > 1)
    if any(live.terminating for live in homes):
        return replace(moves, untouched=tuple(sorted((name, *moves.untouched))))
    placement = Placement(
        name=name,
        rev=case.rev,
        node="",
        node_uid="",
        pool=",".join(pool.name for pool in case.ask.pools),
        count=count,
        exists=any(live.rev == case.rev for live in homes),
        size=case.spec.nodes,
    )
    live = sum(live.replicas for live in homes)
    verdict = f"count {live} kept" if live == count else f"count {live} -> {count}"
    return replace(
        moves,
        placements=(placement, *moves.placements),
        attempts=(Attempt("", placement.pool, verdict), *moves.attempts),
    )
