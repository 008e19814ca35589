"""Health of Pods and of what makes them: the rules of kstatus, and Argo CD's for pods.

Called by health after its general rules. A workload scaled to 0 is healthy as soon as its
pods are gone (cases.md row 89).
"""

from __future__ import annotations

from typing import Any

from stoker.model.outcome import Health
from stoker.objects.health_fields import (
    HealthVerdict,
    condition,
    degraded,
    healthy,
    integer,
    items,
    mapping,
    progressing,
    text,
)

__all__ = ["daemon_set", "deployment", "pod", "replica_set", "stateful_set"]


def deployment(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a Deployment: its deadline, then new pods made, old ones gone, all available."""
    spec, status = mapping(manifest, "spec"), mapping(manifest, "status")
    rollout = condition(manifest, "Progressing")
    if text(rollout, "reason") == "ProgressDeadlineExceeded":
        return degraded("ProgressDeadlineExceeded", text(rollout, "message"))
    if spec.get("paused") is True:
        return HealthVerdict(Health.SUSPENDED, "Paused", "spec.paused is set")
    wanted = integer(spec, "replicas", 1)
    updated = integer(status, "updatedReplicas", 0)
    present = integer(status, "replicas", 0)
    if updated < wanted:
        return _few("UpdatingPods", "of the new template", updated, wanted, manifest)
    if present > updated:
        return progressing("OldPods", f"{present - updated} pods of an older template remain")
    return _available(manifest, wanted, integer(status, "availableReplicas", 0))


def replica_set(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a ReplicaSet: as many pods as wanted, all available."""
    spec, status = mapping(manifest, "spec"), mapping(manifest, "status")
    wanted = integer(spec, "replicas", 1)
    present = integer(status, "replicas", 0)
    if present > wanted:
        return progressing("ExtraPods", f"{present} pods, {wanted} wanted")
    return _available(manifest, wanted, integer(status, "availableReplicas", 0))


def stateful_set(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a StatefulSet; old and new revision side by side is not done (row 83)."""
    spec, status = mapping(manifest, "spec"), mapping(manifest, "status")
    wanted = integer(spec, "replicas", 1)
    present = integer(status, "replicas", 0)
    ready = integer(status, "readyReplicas", 0)
    if present > wanted:
        return progressing("ExtraPods", f"{present} pods, {wanted} wanted")
    if ready < wanted:
        return _few("PodsNotReady", "Ready", ready, wanted, manifest)
    if wanted == 0:
        return healthy("ScaledToZero")
    if integer(spec, "minReadySeconds", 0) > 0:
        available = integer(status, "availableReplicas", 0)
        if available < wanted:
            return _few("PodsNotAvailable", "available", available, wanted, manifest)
    strategy = mapping(spec, "updateStrategy")
    if text(strategy, "type") == "OnDelete":
        return healthy("OnDelete", "pods are updated when they are deleted")
    updated = integer(status, "updatedReplicas", 0)
    partition = integer(mapping(strategy, "rollingUpdate"), "partition", 0)
    if partition > 0:
        start = integer(mapping(spec, "ordinals"), "start", 0)
        due = max(0, wanted - max(0, partition - start))
        if updated < due:
            return _few("UpdatingPods", "of the new revision", updated, due, manifest)
        return healthy("PartitionReached", f"{updated} pods updated, partition {partition}")
    new, old = text(status, "updateRevision"), text(status, "currentRevision")
    if new != old:
        return progressing("UpdatingPods", f"{updated} of {wanted} pods of revision {new}")
    return healthy()


def daemon_set(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a DaemonSet: on every node it belongs on, updated and available."""
    spec, status = mapping(manifest, "spec"), mapping(manifest, "status")
    wanted = integer(status, "desiredNumberScheduled", -1)
    if wanted < 0:
        return progressing("NotObserved", "its controller has not counted nodes yet")
    present = integer(status, "currentNumberScheduled", wanted)
    if present < wanted:
        return _few("PodsMissing", "made", present, wanted, manifest)
    updated = integer(status, "updatedNumberScheduled", 0)
    if text(mapping(spec, "updateStrategy"), "type") != "OnDelete" and updated < wanted:
        return _few("UpdatingPods", "of the new template", updated, wanted, manifest)
    available = integer(status, "numberAvailable", 0)
    if available < wanted:
        return _few("PodsNotAvailable", "available", available, wanted, manifest)
    return healthy()


def pod(manifest: dict[str, Any]) -> HealthVerdict:
    """Judge a Pod by phase, Ready condition and what its containers wait for."""
    status = mapping(manifest, "status")
    match text(status, "phase"):
        case "Succeeded":
            return healthy("Completed")
        case "Failed":
            return degraded(text(status, "reason", "PodFailed"), text(status, "message"))
        case "Running" if text(condition(manifest, "Ready"), "status") == "True":
            return healthy()
        case "Unknown":
            return HealthVerdict(Health.UNKNOWN, "NodeLost", text(status, "message"))
        case phase:
            return _pod_on_its_way(manifest, phase or "Pending")


def _pod_on_its_way(manifest: dict[str, Any], phase: str) -> HealthVerdict:
    status = mapping(manifest, "status")
    for lists in ("initContainerStatuses", "containerStatuses"):
        for entry in items(status, lists):
            waiting = mapping(mapping(entry, "state"), "waiting")
            reason = text(waiting, "reason")
            if _is_failure(reason):
                where = f"container {text(entry, 'name')}: {text(waiting, 'message')}"
                return degraded(reason, where.rstrip(": "))
    scheduled = condition(manifest, "PodScheduled")
    if text(scheduled, "status") == "False":
        return progressing(text(scheduled, "reason", "Unschedulable"), text(scheduled, "message"))
    return progressing("NotReady" if phase == "Running" else phase)


def _is_failure(reason: str) -> bool:
    """Whether a waiting reason is one of the kubelet's failures, not of its steps."""
    return reason.startswith("Err") or reason.endswith(("Error", "BackOff"))


def _available(manifest: dict[str, Any], wanted: int, available: int) -> HealthVerdict:
    if available < wanted:
        return _few("PodsNotAvailable", "available", available, wanted, manifest)
    return healthy("ScaledToZero") if wanted == 0 else healthy()


def _few(reason: str, what: str, have: int, want: int, manifest: dict[str, Any]) -> HealthVerdict:
    """Not enough pods yet; says why none can be made (quota, admission) where that is known."""
    message = f"{have} of {want} pods {what}"
    failure = condition(manifest, "ReplicaFailure")
    if text(failure, "status") == "True":
        return progressing("ReplicaFailure", f"{message}: {text(failure, 'message')}")
    return progressing(reason, message)
