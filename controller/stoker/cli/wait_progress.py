"""How far the replicas of a service are that start, for `stoker wait`; from its pods.

The mirror's status and raw pods come in, `Progress` comes out. Pure but for `seen_by`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.errors import StokerError
from stoker.model.ports import Cluster
from stoker.model.snapshot import ReplicaPhase
from stoker.objects.health_fields import integer, items, text
from stoker.observe import phase_of, pod_facts
from stoker.report import duration

__all__ = ["NOTHING", "Progress", "progress_of", "seen_by"]

_WORDS = {
    ReplicaPhase.PENDING: "Scheduling",
    ReplicaPhase.NODE_PROVISIONING: "Scheduling",
    ReplicaPhase.IMAGE_PULL: "Pulling",
    ReplicaPhase.STARTING: "Starting",
    ReplicaPhase.STUCK: "Stuck",
}
"""What is said of a replica that is not Ready; of others nothing is."""


@dataclass(frozen=True, slots=True)
class Progress:
    """`text` is `l4-od-3 Starting 1m12s of 4m10s`; `words` is the same without times."""

    text: str = ""
    words: str = ""


NOTHING = Progress()


def seen_by(
    cluster: Cluster, namespace: str, status: dict[str, Any], deadline_ms: int, now_ms: int
) -> Progress:
    """The progress of the pods that the mirror's selector finds; nothing where none can be read."""
    selector = text(status, "selector")
    if not selector:
        return NOTHING
    try:
        pods = cluster.list("", "Pod", namespace, label_selector=selector).items
    except StokerError:
        return NOTHING
    return progress_of(pods, status, deadline_ms, now_ms)


def progress_of(
    pods: Iterable[dict[str, Any]], status: dict[str, Any], deadline_ms: int, now_ms: int
) -> Progress:
    """The replica that has been on its way longest, and how many more there are.

    Times count from the creation of the pod, as the mirror's estimates do; one is given only
    where the pod is bound to the node that it was made for. Clocks may differ: no age is below 0.
    """
    found = sorted(_starts(pods, deadline_ms, now_ms))
    if not found:
        return NOTHING
    created_ms, node, what = found[0]
    place = f"{node} " if node else ""
    seconds = max(0, now_ms - created_ms) // 1000
    expected = {text(e, "node"): integer(e, "seconds", 0) for e in items(status, "starting")}
    of = f" of {duration(expected[node] * 1000)}" if expected.get(node) else ""
    more = f" (+{len(found) - 1} more)" if len(found) > 1 else ""
    return Progress(
        f"{place}{what} {duration(seconds * 1000)}{of}{more}",
        f"{place}{what}{more}",
    )


def _starts(
    pods: Iterable[dict[str, Any]], deadline_ms: int, now_ms: int
) -> Iterable[tuple[int, str, str]]:
    """When it was created, node and phase of each replica that is on its way, or stuck."""
    for pod in pods:
        facts = pod_facts(pod)
        if facts.own is None or facts.finished:
            continue
        phase, _, reason = phase_of(facts.own, facts.node, deadline_ms, now_ms)
        if phase not in _WORDS:
            continue
        word = _WORDS[phase]
        if phase is ReplicaPhase.PENDING and facts.node:
            word = _WORDS[ReplicaPhase.IMAGE_PULL]
        if phase is ReplicaPhase.STUCK and reason:
            word += f" ({reason})"
        yield facts.own.created_ms, facts.node, word
