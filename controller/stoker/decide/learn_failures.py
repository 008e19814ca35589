"""Learn from starts that failed: which node, or whether the rev itself is to blame.

In: what a service remembers, its case, nodes by name, now. Out: the same with this pass's news.
A pod counts once, for only pods made after the last one that counted on its node are news.
A start has proven itself when its replica was Ready for PROVEN_MS. Called by decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from stoker.decide.case import Case
from stoker.model.blame import MAX_BAD_NODES, NO_FAILURES, BadNode, BadRev, Failures
from stoker.model.snapshot import LivePlacement, Node, Replica, ReplicaPhase
from stoker.objects.start_failures import Blame, blame_for

__all__ = [
    "LONGEST_MS",
    "PROVEN_MS",
    "SHORTEST_MS",
    "has_proven",
    "learn_failures",
    "quarantine_ms",
]

SHORTEST_MS = 600_000
LONGEST_MS = 86_400_000
"""10 minutes, doubling with each failed start in a row, to 24 hours (design section 4)."""
PROVEN_MS = 180_000
"""Ready for so long, a start is taken for good: shorter, and an engine that serves for a moment
and dies would clear its node each time. Rates are learned after 3 minutes too (section 5)."""
REMEMBERED_MS = 86_400_000
"""So long after a quarantine is over its node's next failure still counts as one more in a row."""


def learn_failures(past: Failures, case: Case, nodes: Mapping[str, Node], now_ms: int) -> Failures:
    """What is remembered after this pass, from all that stands of the service."""
    if past == NO_FAILURES and not any(_failed(case, nodes)):
        return past
    found = _of_rev(past, case.rev)
    found = _cleared(found, case, nodes, now_ms)
    found = _counted(found, case, nodes, now_ms)
    found = _judged(found, case, nodes, now_ms)
    return _bounded(found, now_ms)


def quarantine_ms(strikes: int) -> int:
    """How long a node is left out after so many failed starts in a row (at least 1)."""
    return min(LONGEST_MS, SHORTEST_MS << min(strikes - 1, 10))


def has_proven(pod: Replica, now_ms: int) -> bool:
    """Whether it has been Ready for long enough to be taken for a good start."""
    return pod.phase is ReplicaPhase.READY and now_ms - pod.since_ms >= PROVEN_MS


@dataclass(frozen=True, slots=True)
class _Failed:
    """A start that failed, on a node that is known."""

    node: Node
    rev: str
    blame: Blame
    reason: str
    created_ms: int


def _failed(case: Case, nodes: Mapping[str, Node]) -> Iterator[_Failed]:
    """Every failed start that the snapshot shows, in the order of names."""
    for placement in case.state.placements:
        for refusal in placement.refusals:
            node = nodes.get(refusal.node)
            if node is not None:
                made_ms = refusal.created_ms
                yield _Failed(node, placement.rev, Blame.NODE, refusal.reason, made_ms)
        for pod in placement.pods:
            node = _failed_on(placement, pod, nodes)
            blame = blame_for(pod.reason) if pod.blamed_node else Blame.NODE
            if node is not None and blame is not Blame.NOBODY:
                yield _Failed(node, placement.rev, blame, pod.reason, pod.created_ms)


def _failed_on(placement: LivePlacement, pod: Replica, nodes: Mapping[str, Node]) -> Node | None:
    """The node where a pod is stuck; for a pod that no node took, the one chosen for it."""
    if pod.phase is not ReplicaPhase.STUCK:
        return None
    if placement.size > 1:
        return nodes.get(pod.failed_node)
    if pod.node:
        return nodes.get(pod.node)
    node = nodes.get(placement.node)
    return node if node is not None and placement.node_uid in {node.uid, ""} else None


def _of_rev(past: Failures, rev: str) -> Failures:
    """Another rev in Git starts with a clean record, and may be the fix: nodes that only the

    rev before it speaks against may be used at once. Their strikes stay.
    """
    if past.rev == rev:
        return past
    nodes = tuple(replace(row, until_ms=0, rev="") if row.rev else row for row in past.nodes)
    return Failures(nodes, None, rev)


def _cleared(past: Failures, case: Case, nodes: Mapping[str, Node], now_ms: int) -> Failures:
    """A start that has proven itself clears its node, and its rev everywhere."""
    rows = {row.uid: row for row in past.nodes}
    found = past
    for placement in case.state.placements:
        for pod in placement.pods:
            if not has_proven(pod, now_ms):
                continue
            for node in (nodes[name] for name in pod.nodes if name in nodes):
                row = rows.get(node.uid)
                if row and pod.created_ms >= row.made_ms and pod.since_ms > row.at_ms:
                    rows[row.uid] = BadNode(row.uid, row.made_ms, row.at_ms)
            rows = {
                uid: replace(row, rev="")
                if row.rev == placement.rev and pod.since_ms > row.at_ms
                else row
                for uid, row in rows.items()
            }
            if placement.rev == found.rev:
                found = _rev_proven(found, pod.since_ms)
    return replace(found, nodes=tuple(rows[uid] for uid in sorted(rows)))


def _rev_proven(past: Failures, since_ms: int) -> Failures:
    if past.bad_rev is not None and since_ms > past.bad_rev.since_ms:
        past = replace(past, bad_rev=None)
    if past.in_a_row and since_ms > past.last_ms:
        past = replace(past, in_a_row=0, last_ms=0)
    return past


def _counted(past: Failures, case: Case, nodes: Mapping[str, Node], now_ms: int) -> Failures:
    """Strikes for nodes with failed starts that are news. What only the rev can be blamed for,
    and what fails of a rev that is blamed already, strikes no node; nor do more pods of a node
    in quarantine, for those were not started by a decision made since.
    """
    waves: dict[str, _Failed] = {}
    for failed in _failed(case, nodes):
        known = waves.get(failed.node.uid)
        if known is None or _newer(failed) > _newer(known):
            waves[failed.node.uid] = failed
    rows = {row.uid: row for row in past.nodes}
    news = False
    for uid in sorted(waves):
        failed, row = waves[uid], rows.get(uid)
        if row is not None and failed.created_ms <= row.made_ms:
            continue
        if row is not None and now_ms < row.until_ms:
            rows[uid] = replace(row, made_ms=failed.created_ms)
            continue
        blamed = past.bad_rev is not None and failed.rev == past.bad_rev.rev
        news = news or failed.rev == past.rev
        if failed.blame is Blame.REV or (failed.blame is Blame.EITHER and blamed):
            old = row if row is not None else BadNode(uid, 0, now_ms)
            rows[uid] = replace(old, made_ms=failed.created_ms)
        else:
            rows[uid] = _struck(row, failed, past.rev, now_ms)
    if news:
        past = replace(past, in_a_row=past.in_a_row + 1, last_ms=now_ms)
    return replace(past, nodes=tuple(rows[uid] for uid in sorted(rows)))


def _newer(failed: _Failed) -> tuple[int, bool, str, str]:
    """Of failures on one node the newest is told; of equal ones that which blames the node."""
    return failed.created_ms, failed.blame is Blame.NODE, failed.reason, failed.rev


def _struck(row: BadNode | None, failed: _Failed, rev: str, now_ms: int) -> BadNode:
    """The row with one strike more. A rev that Git has replaced may have been to blame itself."""
    strikes = 1 + (row.strikes if row is not None else 0)
    either = failed.blame is Blame.EITHER
    replaced = either and failed.rev != rev
    return BadNode(
        uid=failed.node.uid,
        made_ms=failed.created_ms,
        at_ms=now_ms,
        strikes=strikes,
        until_ms=0 if replaced else now_ms + quarantine_ms(strikes),
        reason=failed.reason,
        rev=failed.rev if either and not replaced else "",
    )


def _judged(past: Failures, case: Case, nodes: Mapping[str, Node], now_ms: int) -> Failures:
    """Blame the rev where it failed on two nodes and on as many as it is Ready on; or for what
    no node can mend. The strikes that it caused are taken back.
    """
    if past.bad_rev is not None:
        return past
    names = {node.uid: node.name for node in nodes.values()}
    surely = [
        failed
        for failed in _failed(case, nodes)
        if failed.blame is Blame.REV and failed.rev == past.rev
    ]
    speaking = [row for row in past.nodes if row.rev == past.rev and row.strikes]
    if surely:
        reason = min(failed.reason for failed in surely)
        where = [failed.node.name for failed in surely]
    elif len(speaking) >= max(2, _ready(case)):
        reason = max(speaking, key=lambda row: (row.at_ms, row.uid)).reason
        where = [names.get(row.uid, "a node that is gone") for row in speaking]
    else:
        return past
    guilty = {row.uid for row in speaking}
    return replace(
        past,
        nodes=tuple(_taken_back(row) if row.uid in guilty else row for row in past.nodes),
        bad_rev=BadRev(past.rev, now_ms, reason, tuple(sorted(set(where))[:3])),
    )


def _taken_back(row: BadNode) -> BadNode:
    """One strike less; the last one clears the node."""
    if row.strikes <= 1:
        return BadNode(row.uid, row.made_ms, row.at_ms)
    return replace(row, strikes=row.strikes - 1, rev="")


def _ready(case: Case) -> int:
    return sum(
        1
        for placement in case.state.placements
        if placement.rev == case.rev
        for pod in placement.pods
        if pod.phase is ReplicaPhase.READY
    )


def _bounded(past: Failures, now_ms: int) -> Failures:
    """The newest rows that are still worth remembering."""
    kept: Iterable[BadNode] = (
        row for row in past.nodes if now_ms - max(row.until_ms, row.at_ms) < REMEMBERED_MS
    )
    newest = sorted(kept, key=lambda row: (row.strikes > 0, row.at_ms, row.uid), reverse=True)
    if not newest and past.bad_rev is None and now_ms - past.last_ms >= REMEMBERED_MS:
        return NO_FAILURES
    return replace(past, nodes=tuple(sorted(newest[:MAX_BAD_NODES])))
