"""What stands of each ModelService: its live Deployments, and each pod's phase.

The projection keeps `DeploymentFacts`; observe calls `services_from` with the caches of
Deployments and pods. Pods belong to the Deployment whose placement label they carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.errors import StokerError
from stoker.model.fleet import Desired, ModelService
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.shape import Resources
from stoker.model.snapshot import (
    DrainState,
    LivePlacement,
    Refusal,
    Replica,
    ReplicaPhase,
    ServiceState,
)
from stoker.objects import names
from stoker.objects.health_fields import condition, integer, mapping, text
from stoker.objects.requests import requests_of_spec
from stoker.objects.start_failures import Blame, blame_for
from stoker.observe.groups import grouped
from stoker.observe.pods import OwnPod, PodFacts, engine_address, instant

__all__ = [
    "DeploymentFacts",
    "LoadProbe",
    "deployment_facts",
    "group_facts",
    "phase_of",
    "services_from",
]

LoadProbe = Callable[[str], int | None]
"""Running plus waiting requests of the engine at `host:port`; None when it does not answer."""

DEFAULT_DEADLINE_MS = 1_200_000
"""coldStart.deadline of services that the files no longer name (the schema's default)."""
DEFAULT_PORT = 8000
FRESH_REFUSAL_MS = 3_600_000
"""Older pods that were refused are left where they are for long (the pod collector keeps
12,500) and say nothing any more."""
MOST_RESTARTS = 1
"""More restarts than this before Ready are a crash loop in the making (design section 5)."""


@dataclass(frozen=True, slots=True)
class DeploymentFacts:
    """A Deployment or LeaderWorkerSet that our owner mark proves to be of a unit."""

    unit: UnitRef
    uid: str
    placement: str
    rev: str
    node: str
    node_uid: str
    replicas: int
    terminating: bool
    requests: Resources | None
    """What one pod of its template asks for; None when that cannot be read."""
    observed: bool = True
    """The Deployment controller has seen its newest spec."""
    counted_pods: int = 0
    """Pods that its status counts, terminating ones too where the server tells them; of a
    LeaderWorkerSet its groups.
    """
    size: int = 1
    """Pods of one replica."""
    nodes: tuple[str, ...] = ()
    """Of a group: the decided nodes, the leader's first."""
    domain: str = ""
    unready_ms: int = 0
    """Since when a LeaderWorkerSet has not had all its groups Ready; 0 for not known."""


def deployment_facts(raw: dict[str, Any], unit: UnitRef) -> DeploymentFacts:
    """Keep what decisions need of a raw Deployment of ours."""
    metadata, spec = mapping(raw, "metadata"), mapping(raw, "spec")
    status = mapping(raw, "status")
    annotations = mapping(metadata, "annotations")
    selector = mapping(mapping(spec, "selector"), "matchLabels")
    replicas = spec.get("replicas")
    return DeploymentFacts(
        unit=unit,
        uid=text(metadata, "uid"),
        placement=text(selector, names.PLACEMENT_LABEL),
        rev=text(annotations, names.REV),
        node=text(annotations, names.NODE),
        node_uid=text(annotations, names.NODE_UID),
        replicas=replicas if isinstance(replicas, int) else 1,
        terminating=bool(metadata.get("deletionTimestamp")),
        requests=_template_requests(spec),
        observed=integer(status, "observedGeneration", 0) >= integer(metadata, "generation", 0),
        counted_pods=integer(status, "replicas", 0) + integer(status, "terminatingReplicas", 0),
    )


def group_facts(raw: dict[str, Any], unit: UnitRef) -> DeploymentFacts | None:
    """The same of a raw LeaderWorkerSet of ours; None for one without a size."""
    metadata = mapping(raw, "metadata")
    template = mapping(mapping(raw, "spec"), "leaderWorkerTemplate")
    size = integer(template, "size", 1)
    annotations = mapping(metadata, "annotations")
    leader = mapping(template, "leaderTemplate") or mapping(template, "workerTemplate")
    labels = mapping(mapping(leader, "metadata"), "labels")
    available = condition(raw, "Available")
    since = "creationTimestamp" if not available else "lastTransitionTime"
    whole = available.get("status") == "True"
    if size < 2:
        return None
    return replace(
        deployment_facts(raw, unit),
        placement=text(labels, names.PLACEMENT_LABEL),
        requests=_template_requests({"template": leader}),
        size=size,
        nodes=tuple(filter(None, text(annotations, names.NODES).split(","))),
        domain=text(annotations, names.DOMAIN),
        unready_ms=0 if whole else instant((available or metadata).get(since)),
    )


def services_from(
    deployments: Iterable[tuple[ObjectRef, DeploymentFacts]],
    pods: Iterable[tuple[tuple[str, str], PodFacts]],
    scalers: Mapping[ObjectRef, str],
    desired: Desired,
    load_probe: LoadProbe | None,
    now_ms: int,
) -> tuple[ServiceState, ...]:
    """Every ModelService of which something stands, sorted by ref. Pods come by namespace
    and name.

    Pods that ended (evicted, out of memory on the node) are no replicas: their ReplicaSet has
    replaced them. `load_probe` is asked for draining pods only.
    """
    units = {unit.ref: unit.spec for unit in desired.units}
    members: dict[tuple[str, str, str], list[tuple[str, OwnPod, str]]] = {}
    over: dict[tuple[str, str, str], list[Refusal]] = {}
    for (namespace, name), facts in pods:
        own = facts.own
        if own is None:
            continue
        place = (namespace, own.service, own.workload or own.placement)
        if not facts.finished:
            members.setdefault(place, []).append((name, own, facts.node))
        elif _is_refusal(own, facts.node, now_ms):
            over.setdefault(place, []).append(Refusal(facts.node, own.refused, own.created_ms))
    standing: dict[UnitRef, list[LivePlacement]] = {}
    for ref, deployment in deployments:
        if deployment.unit.kind != "ModelService":
            continue
        spec = units.get(deployment.unit)
        service = spec if isinstance(spec, ModelService) else None
        places = _places(ref, deployment)
        found = sorted(
            (pod for place in places for pod in members.get(place, ())), key=lambda item: item[0]
        )
        seen = tuple(
            _replica(name, pod, node, service, load_probe, now_ms) for name, pod, node in found
        )
        if deployment.size > 1:
            indices = [(pod.group, pod.worker) for _, pod, _ in found]
            seen = grouped(
                ref.name,
                deployment.size,
                [(*at, pod) for at, pod in zip(indices, seen, strict=True)],
                unready_ms=deployment.unready_ms,
                deadline_ms=_deadline_ms(service),
                now_ms=now_ms,
            )
        standing.setdefault(deployment.unit, []).append(
            LivePlacement(
                name=ref.name,
                uid=deployment.uid,
                rev=deployment.rev,
                node=deployment.node,
                node_uid=deployment.node_uid,
                replicas=deployment.replicas,
                pods=seen,
                terminating=deployment.terminating,
                externally_scaled=scalers.get(ref, ""),
                requests=deployment.requests,
                unsettled=not deployment.observed or deployment.counted_pods > len(seen),
                size=deployment.size,
                nodes=deployment.nodes,
                domain=deployment.domain,
                refusals=_newest(each for place in places for each in over.get(place, ())),
            )
        )
    return tuple(
        ServiceState(unit, tuple(sorted(standing[unit], key=lambda place: place.name)))
        for unit in sorted(standing)
    )


def _is_refusal(own: OwnPod, node: str, now_ms: int) -> bool:
    fresh = now_ms - own.created_ms <= FRESH_REFUSAL_MS
    return bool(node) and fresh and blame_for(own.refused, refused=True) is Blame.NODE


def _newest(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """The newest of each node: a ReplicaSet makes them without end."""
    found: dict[str, Refusal] = {}
    for each in refusals:
        known = found.get(each.node)
        if known is None or (each.created_ms, each.reason) > (known.created_ms, known.reason):
            found[each.node] = each
    return tuple(found[node] for node in sorted(found))


def _places(ref: ObjectRef, deployment: DeploymentFacts) -> tuple[tuple[str, str, str], ...]:
    """Where the Deployment's pods are filed: namespace, service, and placement or workload.

    An adopted Deployment selects by labels that are not ours: its pods are known by its
    name, and by our labels once they were made from a template of ours.
    """
    space, service = ref.namespace, deployment.unit.name
    if deployment.placement:
        return ((space, service, deployment.placement),)
    return (space, "", ref.name), (space, service, names.placement_label(service, "", ""))


def _template_requests(spec: dict[str, Any]) -> Resources | None:
    try:
        return requests_of_spec(mapping(mapping(spec, "template"), "spec"))
    except ValueError:
        return None


def _deadline_ms(service: ModelService | None) -> int:
    return DEFAULT_DEADLINE_MS if service is None else service.cold_start_deadline_ms


def _replica(
    name: str,
    pod: OwnPod,
    node: str,
    service: ModelService | None,
    load_probe: LoadProbe | None,
    now_ms: int,
) -> Replica:
    deadline_ms = _deadline_ms(service)
    phase, since_ms, reason = phase_of(pod, node, deadline_ms, now_ms)
    return Replica(
        name=name,
        uid=pod.uid,
        node=node,
        phase=phase,
        since_ms=since_ms,
        created_ms=pod.created_ms,
        restarts=pod.restarts,
        reason=reason,
        traffic=pod.traffic,
        drain=_drain(pod, service, load_probe, now_ms),
        scheduled_ms=pod.scheduled_ms,
        started_ms=pod.started_ms,
    )


def phase_of(
    pod: OwnPod, node: str, deadline_ms: int, now_ms: int
) -> tuple[ReplicaPhase, int, str]:
    """Phase, since when, and why (the kubelet's or scheduler's own word, or ours).

    A start has `deadline_ms` from creation while unbound, and again from the instant its
    Ready condition was first written or last lost: time spent waiting for a node is not
    held against the engine.
    """
    if pod.deleted_ms:
        return ReplicaPhase.TERMINATING, pod.deleted_ms, pod.waiting
    if pod.ready:
        return ReplicaPhase.READY, pod.ready_changed_ms or pod.created_ms, ""
    if pod.broken:
        return ReplicaPhase.STUCK, pod.ready_changed_ms or pod.created_ms, pod.broken
    if pod.restarts > MOST_RESTARTS:
        return ReplicaPhase.STUCK, pod.ready_changed_ms or pod.created_ms, "Restarting"
    began_ms = max(pod.created_ms, pod.scheduled_ms, pod.ready_changed_ms if node else 0)
    if now_ms - began_ms > deadline_ms:
        why = "DeadlineExceeded" if node else (pod.waiting or "Unscheduled")
        return ReplicaPhase.STUCK, began_ms + deadline_ms, why
    if not node:
        waits = ReplicaPhase.NODE_PROVISIONING if pod.nominated else ReplicaPhase.PENDING
        return waits, pod.created_ms, pod.waiting
    if pod.started_ms:
        return ReplicaPhase.STARTING, max(pod.started_ms, pod.ready_changed_ms), pod.waiting
    since_ms = pod.scheduled_ms or pod.created_ms
    if pod.initialising:
        return ReplicaPhase.STARTING, since_ms, pod.waiting
    if pod.kubelet_seen:
        return ReplicaPhase.IMAGE_PULL, since_ms, pod.waiting
    return ReplicaPhase.PENDING, since_ms, pod.waiting


def _drain(
    pod: OwnPod, service: ModelService | None, load_probe: LoadProbe | None, now_ms: int
) -> DrainState | None:
    """How far a drain is. An annotation that is no time counts from now: nothing is cut short."""
    if not pod.draining_since:
        return None
    since_ms = instant(pod.draining_since, now_ms)
    return DrainState(since_ms, _in_flight(pod, service, load_probe))


def _in_flight(
    pod: OwnPod, service: ModelService | None, load_probe: LoadProbe | None
) -> int | None:
    if load_probe is None or not pod.address:
        return None
    port = DEFAULT_PORT if service is None else service.service_port
    try:
        return load_probe(engine_address(pod, port))
    except StokerError:
        return None
