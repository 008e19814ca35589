"""PodDisruptionBudget status of the in-memory cluster: how many evictions are allowed now.

In: a view. Out: each budget's status. With maxUnavailable or a percentage the expected count is
what the owning Deployments wish for; with a plain minAvailable it is the pods that stand.
"""

from __future__ import annotations

from typing import Any

from stoker.model.ports import Cluster
from stoker.model.workload import pods_each
from stoker.sim.deployment_status import desired_replicas
from stoker.sim.deployments import MANAGER
from stoker.sim.pods import is_active, is_ready
from stoker.sim.view import (
    DEPLOYMENT,
    LEADER_WORKER_SET,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    View,
    Writer,
    controller_of,
    labels_of,
    selects,
    uid_of,
)

__all__ = ["budgets"]


def budgets(view: View, cluster: Cluster, _now_ms: int) -> int:
    """One round over all budgets; gives the number of writes."""
    writer = Writer(cluster, MANAGER)
    for body in view.of(POD_DISRUPTION_BUDGET):
        pods = [
            pod
            for pod in view.of(POD, body["metadata"]["namespace"])
            if is_active(pod) and selects(body["spec"].get("selector"), labels_of(pod))
        ]
        expected, desired = _expected_and_desired(body["spec"], pods, view)
        healthy = sum(is_ready(pod) for pod in pods)
        after = {
            "expectedPods": expected,
            "desiredHealthy": desired,
            "currentHealthy": healthy,
            "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
            "observedGeneration": body["metadata"].get("generation"),
        }
        before = body.get("status") or {}
        if any(before.get(name) != value for name, value in after.items()):
            writer.patch(POD_DISRUPTION_BUDGET.ref(body), {"status": after}, subresource="status")
    return writer.writes


def _expected_and_desired(
    spec: dict[str, Any], pods: list[dict[str, Any]], view: View
) -> tuple[int, int]:
    most = spec.get("maxUnavailable")
    least = spec.get("minAvailable")
    if most is not None:
        expected = _wished(pods, view)
        return expected, max(0, expected - _share(most, expected))
    if isinstance(least, str):
        expected = _wished(pods, view)
        return expected, _share(least, expected)
    return len(pods), int(least or 0)


def _wished(pods: list[dict[str, Any]], view: View) -> int:
    """Pods that every Deployment, ReplicaSet or LeaderWorkerSet which owns one of them wishes."""
    sets = {uid_of(s): s for s in view.of(REPLICA_SET)}
    groups = {uid_of(s): s for s in view.of(LEADER_WORKER_SET)}
    owners = {uid_of(d): d for d in view.of(DEPLOYMENT)}
    top = {}
    for pod in pods:
        group = groups.get(controller_of(pod))
        if group is not None:
            top[uid_of(group)] = group
        replica_set = sets.get(controller_of(pod))
        if replica_set is None:
            continue
        owner = owners.get(controller_of(replica_set), replica_set)
        top[uid_of(owner)] = owner
    return sum(desired_replicas(owner) * pods_each(owner) for owner in top.values())


def _share(value: int | str, total: int) -> int:
    """Percentages round up, for both bounds."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-total * int(value[:-1]) // 100)
    return int(value)
