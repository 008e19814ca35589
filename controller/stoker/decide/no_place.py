"""What is done for a replica that fits nowhere: others make room, or a node is asked for.

`placement.reclaim: LowerPriority` takes room from services of lower priority. `placement.whenFull:
Unpinned` starts a replica without a node: it may run anywhere in its pool, so a node autoscaler
sees a Pending pod and adds a node. Where it lands is where it is. A pool in which such a pod was
still Pending at `coldStart.deadline` gave no node: the next pool is asked, and that one again
after a wait that doubles. Steps of transition, on the numbers of work.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.decide.case import Case
from stoker.decide.fate import Fate, Judged
from stoker.decide.holds import departing_nodes
from stoker.decide.learn_failures import quarantine_ms
from stoker.decide.moves import earliest
from stoker.decide.place import Choice
from stoker.decide.slots import Standing
from stoker.decide.work import Work
from stoker.model.fleet import Pin, WhenFull
from stoker.model.history import PoolWait
from stoker.model.limits import Reclaim
from stoker.model.snapshot import Node
from stoker.objects.names import place_in_pool

__all__ = ["ask_for_moves", "ask_for_nodes", "take_room", "waits_after"]


def take_room(work: Work) -> None:
    """Where no place is left, take room from services of lower priority, if Git allows it."""
    asks = work.case.spec.reclaim is Reclaim.LOWER_PRIORITY and work.missing
    if work.reclaims is None or not asks or departing_nodes(work.case, work.index):
        return

    def admits(node: str) -> bool:
        beside = [*work.remaining(), *(claim.node for claim in work.claims)]
        floor = work.filled() + len(work.claims) < work.floor
        return node not in work.barred and (floor or work.limits.admits(node, beside))

    for _ in range(work.missing):
        claim = work.reclaims.claim(work.case, admits)
        if claim is None:
            return
        work.claims.append(claim)
        work.missing -= 1


def ask_for_nodes(work: Work) -> None:
    """Start what is still missing without a node, each in the first pool that may get one."""
    while work.missing and _ask(work):
        work.missing -= 1


def ask_for_moves(work: Work) -> None:
    """The same for successors under the budget, where nobody may leave first to make a place."""
    idle = not work.making_room and not departing_nodes(work.case, work.index)
    if not work.waiting or not idle or work.homeless():
        return
    while work.moves_due() > 0 and _ask(work):
        work.waiting = 0


def _ask(work: Work) -> bool:
    """One start in a pool instead of on a node; False where no pool may be asked now."""
    case = work.case
    if case.spec.when_full is not WhenFull.UNPINNED:
        return False
    tries = work.limits.tries(work.remaining(), floor=work.filled() < work.floor)
    waits = {wait.pool: wait.until_ms for wait in work.bounds.pool_waits}
    for closed in tries:
        for pool in case.ask.pools:
            place = place_in_pool(pool.name)
            static = pool.pin is Pin.REQUIRED
            if static or closed.pool(pool.name) is not None or place in work.barred:
                continue
            if waits.get(pool.name, 0) > work.now_ms:
                work.wake_at_ms = earliest(work.wake_at_ms, waits[pool.name])
                continue
            ready_in = work.index.readiness_of_new(case)
            work.starts.append(Choice(Node(place, ""), pool.name, ready_in, 0, rule="unpinned"))
            work.own.add(place)
            return True
    return False


def waits_after(
    waits: tuple[PoolWait, ...], case: Case, judged: Iterable[Judged], now_ms: int
) -> tuple[PoolWait, ...]:
    """Which pools gave no node, after this pass, sorted by name; each waits as a node in
    quarantine does.

    Each pod counts once. A pod that was made after the failure and found a node ends it.
    """
    known = {wait.pool: wait for wait in waits}
    pools = {place_in_pool(pool.name): pool.name for pool in case.ask.pools}
    for j in sorted(judged, key=lambda j: j.key):
        pool, pod = pools.get(j.slot.placement.node), j.slot.pod
        if pool is None or pod is None or j.fate is Fate.LEAVING:
            continue
        before = known.get(pool)
        if pod.node:
            if before is not None and pod.created_ms >= before.failed_ms:
                del known[pool]
        elif j.standing is Standing.STUCK and (before is None or before.pod != pod.uid):
            failures = before.failures + 1 if before is not None else 1
            until_ms = now_ms + quarantine_ms(failures)
            known[pool] = PoolWait(pool, failures, now_ms, until_ms, pod.uid)
    return tuple(known[pool] for pool in sorted(known) if pool in pools.values())
