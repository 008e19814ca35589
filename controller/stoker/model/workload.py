"""What replicas of a ModelService are made of: Deployments, or LeaderWorkerSets for groups.

A replica over several nodes is a group: a leader that serves and workers, one pod a node. Read
by every stage that names the workloads of a service.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.model.refs import ObjectRef

__all__ = [
    "GROUP_INDEX",
    "GROUP_KIND",
    "LWS_GROUP",
    "LWS_KIND",
    "LWS_VERSION",
    "WORKER_INDEX",
    "is_workload",
    "node_names",
    "nodes_told",
    "pods_each",
    "workload_ref",
]

LWS_GROUP = "leaderworkerset.x-k8s.io"
LWS_KIND = "LeaderWorkerSet"
LWS_VERSION = "v1"
GROUP_KIND = (LWS_GROUP, LWS_KIND)

GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
"""Label of its controller on pods: which group of the LeaderWorkerSet."""
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
"""Label of its controller on pods: 0 is the leader."""

_WORKLOADS = frozenset({("apps", "Deployment"), GROUP_KIND})


def workload_ref(namespace: str, name: str, *, grouped: bool) -> ObjectRef:
    """The LeaderWorkerSet or Deployment of that name."""
    if grouped:
        return ObjectRef(LWS_GROUP, LWS_KIND, namespace, name, LWS_VERSION)
    return ObjectRef("apps", "Deployment", namespace, name)


def nodes_told(nodes: Iterable[str]) -> str:
    """The nodes of a replica in one word, the leader's first: `n1`, or of a group `n1+n2`."""
    return "+".join(nodes)


def node_names(told: str) -> tuple[str, ...]:
    """The nodes again; none of an empty word."""
    return tuple(told.split("+")) if told else ()


def pods_each(body: dict[str, Any]) -> int:
    """Pods of one replica, as the manifest of a workload says."""
    template = (body.get("spec") or {}).get("leaderWorkerTemplate")
    size = template.get("size") if isinstance(template, dict) else 1
    return size if isinstance(size, int) and size > 1 else 1


def is_workload(ref: ObjectRef) -> bool:
    """Whether replicas of a service are made of objects of this kind."""
    return (ref.group, ref.kind) in _WORKLOADS
