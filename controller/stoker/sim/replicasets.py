"""The ReplicaSet controller of the in-memory cluster: as many pods as wished, no more.

In: a view. Out: pods made, adopted and deleted, and each ReplicaSet's status. Which pod goes
first follows the Kubernetes order: unassigned, Pending, not ready, lower deletion cost, more
siblings on the node, ready for a shorter time, more restarts, newer.
"""

from __future__ import annotations

import hashlib
from typing import Any

from stoker.model.ports import Cluster
from stoker.sim.deployment_status import desired_replicas
from stoker.sim.deployments import MANAGER
from stoker.sim.pods import (
    is_active,
    is_available,
    is_ready,
    phase_of,
    ready_since_ms,
    restarts_of,
)
from stoker.sim.view import (
    POD,
    REPLICA_SET,
    View,
    Writer,
    controller_of,
    is_dying,
    labels_of,
    owner_reference,
    selects,
    uid_of,
)

__all__ = ["DELETION_COST", "replica_sets", "victims"]

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


def replica_sets(view: View, cluster: Cluster, now_ms: int) -> int:
    """One round over all ReplicaSets; gives the number of writes."""
    writer = Writer(cluster, MANAGER)
    for body in view.of(REPLICA_SET):
        pods = _claim(body, view, writer)
        active = [p for p in pods if is_active(p)]
        if not is_dying(body):
            _count_out(body, active, view, writer, now_ms)
        _report(body, active, writer, now_ms)
    return writer.writes


def victims(pods: list[dict[str, Any]], count: int) -> tuple[dict[str, Any], ...]:
    """The pods that a scale-down deletes, first one first; ties fall to the name."""
    siblings: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName") or ""
        siblings[node] = siblings.get(node, 0) + 1

    def order(pod: dict[str, Any]) -> tuple[Any, ...]:
        node = pod["spec"].get("nodeName") or ""
        ready = is_ready(pod)
        cost = int((pod["metadata"].get("annotations") or {}).get(DELETION_COST) or 0)
        created = pod["metadata"].get("creationTimestamp") or ""
        return (
            bool(node),
            _PHASE_ORDER.get(phase_of(pod), 1),
            ready,
            cost,
            -siblings[node],
            -ready_since_ms(pod) if ready else 0,
            -restarts_of(pod),
            tuple(-ord(c) for c in created),
            pod["metadata"]["name"],
        )

    return tuple(sorted(pods, key=order)[:count])


def _claim(body: dict[str, Any], view: View, writer: Writer) -> list[dict[str, Any]]:
    """Our pods: owned ones that still match, orphans that match; the rest is let go."""
    mine = []
    for pod in view.owned(POD, body["metadata"]["namespace"], uid_of(body)):
        owner = controller_of(pod)
        matches = selects(body["spec"].get("selector"), labels_of(pod))
        if owner == uid_of(body):
            if matches:
                mine.append(pod)
            elif not is_dying(pod):
                _set_owner(pod, None, writer)
        elif owner or not matches or is_dying(body) or not is_active(pod):
            continue
        elif _set_owner(pod, owner_reference(REPLICA_SET, body), writer):
            mine.append(pod)
    return mine


def _set_owner(pod: dict[str, Any], owner: dict[str, Any] | None, writer: Writer) -> bool:
    references = None if owner is None else [owner]
    patch = {"metadata": {"uid": uid_of(pod), "ownerReferences": references}}
    return writer.patch(POD.ref(pod), patch)


def _count_out(
    body: dict[str, Any],
    active: list[dict[str, Any]],
    view: View,
    writer: Writer,
    now_ms: int,
) -> None:
    missing = desired_replicas(body) - len(active)
    if missing > 0:
        taken = {p["metadata"]["name"] for p in view.of(POD, body["metadata"]["namespace"])}
        for name in _new_names(body, taken, missing, now_ms):
            writer.create(_pod(body, name))
    elif missing < 0:
        for pod in victims(active, -missing):
            writer.delete(POD.ref(pod), uid_of(pod))


def _new_names(body: dict[str, Any], taken: set[str], count: int, now_ms: int) -> list[str]:
    """Names as the API server would generate them, but the same in every run."""
    names: list[str] = []
    attempt = 0
    while len(names) < count:
        seed = f"{uid_of(body)}/{now_ms}/{attempt}"
        digest = hashlib.sha256(seed.encode()).digest()
        suffix = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])
        name = f"{body['metadata']['name'][:57]}-{suffix}"
        if name not in taken and name not in names:
            names.append(name)
        attempt += 1
    return names


def _pod(body: dict[str, Any], name: str) -> dict[str, Any]:
    template = body["spec"].get("template") or {}
    meta = template.get("metadata") or {}
    kept = {key: meta[key] for key in ("labels", "annotations", "finalizers") if meta.get(key)}
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": {
            **kept,
            "name": name,
            "namespace": body["metadata"]["namespace"],
            "generateName": f"{body['metadata']['name']}-",
            "ownerReferences": [owner_reference(REPLICA_SET, body)],
        },
        "spec": {**(template.get("spec") or {})},
        "status": {"phase": "Pending"},
    }


def _report(
    body: dict[str, Any], active: list[dict[str, Any]], writer: Writer, now_ms: int
) -> None:
    wait_seconds = int(body["spec"].get("minReadySeconds") or 0)
    labels = (body["spec"].get("template", {}).get("metadata") or {}).get("labels") or {}
    full = [p for p in active if labels.items() <= labels_of(p).items()]
    after = {
        "replicas": len(active),
        "fullyLabeledReplicas": len(full) or None,
        "readyReplicas": sum(is_ready(p) for p in active) or None,
        "availableReplicas": sum(is_available(p, wait_seconds, now_ms) for p in active) or None,
        "observedGeneration": body["metadata"].get("generation"),
    }
    before = body.get("status") or {}
    if any(before.get(name) != value for name, value in after.items()):
        writer.patch(REPLICA_SET.ref(body), {"status": after}, subresource="status")
