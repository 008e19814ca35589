"""In which order services are decided: who comes first takes the room that is left. Pure.

Higher priority first. Of equal priority, services with replicas on nodes that go away come before
the others, and first those that serve most there, as far as that is known; ties by ref. Called by
decide.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.decide.case import Case
from stoker.model.snapshot import Node, Replica, ReplicaPhase

__all__ = ["CALM_MS", "calm_until", "going_away", "in_turn", "served_load", "silent_nodes"]

_NOTICED = -1


CALM_MS = 120_000
"""As long as the notice of a spot node: one that was withdrawn often comes back, and so does the
silence of a node that speaks again."""


def going_away(nodes: Iterable[Node]) -> dict[str, Node]:
    """Nodes whose notice forces replicas away, by name."""
    return {n.name: n for n in nodes if n.notice is not None and not n.notice.vacates}


def in_turn(cases: Iterable[Case], going: dict[str, Node]) -> tuple[Case, ...]:
    """The cases in the order of their turns."""
    return tuple(
        sorted(cases, key=lambda case: (-case.spec.priority, *_rank(case, going), case.ref))
    )


def silent_nodes(nodes: Iterable[Node]) -> frozenset[str]:
    """Names of those that do not answer."""
    return frozenset(node.name for node in nodes if not node.ready)


def calm_until(
    known: int | None, case: Case, going: dict[str, Node], silent: frozenset[str], now_ms: int
) -> int | None:
    """The next `UnitHistory.calm_until_ms`; `known` is the one before."""
    if (going and _is_noticed(case, going)) or (silent and _has_lost(case, silent)):
        return _NOTICED
    if known == _NOTICED:
        return now_ms + CALM_MS
    return known if known is not None and known > now_ms else None


def served_load(case: Case, going: dict[str, Node]) -> float | None:
    """Requests that its replicas on such nodes have in flight; None where nobody knows.

    A draining engine was asked itself; for others the node's reporter counts, if the service
    is alone there as far as it says.
    """
    known = [
        load
        for placement in case.state.placements
        for pod in placement.pods
        if pod.phase is ReplicaPhase.READY
        if (node := next((going[n] for n in pod.nodes if n in going), None)) is not None
        if (load := _load(pod, node)) is not None
    ]
    return float(sum(known)) if known else None


def _rank(case: Case, going: dict[str, Node]) -> tuple[int, int, float]:
    """Unknown is not zero: it comes after those that are known to serve, before the idle."""
    if not _is_noticed(case, going):
        return 1, 0, 0.0
    load = served_load(case, going)
    if load is None:
        return 0, 1, 0.0
    return (0, 0, -load) if load > 0 else (0, 2, 0.0)


def _is_noticed(case: Case, going: dict[str, Node]) -> bool:
    pods = (pod for placement in case.state.placements for pod in placement.pods)
    return any(node in going for pod in pods for node in pod.nodes)


def _has_lost(case: Case, silent: frozenset[str]) -> bool:
    """Whether a replica on such a node is not Ready, so that a substitute is started for it."""
    pods = (pod for placement in case.state.placements for pod in placement.pods)
    return any(
        pod.phase is not ReplicaPhase.READY and not silent.isdisjoint(pod.nodes) for pod in pods
    )


def _load(pod: Replica, node: Node) -> int | None:
    if pod.drain is not None and pod.drain.in_flight is not None:
        return pod.drain.in_flight
    alone = node.signals.active_services is None or node.signals.active_services <= 1
    return node.signals.requests_running if alone else None
