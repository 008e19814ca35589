"""Replicas over several nodes: the pods of a LeaderWorkerSet put together, group by group.

Facts of own pods and what one pod alone would be come in; a Replica a group goes out. It is
Ready only when its leader and all its workers are: one rank that is away stops every answer.
Called by replicas.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stoker.model.fleet import Desired, ModelService
from stoker.model.snapshot import Replica, ReplicaPhase, Worker
from stoker.model.workload import LWS_GROUP, LWS_KIND, LWS_VERSION, is_workload
from stoker.objects.inventory import Inventory
from stoker.observe.keys import WatchKey

__all__ = ["group_keys", "grouped"]

_SLOWEST_FIRST = (
    ReplicaPhase.PENDING,
    ReplicaPhase.NODE_PROVISIONING,
    ReplicaPhase.IMAGE_PULL,
    ReplicaPhase.STARTING,
    ReplicaPhase.READY,
)
PATIENCE = 2
"""So many times coldStart.deadline a group may take with all that it waits for: its pods are made
again after each restart, so none of them is ever old."""


def group_keys(desired: Desired, owned: Inventory | None) -> tuple[WatchKey, ...]:
    """LeaderWorkerSets of the namespaces where some are wanted, or are ours."""
    spaces = {
        unit.ref.namespace
        for unit in desired.units
        if isinstance(unit.spec, ModelService) and unit.spec.nodes > 1
    }
    for ref in owned.owners() if owned is not None else ():
        if ref.kind == LWS_KIND and is_workload(ref):
            spaces.add(ref.namespace)
    return tuple(WatchKey(LWS_GROUP, LWS_KIND, LWS_VERSION, space) for space in sorted(spaces))


def grouped(
    workload: str,
    size: int,
    members: Iterable[tuple[int, int, Replica]],
    *,
    unready_ms: int,
    deadline_ms: int,
    now_ms: int,
) -> tuple[Replica, ...]:
    """One Replica a group, sorted by name. Members come with group and worker index.

    `unready_ms` is since when the LeaderWorkerSet has not had all its groups; 0 for not known.
    """
    groups: dict[int, dict[int, Replica]] = {}
    for group, worker, pod in members:
        groups.setdefault(group, {})[worker] = pod
    found = []
    for number in sorted(groups):
        made = _group(f"{workload}-{number}", size, groups[number])
        waited_ms = now_ms - unready_ms if unready_ms else 0
        if made.phase.warming and waited_ms > PATIENCE * deadline_ms:
            made = replace(
                made,
                phase=ReplicaPhase.STUCK,
                reason="DeadlineExceeded",
                since_ms=unready_ms + PATIENCE * deadline_ms,
                failed_node=next(iter(made.nodes), ""),
            )
        found.append(made)
    return tuple(sorted(found, key=lambda each: each.name))


def _group(name: str, size: int, pods: dict[int, Replica]) -> Replica:
    """The leader's own facts, the phase of the whole, and the latest instant of each kind."""
    members = [pods[number] for number in sorted(pods)]
    leader = pods.get(0)
    telling = _telling(members, size, leader)
    workers = tuple(
        Worker(pod.name, pod.uid, pod.node) for number, pod in sorted(pods.items()) if number
    )
    return Replica(
        name=leader.name if leader is not None else name,
        uid=leader.uid if leader is not None else "",
        node=leader.node if leader is not None else "",
        phase=telling.phase,
        since_ms=telling.since_ms,
        created_ms=max(pod.created_ms for pod in members),
        restarts=max(pod.restarts for pod in members),
        reason=telling.reason,
        traffic=leader.traffic if leader is not None else True,
        drain=leader.drain if leader is not None else None,
        scheduled_ms=_last(pod.scheduled_ms for pod in members),
        started_ms=_last(pod.started_ms for pod in members),
        workers=workers,
        failed_node=telling.node if telling.phase is ReplicaPhase.STUCK else "",
    )


def _telling(members: list[Replica], size: int, leader: Replica | None) -> Replica:
    """The pod whose phase is that of the group, with what it says.

    One that goes takes the group along; one that is stuck holds it; without one it waits.
    """
    for phase in (ReplicaPhase.TERMINATING, ReplicaPhase.STUCK):
        found = [pod for pod in members if pod.phase is phase]
        if found:
            return min(found, key=lambda pod: (pod.since_ms, pod.name))
    latest = max(members, key=lambda pod: (pod.since_ms, pod.name))
    if leader is None or len(members) < size:
        return replace(
            latest, phase=ReplicaPhase.PENDING, reason=latest.reason or "GroupIncomplete"
        )
    slowest = min(_SLOWEST_FIRST.index(pod.phase) for pod in members)
    return max(
        (pod for pod in members if pod.phase is _SLOWEST_FIRST[slowest]),
        key=lambda pod: (pod.since_ms, pod.name),
    )


def _last(instants: Iterable[int]) -> int:
    """The latest; 0 while some pod has not come so far."""
    found = tuple(instants)
    return max(found) if all(found) else 0
