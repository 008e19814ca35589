"""What a change of fields does to running pods: nothing, scale, move, restart, recreate.

The kind and the changed paths come in, the worst `Impact` goes out. Used by diff for every
changed object, so that nobody merges a restart without having read the word.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.model.change import Impact
from stoker.objects.kinds import pod_template_paths

__all__ = ["impact_of"]

Keys = tuple[str, ...]

_ORDER = (Impact.NONE, Impact.SCALE, Impact.PLACEMENT, Impact.RESTART, Impact.RECREATE)

_PLACING = frozenset(
    {
        "affinity",
        "nodeName",
        "nodeSelector",
        "schedulerName",
        "schedulingGates",
        "tolerations",
        "topologySpreadConstraints",
    }
)
"""Fields of a pod spec that only say where it runs."""

_IMMUTABLE: dict[tuple[str, str], tuple[Keys, ...]] = {
    ("", "PersistentVolumeClaim"): (
        ("spec", "accessModes"),
        ("spec", "dataSource"),
        ("spec", "dataSourceRef"),
        ("spec", "selector"),
        ("spec", "storageClassName"),
        ("spec", "volumeMode"),
        ("spec", "volumeName"),
    ),
    ("", "Secret"): (("type",),),
    ("", "Service"): (("spec", "clusterIP"), ("spec", "clusterIPs")),
    ("apps", "DaemonSet"): (("spec", "selector"),),
    ("apps", "Deployment"): (("spec", "selector"),),
    ("apps", "ReplicaSet"): (("spec", "selector"),),
    ("apps", "StatefulSet"): (
        ("spec", "podManagementPolicy"),
        ("spec", "selector"),
        ("spec", "serviceName"),
        ("spec", "volumeClaimTemplates"),
    ),
    ("batch", "Job"): (
        ("spec", "completionMode"),
        ("spec", "completions"),
        ("spec", "selector"),
        ("spec", "template"),
    ),
    ("node.k8s.io", "RuntimeClass"): (("handler",),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
    ("scheduling.k8s.io", "PriorityClass"): (("value",), ("preemptionPolicy",)),
    ("storage.k8s.io", "StorageClass"): (
        ("parameters",),
        ("provisioner",),
        ("reclaimPolicy",),
        ("volumeBindingMode",),
    ),
}
"""Fields that the API server refuses to change (ssa-facts 77 and the API's documentation)."""

_MUTABLE_IN_POD = frozenset({"activeDeadlineSeconds", "terminationGracePeriodSeconds"})


def impact_of(group: str, kind: str, paths: Iterable[Keys], *, frozen_data: bool = False) -> Impact:
    """The worst that a write of these paths does.

    `paths` are map keys and bracketed list items from the top. `frozen_data` says that the
    live ConfigMap or Secret has `immutable: true`. Templates of CronJobs only concern later
    runs and restart nothing.
    """
    found = {_one(group, kind, path, frozen_data=frozen_data) for path in paths}
    return max(found, key=_ORDER.index, default=Impact.NONE)


def _one(group: str, kind: str, path: Keys, *, frozen_data: bool) -> Impact:
    if any(path[: len(fixed)] == fixed for fixed in _IMMUTABLE.get((group, kind), ())):
        return Impact.RECREATE
    if frozen_data and path[:1] in {("data",), ("binaryData",), ("immutable",)}:
        return Impact.RECREATE
    if (group, kind) == ("", "Pod"):
        return _in_pod(path)
    if (group, kind) == ("batch", "CronJob"):
        return Impact.NONE
    for template in pod_template_paths(group, kind):
        depth = len(template)
        if path[:depth] == template[: len(path)]:
            inside = path[depth:]
            placing = inside[:1] == ("spec",) and len(inside) > 1 and inside[1] in _PLACING
            return Impact.PLACEMENT if placing else Impact.RESTART
    scaled = path in {("spec", "replicas"), ("spec", "parallelism")}
    return Impact.SCALE if scaled and pod_template_paths(group, kind) else Impact.NONE


def _in_pod(path: Keys) -> Impact:
    """A bare pod: images change in place by a restart of the container, little else at all."""
    if path[:1] != ("spec",) or (len(path) > 1 and path[1] in _MUTABLE_IN_POD):
        return Impact.NONE
    if path[1:2] == ("tolerations",):
        return Impact.NONE
    return Impact.RESTART if path[-1] == "image" else Impact.RECREATE
