"""The LeaderWorkerSet controller of the in-memory cluster, and a definition of the kind.

In: a view. Out: a leader and workers for each group, the whole group anew when a pod of it fails,
is restarted or deleted (RecreateGroupOnPodRestart), and status. The original puts StatefulSets
between; here pods are owned by the LeaderWorkerSet itself. Names, labels, environment and status
are as kubernetes-sigs/lws documents them (API v1).
"""

from __future__ import annotations

import hashlib
from typing import Any

from stoker.model.codec import canonical_json
from stoker.model.ports import Cluster
from stoker.model.times import rfc3339
from stoker.model.workload import GROUP_INDEX, LWS_GROUP, LWS_KIND, WORKER_INDEX
from stoker.sim.deployment_status import desired_replicas
from stoker.sim.pods import condition, is_active, is_ready, restarts_of
from stoker.sim.view import (
    LEADER_WORKER_SET,
    POD,
    SERVICE,
    View,
    Writer,
    controller_of,
    is_dying,
    labels_of,
    owner_reference,
    uid_of,
)

__all__ = ["MANAGER", "group_definition", "leader_worker_sets"]

MANAGER = "leaderworkerset"
_PREFIX = "leaderworkerset.sigs.k8s.io"
_REVISION = f"{_PREFIX}/template-revision-hash"


def group_definition() -> dict[str, Any]:
    """A CustomResourceDefinition of the kind: the fields that matter here, any others allowed."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {
        "type": "object",
        "properties": {"replicas": {"type": "integer", "default": 1}},
        "x-kubernetes-preserve-unknown-fields": True,
    }
    schema = {"type": "object", "properties": {"spec": spec, "status": anything}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.hpaPodSelector",
            },
        },
    }
    names = {
        "kind": LWS_KIND,
        "plural": "leaderworkersets",
        "singular": "leaderworkerset",
        "shortNames": ["lws"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"leaderworkersets.{LWS_GROUP}"},
        "spec": {"group": LWS_GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def leader_worker_sets(view: View, cluster: Cluster, now_ms: int) -> int:
    """One round over all LeaderWorkerSets; gives the number of writes."""
    writer = Writer(cluster, MANAGER)
    for body in view.of(LEADER_WORKER_SET):
        if not is_dying(body):
            _reconcile(body, view, writer, now_ms)
    return writer.writes


def _reconcile(body: dict[str, Any], view: View, writer: Writer, now_ms: int) -> None:
    _headless_service(body, view, writer)
    groups: dict[int, list[dict[str, Any]]] = {}
    for pod in view.of(POD, body["metadata"]["namespace"]):
        if controller_of(pod) == uid_of(body):
            groups.setdefault(int(labels_of(pod)[GROUP_INDEX]), []).append(pod)
    wanted = desired_replicas(body)
    for number in sorted(set(groups) | set(range(wanted))):
        pods = groups.get(number, [])
        if number >= wanted or _is_broken(body, pods):
            _delete(pods, writer)
        elif not pods or all(map(is_active, pods)):
            _fill(body, number, pods, writer)
    _roll(body, groups, writer)
    _report(body, groups, writer, now_ms)


def _size(body: dict[str, Any]) -> int:
    return int(body["spec"]["leaderWorkerTemplate"].get("size") or 1)


def _is_broken(body: dict[str, Any], pods: list[dict[str, Any]]) -> bool:
    """Whether the group has to start anew: some pod ended, goes, was restarted, or is missed."""
    missed = len(pods) < _size(body) and any(is_ready(pod) for pod in pods)
    return missed or any(not is_active(pod) or restarts_of(pod) for pod in pods)


def _delete(pods: list[dict[str, Any]], writer: Writer) -> None:
    for pod in pods:
        if not is_dying(pod):
            writer.delete(POD.ref(pod), uid_of(pod))


def _fill(body: dict[str, Any], number: int, pods: list[dict[str, Any]], writer: Writer) -> None:
    standing = {int(labels_of(pod)[WORKER_INDEX]) for pod in pods}
    for worker in range(_size(body)):
        if worker not in standing:
            writer.create(_pod(body, number, worker))


def _revision(body: dict[str, Any]) -> str:
    text = canonical_json(body["spec"]["leaderWorkerTemplate"])
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _pod(body: dict[str, Any], number: int, worker: int) -> dict[str, Any]:
    name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
    inside = body["spec"]["leaderWorkerTemplate"]
    template = (None if worker else inside.get("leaderTemplate")) or inside["workerTemplate"]
    meta = template.get("metadata") or {}
    leader = f"{name}-{number}"
    group_key = hashlib.sha1(f"{namespace}/{leader}".encode(), usedforsecurity=False).hexdigest()
    labels = {
        **(meta.get("labels") or {}),
        f"{_PREFIX}/name": name,
        GROUP_INDEX: str(number),
        WORKER_INDEX: str(worker),
        f"{_PREFIX}/group-key": group_key,
        _REVISION: _revision(body),
    }
    told = {
        "LWS_LEADER_ADDRESS": f"{leader}.{name}.{namespace}",
        "LWS_GROUP_SIZE": str(_size(body)),
        "LWS_WORKER_INDEX": str(worker),
    }
    env = [{"name": key, "value": value} for key, value in told.items()]
    spec = dict(template["spec"])
    spec["containers"] = [
        {**each, "env": [*env, *(each.get("env") or [])]} for each in spec["containers"]
    ]
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": {
            "name": f"{leader}-{worker}" if worker else leader,
            "namespace": namespace,
            "labels": labels,
            "annotations": {**(meta.get("annotations") or {}), f"{_PREFIX}/size": str(_size(body))},
            "ownerReferences": [owner_reference(LEADER_WORKER_SET, body)],
        },
        "spec": {**spec, "hostname": f"{leader}-{worker}" if worker else leader, "subdomain": name},
        "status": {"phase": "Pending"},
    }


def _headless_service(body: dict[str, Any], view: View, writer: Writer) -> None:
    """The Service by which pods of the groups find each other, of the same name."""
    name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
    if any(each["metadata"]["name"] == name for each in view.of(SERVICE, namespace)):
        return
    writer.create(
        {
            "apiVersion": SERVICE.api_version,
            "kind": SERVICE.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": [owner_reference(LEADER_WORKER_SET, body)],
            },
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {f"{_PREFIX}/name": name},
            },
        }
    )


def _roll(body: dict[str, Any], groups: dict[int, list[dict[str, Any]]], writer: Writer) -> None:
    """A changed template: the last group of the old one starts anew once all others are Ready."""
    now = _revision(body)
    old = [
        number
        for number, pods in groups.items()
        if any(labels_of(pod).get(_REVISION) != now for pod in pods)
    ]
    if not old:
        return
    last = max(old)
    others = [pods for number, pods in groups.items() if number != last]
    if all(_whole(body, pods) for pods in others):
        _delete(groups[last], writer)


def _whole(body: dict[str, Any], pods: list[dict[str, Any]]) -> bool:
    ready = [pod for pod in pods if is_ready(pod) and is_active(pod)]
    return len(ready) == _size(body)


def _report(
    body: dict[str, Any], groups: dict[int, list[dict[str, Any]]], writer: Writer, now_ms: int
) -> None:
    ready = sum(_whole(body, pods) for pods in groups.values())
    now = _revision(body)
    updated = sum(
        all(labels_of(pod).get(_REVISION) == now for pod in pods) for pods in groups.values()
    )
    after: dict[str, Any] = {
        "replicas": len(groups),
        "readyReplicas": ready,
        "updatedReplicas": updated,
        "hpaPodSelector": f"{_PREFIX}/name={body['metadata']['name']},{WORKER_INDEX}=0",
        "observedGeneration": body["metadata"].get("generation"),
    }
    whole = ready >= desired_replicas(body)
    conditions = [
        _condition(body, "Available", whole, "AllGroupsReady", now_ms),
        _condition(body, "Progressing", not whole, "GroupsProgressing", now_ms),
    ]
    before = body.get("status") or {}
    if any(before.get(key) != value for key, value in after.items()) or conditions != [
        condition(body, each["type"]) for each in conditions
    ]:
        patch = {"status": {**after, "conditions": conditions}}
        writer.patch(LEADER_WORKER_SET.ref(body), patch, subresource="status")


def _condition(
    body: dict[str, Any], kind: str, holds: bool, reason: str, now_ms: int
) -> dict[str, Any]:
    before = condition(body, kind) or {}
    status = "True" if holds else "False"
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": since or rfc3339(now_ms),
    }
