"""Whose fault a failed start is, by the reason that Kubernetes gives: one table, with its sources.

A reason of a waiting container, of a refused pod, or a word of observe's comes in; who is to
blame goes out. Read by observe for refused pods and by decide for replicas that are stuck.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["FAILURES", "REFUSED_PREFIX", "Blame", "FailedStart", "blame_for"]


class Blame(StrEnum):
    """NODE: the rev is innocent. REV: the node is. EITHER: the node, until the same rev fails on
    another one. NOBODY: it says nothing about the next start.
    """

    NODE = "Node"
    REV = "Rev"
    EITHER = "Either"
    NOBODY = "Nobody"


@dataclass(frozen=True, slots=True)
class FailedStart:
    """One reason, who it blames, and where the reason is defined or reported."""

    reason: str
    blame: Blame
    source: str


_IMAGES = "kubernetes pkg/kubelet/images/types.go"
_SYNC = "kubernetes pkg/kubelet/container/sync_result.go"
_CONTAINER = "kubernetes pkg/kubelet/kuberuntime/kuberuntime_container.go"
_ADMIT = "kubernetes pkg/kubelet/lifecycle/predicate.go"

REFUSED_PREFIX = "OutOf"
"""`OutOfcpu`, `OutOfnvidia.com/gpu`: the kubelet counts less than the scheduler (predicate.go)."""

FAILURES = (
    # Waiting reasons of containers: a wrong image or a node that cannot pull, nobody can tell.
    FailedStart("CrashLoopBackOff", Blame.EITHER, _SYNC),
    FailedStart("OOMKilled", Blame.EITHER, "kubernetes pkg/kubelet/kuberuntime (exit reason)"),
    FailedStart("ErrImagePull", Blame.EITHER, _IMAGES),
    FailedStart("ImagePullBackOff", Blame.EITHER, _IMAGES),
    FailedStart("ErrImageNeverPull", Blame.EITHER, _IMAGES),
    FailedStart("CreateContainerError", Blame.EITHER, _CONTAINER),
    FailedStart("RunContainerError", Blame.EITHER, _SYNC),
    # What no node can mend: the name of the image, a key of a Secret or ConfigMap.
    FailedStart("InvalidImageName", Blame.REV, _IMAGES),
    FailedStart("CreateContainerConfigError", Blame.REV, _CONTAINER),
    # Words of observe's own.
    FailedStart("Restarting", Blame.EITHER, "observe.replicas: restarts before Ready"),
    FailedStart(
        "DeadlineExceeded", Blame.EITHER, "observe.replicas: coldStart.deadline, on a node"
    ),
    # No node took the pod although one had room: cases.md row 161.
    FailedStart("Unschedulable", Blame.NODE, "kubernetes PodScheduled condition"),
    FailedStart("Unscheduled", Blame.NODE, "observe.replicas: coldStart.deadline, on no node"),
    # Pods that a kubelet refused or threw out; their ReplicaSet makes the next one at once.
    FailedStart("UnexpectedAdmissionError", Blame.NODE, "kubernetes#108152, kubernetes#97131"),
    FailedStart("TopologyAffinityError", Blame.NODE, "kubernetes pkg/kubelet/cm/topologymanager"),
    FailedStart("InvalidNodeInfo", Blame.NODE, _ADMIT),
    FailedStart("UnknownReason", Blame.NODE, _ADMIT),
    FailedStart("UnexpectedPredicateFailureType", Blame.NODE, _ADMIT),
    FailedStart("NodeAffinity", Blame.NODE, _ADMIT),
    FailedStart("Evicted", Blame.NODE, "kubernetes pkg/kubelet/eviction (pressure on the node)"),
    # The machine stops, or something more important came: no word about the next start.
    FailedStart("Terminated", Blame.NOBODY, "kubernetes pkg/kubelet/nodeshutdown"),
    FailedStart("NodeShutdown", Blame.NOBODY, "kubernetes pkg/kubelet/nodeshutdown"),
    FailedStart("Preempting", Blame.NOBODY, "kubernetes pkg/kubelet/preemption"),
    FailedStart("SchedulingGated", Blame.NOBODY, "kubernetes PodScheduled condition"),
)
"""A reason that is not here and leaves a replica stuck blames EITHER."""

_BLAME = {failure.reason: failure.blame for failure in FAILURES}


def blame_for(reason: str, *, refused: bool = False) -> Blame:
    """Who is to blame. Of a `refused` pod, a reason that is not in the table blames nobody."""
    if reason.startswith(REFUSED_PREFIX):
        return Blame.NODE
    return _BLAME.get(reason, Blame.NOBODY if refused else Blame.EITHER)
