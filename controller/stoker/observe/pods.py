"""What is kept of a pod: what it takes from its node, and for our own how it is doing.

Raw pods come in from the projection, `PodFacts` go out; nodes and replicas read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.model.shape import Resources
from stoker.model.times import to_milliseconds
from stoker.model.workload import GROUP_INDEX, WORKER_INDEX
from stoker.objects import names
from stoker.objects.health_fields import items, mapping, text
from stoker.objects.requests import requests_of_spec

__all__ = ["OwnPod", "PodFacts", "engine_address", "instant", "pod_facts", "requests_of_pod"]

ENGINE_CONTAINER = "engine"

_BROKEN = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)
"""Waiting reasons of the kubelet that need a change, not patience."""


@dataclass(frozen=True, slots=True)
class OwnPod:
    """A pod with our service label, or of a Deployment that asks for devices. Times in milliseconds since the epoch, 0 for not yet.

    `broken` is the first waiting reason that needs a change, `deleted_ms` the instant its
    deletion was asked for. `started_ms` is when the engine container began to run.
    """

    service: str
    placement: str
    uid: str
    created_ms: int
    deleted_ms: int
    scheduled_ms: int
    ready: bool
    ready_changed_ms: int
    started_ms: int
    kubelet_seen: bool
    initialising: bool
    nominated: bool
    restarts: int
    broken: str
    waiting: str
    traffic: bool
    draining_since: str
    address: str
    port: int
    workload: str = ""
    """Name of the Deployment that made it, where it has no label of ours (an adopted one)."""
    group: int = 0
    """Of a LeaderWorkerSet: which of its groups it is in."""
    worker: int = 0
    """Which pod of its group: 0 is the leader."""
    refused: str = ""
    """Why the kubelet refused it or threw it out (`status.reason` of a Failed pod)."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """Any pod. `requests` is None when they cannot be read, which is not zero.

    `node` is empty until it is bound. `finished` pods hold nothing. `claims` says that it
    uses resource claims (DRA), which no resource map counts.
    """

    node: str
    finished: bool
    requests: Resources | None
    claims: bool
    own: OwnPod | None


def requests_of_pod(pod: dict[str, Any]) -> Resources:
    """What a live pod takes from its node; raises ValueError on an unreadable amount."""
    status = mapping(pod, "status")
    statuses = (*items(status, "containerStatuses"), *items(status, "initContainerStatuses"))
    return requests_of_spec(mapping(pod, "spec"), statuses)


def pod_facts(pod: dict[str, Any]) -> PodFacts:
    """Keep what decisions need of a raw pod."""
    spec = mapping(pod, "spec")
    try:
        requests = requests_of_pod(pod)
    except ValueError:
        requests = None
    return PodFacts(
        node=text(spec, "nodeName"),
        finished=mapping(pod, "status").get("phase") in {"Succeeded", "Failed"},
        requests=requests,
        claims=bool(spec.get("resourceClaims")),
        own=_own_pod(pod, asks_for_devices=requests is not None and bool(requests.extended)),
    )


def engine_address(pod: OwnPod, port: int) -> str:
    """`host:port` of a pod's engine, with `port` where its container names none; empty while it
    has no address. An address that has a port (of a simulated pod) is taken as it is.
    """
    address = pod.address
    if not address or _has_port(address):
        return address
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{pod.port or port}"


def _has_port(address: str) -> bool:
    """`host:port` or `[v6]:port`; a bare IPv6 address has more than one colon."""
    return "]:" in address or address.count(":") == 1


def instant(value: Any, default: int = 0) -> int:
    """An RFC 3339 time in milliseconds since the epoch; the default where it is none."""
    if not isinstance(value, str):
        return default
    try:
        return to_milliseconds(value)
    except ValueError:
        return default


def _own_pod(pod: dict[str, Any], *, asks_for_devices: bool) -> OwnPod | None:
    metadata, spec, status = mapping(pod, "metadata"), mapping(pod, "spec"), mapping(pod, "status")
    labels, annotations = mapping(metadata, "labels"), mapping(metadata, "annotations")
    service = text(labels, names.SERVICE_LABEL)
    workload = _deployment_of(metadata) if asks_for_devices and not service else ""
    if not service and not workload:
        return None
    conditions = {entry.get("type"): entry for entry in items(status, "conditions")}
    ready = conditions.get("Ready", {})
    scheduled = conditions.get("PodScheduled", {})
    mains = items(status, "containerStatuses")
    inits = items(status, "initContainerStatuses")
    states = [mapping(container, "state") for container in (*inits, *mains)]
    waits = [text(mapping(state, "waiting"), "reason") for state in states]
    engine = _engine(mains)
    return OwnPod(
        service=service,
        placement=text(labels, names.PLACEMENT_LABEL),
        uid=text(metadata, "uid"),
        created_ms=instant(metadata.get("creationTimestamp")),
        deleted_ms=_deletion_asked(metadata),
        scheduled_ms=_since(scheduled) if scheduled.get("status") == "True" else 0,
        ready=ready.get("status") == "True",
        ready_changed_ms=_since(ready),
        started_ms=instant(mapping(mapping(engine, "state"), "running").get("startedAt")),
        kubelet_seen=bool(mains or inits),
        initialising=any(
            "running" in mapping(container, "state") or "terminated" in mapping(container, "state")
            for container in inits
        ),
        nominated=bool(text(status, "nominatedNodeName")),
        restarts=max(
            (_count(container, "restartCount") for container in (*inits, *mains)), default=0
        ),
        broken=_out_of_memory(states, (*inits, *mains))
        or next((reason for reason in waits if reason in _BROKEN), ""),
        waiting=next((reason for reason in waits if reason), text(scheduled, "reason")),
        traffic=bool(workload) or labels.get(names.TRAFFIC_LABEL) == "true",
        draining_since=text(annotations, names.DRAINING_SINCE),
        address=text(annotations, names.ADDRESS) or text(status, "podIP"),
        port=_port(spec),
        workload=workload,
        group=_index(labels, GROUP_INDEX),
        worker=_index(labels, WORKER_INDEX),
        refused=text(status, "reason") if status.get("phase") == "Failed" else "",
    )


def _index(labels: dict[str, Any], label: str) -> int:
    value = text(labels, label)
    return int(value) if value.isdecimal() else 0


def _out_of_memory(states: Iterable[dict[str, Any]], statuses: Iterable[dict[str, Any]]) -> str:
    """`OOMKilled` where a container that waits for its next run was killed for its memory."""
    for state, status in zip(states, statuses, strict=True):
        last = mapping(mapping(status, "lastState"), "terminated")
        if mapping(state, "waiting") and text(last, "reason") == "OOMKilled":
            return "OOMKilled"
    return ""


def _deployment_of(metadata: dict[str, Any]) -> str:
    """The Deployment that made a pod, by the name of its ReplicaSet; empty for others."""
    owners = (owner for owner in items(metadata, "ownerReferences") if owner.get("controller"))
    owner = next(owners, {})
    name, made = text(owner, "name"), text(mapping(metadata, "labels"), "pod-template-hash")
    if owner.get("kind") != "ReplicaSet" or not made:
        return ""
    return name.removesuffix(f"-{made}") if name.endswith(f"-{made}") else ""


def _engine(statuses: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """The engine's status, or the only one there is."""
    named = next((entry for entry in statuses if entry.get("name") == ENGINE_CONTAINER), None)
    return named if named is not None else (statuses[0] if statuses else {})


def _port(spec: dict[str, Any]) -> int:
    for container in items(spec, "containers"):
        if container.get("name") == ENGINE_CONTAINER:
            for port in items(container, "ports"):
                return _count(port, "containerPort")
    return 0


def _deletion_asked(metadata: dict[str, Any]) -> int:
    """The deletionTimestamp lies the grace period ahead of the request (API conventions)."""
    due = instant(metadata.get("deletionTimestamp"))
    return due - 1000 * _count(metadata, "deletionGracePeriodSeconds") if due else 0


def _since(condition: dict[str, Any]) -> int:
    return instant(condition.get("lastTransitionTime"))


def _count(parent: dict[str, Any], key: str) -> int:
    value = parent.get(key)
    return value if isinstance(value, int) else 0
