"""What is wanted and does not happen now: why, and what would help soonest.

Called by transition, scheduler_mode and decide. The codes are reasons that people meet in
status and docs; they never change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stoker.decide.case import Case
from stoker.decide.fate import Judged
from stoker.decide.place import Index
from stoker.decide.retire import drain_ends_ms
from stoker.decide.slots import departing_pods
from stoker.decide.tally import Tally
from stoker.model.plan import Hold
from stoker.model.shape import Resources
from stoker.model.snapshot import Replica
from stoker.model.times import rfc3339

__all__ = [
    "Departing",
    "Shortfall",
    "departing_nodes",
    "held_for_capacity",
    "held_for_failures",
    "held_for_unknown",
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


def held_for_capacity(
    case: Case, shortfall: Shortfall, tallies: tuple[Tally, ...], departing: tuple[Departing, ...]
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
    pools = ", ".join(pool.name for pool in case.ask.pools) or "any pool (the service has none)"
    remedy = (
        f"{_count(case.need.gpus, 'free GPU')} on one node of {pools};"
        f" whenFull is {case.spec.when_full}, so no new node is asked for"
    )
    opens_ms = case.bars.opens_ms()
    if opens_ms is not None and any(tally.rule == "quarantined" for tally in tallies):
        remedy += f"; the first quarantine ends at {rfc3339(opens_ms)}"
    if shortfall.waiting:
        remedy += f"; or disruption.minReady below {shortfall.floor}, so that one can leave first"
    return Hold("HeldNoCapacity", message, remedy)


def held_for_failures(
    case: Case, want: int, stuck: Iterable[Judged], old_ready: int, now_ms: int
) -> Hold:
    """Starts of the rev fail: UpdateFailed next to serving replicas of an older one, else
    StartsFailing. Says whether the rev is blamed, or when the next start is tried.
    """
    bars = case.bars
    where = sorted(_stuck_where(j) for j in stuck)
    message = f"{len(where)} of {want} replicas of rev {case.rev} stuck: {', '.join(where[:3])}"
    if not where and bars.bad_rev is not None:
        nodes = ", ".join(bars.bad_rev.nodes)
        message = f"rev {case.rev} failed on {nodes} ({bars.bad_rev.reason or 'no reason given'})"
    elif not where:
        message = f"{_count(bars.in_a_row, 'start')} of rev {case.rev} failed in a row"
        message += f", the last with {bars.reason or 'no reason given'}"
    if old_ready:
        message += f"; {old_ready} of the old rev still serving"
    return Hold(
        "UpdateFailed" if old_ready else "StartsFailing",
        message,
        _after_failures(case, now_ms, old_ready=old_ready),
    )


def _after_failures(case: Case, now_ms: int, *, old_ready: int) -> str:
    """What ends it: a commit, one that recovers, time, or a node to try it on."""
    bars = case.bars
    if bars.bad_rev is not None:
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
    return f"{judged.slot.node} ({judged.slot.reason or 'no reason given'})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
