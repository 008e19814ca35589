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
    "held_for_stuck_rev",
    "held_for_unknown",
    "why_stuck",
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
) -> Hold:
    """No node can take the replica: HeldNoCapacity, or WaitingForDeparture when room is
    coming free on a node that the service itself is leaving.
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
    remedy = (
        f"{_count(case.need.gpus, 'free GPU')} on one node of {pools};"
        f" whenFull is {case.spec.when_full}, {_asked(case, shortfall.waits)}"
    )
    if shortfall.waiting:
        remedy += f"; or disruption.minReady below {shortfall.floor}, so that one can leave first"
    return Hold("HeldNoCapacity", message, remedy)


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


def why_stuck(case: Case, want: int, stuck: Iterable[Judged]) -> str:
    """How many replicas of the rev are stuck, and the first three of them; empty for none."""
    where = sorted(_stuck_where(j) for j in stuck)
    if not where:
        return ""
    return f"{len(where)} of {want} replicas of rev {case.rev} stuck: {', '.join(where[:3])}"


def held_for_stuck_rev(message: str, old_ready: int, blocked: str = "") -> Hold:
    """The rev fails: UpdateFailed next to serving replicas of an older one, else StartsFailing.

    `blocked` is the commit that brought it, once that is remembered.
    """
    if old_ready:
        named = f"; blocked {blocked[:7]}" if blocked else ""
        return Hold(
            "UpdateFailed",
            f"{message}; {old_ready} of the old rev still serving{named}",
            "revert the change or commit a fix; nothing more is started of this rev",
        )
    return Hold(
        "StartsFailing",
        message,
        "commit a fix; nothing more is started of this rev until one of them is Ready",
    )


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
            freed[pod.node] = freed.get(pod.node, Resources()).plus(requests)
            leaves_ms = _leaves_ms(pod, case, index)
            latest.setdefault(pod.node, []).extend(() if leaves_ms is None else (leaves_ms,))
    found = [
        Departing(node, max(latest[node], default=None))
        for node, requests in freed.items()
        if index.would_fit(case, node, requests)
    ]
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
    reason = judged.slot.pod.reason if judged.slot.pod is not None else ""
    return f"{judged.slot.node} ({reason or 'no reason given'})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
