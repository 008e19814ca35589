"""What stands after this pass, Deployment by Deployment. The last step of transition.

In: the Deployments of one service, the replicas chosen to go, the starts chosen. Out:
placements to write, retirements with their next step, and what is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stoker.decide.case import Case
from stoker.decide.fate import Fate, Judged, is_home, victims
from stoker.decide.place import Choice, Index
from stoker.decide.retire import Departure, Leave, retire
from stoker.decide.slots import Standing
from stoker.model.moves import OnNotice
from stoker.model.plan import Attempt, Placement, Retirement
from stoker.model.snapshot import LivePlacement
from stoker.model.workload import nodes_told
from stoker.objects.names import pool_of_place, workload_name

__all__ = ["Moves", "Standings", "earliest", "write_moves"]


@dataclass(frozen=True, slots=True)
class Standings:
    """The replicas of one service: all that stand, those chosen to go with the reason, the

    places chosen for new ones, and how many are wanted.
    """

    judged: tuple[Judged, ...]
    going: tuple[Judged, ...]
    starts: tuple[Choice, ...]
    want: int


@dataclass(frozen=True, slots=True)
class Moves:
    """The parts of a ServiceDecision that a transition fills, sorted as they are there."""

    placements: tuple[Placement, ...] = ()
    retirements: tuple[Retirement, ...] = ()
    untouched: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    wake_at_ms: int | None = None


def earliest(*instants: int | None) -> int | None:
    """The first of those that are not None; None when all are."""
    return min((instant for instant in instants if instant is not None), default=None)


def write_moves(
    case: Case,
    index: Index,
    lives: Iterable[LivePlacement],
    standings: Standings,
    now_ms: int,
) -> Moves:
    """Put the choices into Deployments, `lives` and new ones.

    A Deployment of the other placement mode cannot be rendered: it is left as it is until
    it leaves. One that loses some replicas keeps its count until those are drained.
    """
    started = _by_name(case, standings.starts)
    placements: list[Placement] = []
    departures: list[Departure] = []
    untouched: list[str] = []
    gone = {j.key for j in standings.going}
    for live in sorted(lives, key=lambda placement: placement.name):
        if live.terminating:
            untouched.append(live.name)
            continue
        slots = [j for j in standings.judged if j.slot.placement.name == live.name]
        leave = Leave(
            placement=live,
            going=tuple(j for j in slots if j.key in gone),
            kept=tuple(j for j in slots if j.key not in gone),
            added=len(started.pop(live.name, ())) if is_home(case, live) else 0,
            hard_kill=case.spec.on_notice is OnNotice.HARD_KILL,
        )
        replicas = len(leave.kept) + leave.added
        stays = bool(replicas)
        if leave.going or not stays:
            departure = retire(leave, case.spec.drain, now_ms)
            departures.append(departure)
            replicas = departure.replicas
        if stays and is_home(case, live):
            placements.append(_standing_placement(case, index, live, slots, replicas))
        elif stays and not leave.going:
            untouched.append(live.name)
    for name, choices in sorted(started.items()):
        placements.append(_new_placement(case, name, choices))
    return Moves(
        placements=_paired(standings, placements),
        retirements=tuple(departure.retirement for departure in departures),
        untouched=tuple(untouched),
        attempts=_attempts(case, index, standings),
        wake_at_ms=earliest(*(departure.wake_at_ms for departure in departures)),
    )


def _by_name(case: Case, starts: Iterable[Choice]) -> dict[str, list[Choice]]:
    named: dict[str, list[Choice]] = {}
    for choice in starts:
        grouped = case.spec.nodes > 1
        name = workload_name(case.ref.name, choice.node.name, case.rev, grouped=grouped)
        named.setdefault(name, []).append(choice)
    return named


def _paired(standings: Standings, placements: Iterable[Placement]) -> tuple[Placement, ...]:
    """Sorted by name, each that is not Ready yet with the Deployment it takes over from.

    As many have one as replicas are surplus or forced to leave; the others are additions.
    """
    ready = {j.slot.placement.name for j in standings.judged if j.fate is not Fate.GOOD or j.ready}
    forced = [j for j in standings.judged if j.fate is Fate.FORCED]
    moving = [j for j in standings.judged if j.fate is Fate.MOVING and j.slot.live]
    good = [j for j in standings.judged if j.fate is Fate.GOOD and j.slot.live]
    surplus = len(good) + len(moving) + len(standings.starts) - standings.want
    leavers = [*victims(forced), *victims(moving)[: max(0, surplus)]]
    names = iter(dict.fromkeys(j.slot.placement.name for j in leavers))
    return tuple(
        placement if placement.name in ready else replace(placement, replaces=next(names, ""))
        for placement in sorted(placements, key=lambda placement: placement.name)
    )


def _standing_placement(
    case: Case, index: Index, live: LivePlacement, slots: list[Judged], replicas: int
) -> Placement:
    where = slots[0].slot.node if slots else live.node
    all_ready = all(j.ready for j in slots)
    return Placement(
        name=live.name,
        rev=live.rev,
        node=live.node,
        node_uid=live.node_uid,
        pool=pool_of_place(live.node) or index.pool(case, where) or index.pool(case, live.node),
        count=replicas,
        exists=True,
        readiness=None if all_ready or index.node(where) is None else index.readiness(case, where),
        size=live.size,
        nodes=live.nodes,
        domain=live.domain,
    )


def _new_placement(case: Case, name: str, choices: list[Choice]) -> Placement:
    choice = choices[0]
    return Placement(
        name=name,
        rev=case.rev,
        node=choice.node.name,
        node_uid=choice.node.uid,
        pool=choice.pool,
        count=len(choices),
        readiness=choice.readiness,
        size=case.spec.nodes,
        nodes=choice.nodes if case.spec.nodes > 1 else (),
        domain=choice.domain,
        rule=choice.rule,
    )


_VERDICTS = {
    Standing.READY: "kept",
    Standing.WARMING: "starting",
    Standing.STUCK: "stuck",
    Standing.LEAVING: "leaving",
}


def _room(choice: Choice) -> str:
    if pool_of_place(choice.node.name):
        return "no node has room, so any node of the pool, also a new one"
    return f"{choice.free_gpus} free GPUs"


def _attempts(case: Case, index: Index, standings: Standings) -> tuple[Attempt, ...]:
    """Where replicas stand, sorted by node, then where new ones go, in the order chosen."""
    going = {(j.slot.placement.name, j.slot.index) for j in standings.going}
    standing = []
    for j in standings.judged:
        node = j.slot.node
        leaves = (j.slot.placement.name, j.slot.index) in going
        verdict = f"leaving: {j.reason}" if leaves else _VERDICTS[j.standing]
        if j.reason and not leaves:
            verdict += f" until its successor is Ready: {j.reason}"
        if j.standing is Standing.STUCK and j.slot.reason:
            verdict += f" ({j.slot.reason})"
        known = node and index.node(node) is not None
        readiness = index.readiness(case, node) if known else None
        where, pool = nodes_told(j.slot.nodes), index.pool(case, node)
        standing.append(Attempt(where, pool, verdict, readiness=readiness))
    chosen = [
        Attempt(
            nodes_told(choice.nodes),
            choice.pool,
            f"create, {_room(choice)}{choice.beyond and f', {choice.beyond}'}",
            choice.rule,
            readiness=choice.readiness,
        )
        for choice in standings.starts
    ]
    return (*sorted(standing, key=lambda attempt: (attempt.node, attempt.verdict)), *chosen)
