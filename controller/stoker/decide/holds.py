"""What is wanted and does not happen now: why, and what would help soonest.

Called by transition, scheduler_mode and decide. The codes are reasons that people meet in
status and docs; they never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stoker.decide.case import Case
from stoker.decide.closed import NOTHING_CLOSED, Closed
from stoker.decide.fate import Judged
from stoker.decide.place import Index
from stoker.decide.reclaim import Claim
from stoker.decide.retire import drain_ends_ms
from stoker.decide.slots import departing_pods
from stoker.decide.tally import Tally
from stoker.model.fleet import WhenFull
from stoker.model.history import PoolWait
from stoker.model.plan import Hold
from stoker.model.shape import Resources
from stoker.model.snapshot import Replica
from stoker.model.times import rfc3339

__all__ = [
    "Departing",
    "Shortfall",
    "departing_nodes",
    "held_by_giving",
    "held_for_capacity",
    "held_for_claims",
    "held_for_failures",
    "held_for_unknown",
    "why_failed",
]


@dataclass(frozen=True, slots=True)
class Departing:
    """A node where room for a replica comes free when own pods have left it."""

    node: str
    at_latest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Replicas without a place (`missing`) and moves without one (`waiting`)."""

    missing: int
    waiting: int
    want: int
    floor: int
    waits: tuple[PoolWait, ...] = ()


def held_for_capacity(
    case: Case,
    shortfall: Shortfall,
    tallies: tuple[Tally, ...],
    departing: tuple[Departing, ...],
    closed: Closed = NOTHING_CLOSED,
    new_node: str = "",
) -> Hold:
    """No node can take the replica: HeldNoCapacity, or WaitingForDeparture when room is
    coming free on a node that the service itself is leaving. `new_node` says what one would take.
    """
    if shortfall.missing:
        message = f"{shortfall.missing} of {shortfall.want} replicas have no place"
    else:
        message = f"{_count(shortfall.waiting, 'move')} without a free place to go"
    looked = _summary(tallies)
    if looked:
        message += f": {looked}"
    if departing:
        return Hold("WaitingForDeparture", message, _when(departing[0]))
    listed = [pool.name for pool in case.ask.pools if closed.pool(pool.name) is None]
    pools = ", ".join(listed) or "any pool (the service has none)"
    gpus, size = _count(case.need.gpus, "free GPU"), case.spec.nodes
    where = f"{gpus} on one node of {pools}"
    if size > 1:
        where = f"{gpus} on each of {size} nodes with the same {case.spec.group_key}, in {pools}"
    remedy = f"{where}; whenFull is {case.spec.when_full}, {_asked(case, shortfall.waits)}"
    opens_ms = case.bars.opens_ms()
    if opens_ms is not None and any(tally.rule == "quarantined" for tally in tallies):
        remedy += f"; the first quarantine ends at {rfc3339(opens_ms)}"
    if shortfall.waiting:
        remedy += f"; or disruption.minReady below {shortfall.floor}, so that one can leave first"
    return Hold("HeldNoCapacity", message, remedy, new_node)


def _asked(case: Case, waits: Sequence[PoolWait]) -> str:
    """Whether a new node is asked for, for people."""
    if case.spec.when_full is WhenFull.HOLD:
        return "so no new node is asked for"
    told = [f"{wait.pool} gave none, asked again at {rfc3339(wait.until_ms)}" for wait in waits]
    return "; ".join(told) or "and no pool may be asked for a new node now"


def held_for_claims(claims: Sequence[Claim], want: int) -> Hold:
    """Others make room, and what found no place starts there once they have left."""
    where = "; ".join(f"{claim.node} from {claim.reason}" for claim in claims[:3])
    verb = "waits" if len(claims) == 1 else "wait"
    message = f"{len(claims)} of {want} replicas {verb} for room that others make: {where}"
    return Hold("Reclaiming", message, "goes on by itself once they have left")


def held_by_giving(given: Sequence[Judged], want: int) -> Hold:
    """Replicas of this service leave for one of higher priority."""
    where = "; ".join(sorted(f"{j.slot.node} {j.reason}" for j in given)[:3])
    return Hold(
        "GivesWay",
        f"{_count(len(given), 'replica')} of {want} leaving: {where}",
        "a free place elsewhere, a higher priority, or disruption.minReady, which is never taken",
    )


def why_failed(case: Case, want: int, stuck: Iterable[Judged]) -> str:
    """What is wrong with the starts of the rev: where replicas are stuck now, or where it failed
    before; empty where nothing of that is known.
    """
    bars = case.bars
    where = sorted(_stuck_where(j) for j in stuck)
    if where:
        return f"{len(where)} of {want} replicas of rev {case.rev} stuck: {', '.join(where[:3])}"
    if bars.bad_rev is not None:
        nodes = ", ".join(bars.bad_rev.nodes)
        return f"rev {case.rev} failed on {nodes} ({bars.bad_rev.reason or 'no reason given'})"
    if not bars.in_a_row:
        return ""
    message = f"{_count(bars.in_a_row, 'start')} of rev {case.rev} failed in a row"
    return f"{message}, the last with {bars.reason or 'no reason given'}"


def held_for_failures(case: Case, why: str, old_ready: int, now_ms: int, blocked: str = "") -> Hold:
    """Starts of the rev fail: UpdateFailed next to serving replicas of an older one, else
    StartsFailing. `why` is what `why_failed` says or said; `blocked` the commit that brought the
    rev, once that is remembered.
    """
    message = why or f"rev {case.rev} failed"
    if old_ready:
        message += f"; {old_ready} of the old rev still serving"
    if old_ready and blocked:
        message += f"; blocked {blocked[:7]}"
    return Hold(
        "UpdateFailed" if old_ready else "StartsFailing",
        message,
        _after_failures(case, now_ms, old_ready=old_ready, blocked=bool(blocked)),
    )


def _after_failures(case: Case, now_ms: int, *, old_ready: int, blocked: bool) -> str:
    """What ends it: a commit, one that recovers, time, or a node to try it on."""
    bars = case.bars
    if bars.bad_rev is not None or blocked:
        fix = "revert the change or commit a fix" if old_ready else "commit a fix"
        return f"{fix}; nothing more is started of this rev until one of it is Ready for 3m"
    if now_ms < bars.wait_until_ms:
        return f"the next start is tried at {rfc3339(bars.wait_until_ms)}"
    return "one more start, on another node, shows whether the rev or the node is to blame"


def held_for_unknown(reasons: Iterable[tuple[str, str]]) -> Hold:
    """What the decision needs could not be read, so everything stays as it is."""
    text = "; ".join(f"{what} unknown: {why}" for what, why in reasons)
    return Hold("SnapshotUnknown", text, "decided again as soon as it can be read")


def departing_nodes(case: Case, index: Index) -> tuple[Departing, ...]:
    """Nodes that will take a replica once the service's departing pods have left them;

    those with a known latest time first, soonest first. Nodes that are not Ready are left
    out: pods there may stay for ever.
    """
    freed: dict[str, Resources] = {}
    latest: dict[str, list[int]] = {}
    for placement in case.state.placements:
        requests = placement.requests or case.need.requests
        for pod in departing_pods(placement):
            leaves_ms = _leaves_ms(pod, case, index)
            for node in pod.nodes:
                freed[node] = freed.get(node, Resources()).plus(requests)
                latest.setdefault(node, []).extend(() if leaves_ms is None else (leaves_ms,))
    found = [
        Departing(node, max(latest[node], default=None))
        for node, requests in freed.items()
        if index.would_fit(case, node, requests)
    ]
    if len(found) < case.spec.nodes:
        return ()  # not room for a whole group
    return tuple(sorted(found, key=_soonest))


def _leaves_ms(pod: Replica, case: Case, index: Index) -> int | None:
    if pod.drain is None:
        return None
    node = index.node(pod.node)
    return drain_ends_ms(pod.drain.since_ms, case.spec.drain, node.notice if node else None)


def _soonest(departing: Departing) -> tuple[bool, int, str]:
    at_ms = departing.at_latest_ms
    return at_ms is None, at_ms or 0, departing.node


def _when(departing: Departing) -> str:
    text = f"the place on {departing.node} once the replica there has left"
    if departing.at_latest_ms is None:
        return text
    return f"{text}, at the latest {rfc3339(departing.at_latest_ms)}"


def _summary(tallies: tuple[Tally, ...]) -> str:
    counts: dict[str, int] = {}
    for tally in tallies:
        counts[tally.rule] = counts.get(tally.rule, 0) + tally.count
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{_count(count, 'node')} by rule {rule}" for rule, count in ranked[:3])


def _stuck_where(judged: Judged) -> str:
    return f"{judged.slot.node} ({judged.slot.reason or 'no reason given'})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
