"""The Deployment controller of the in-memory cluster: one ReplicaSet a template, rolled over.

In: a view. Out: ReplicaSets made, adopted, scaled and collected; their status is read back by
`sim.deployment_status`. The order of steps and the bounds are those of the Kubernetes
controller (rolling update within maxSurge and maxUnavailable, unhealthy old replicas first).
Scaling in mid-roll keeps the total inside the bounds, not the proportions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from stoker.model.codec import canonical_json
from stoker.model.ports import Cluster
from stoker.sim.deployment_status import desired_replicas, status_patch, unavailable_and_surge
from stoker.sim.pods import is_over
from stoker.sim.view import (
    DEPLOYMENT,
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

__all__ = ["HASH_LABEL", "MANAGER", "deployments"]

MANAGER = "kube-controller-manager"
HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DEFAULT_HISTORY = 10


@dataclass(slots=True)
class _Rollout:
    """One Deployment with its ReplicaSets; `new` has its template, `old` oldest first.

    `sizes` is spec.replicas by UID, kept up with what this round wrote.
    """

    body: dict[str, Any]
    writer: Writer
    new: dict[str, Any] | None
    old: list[dict[str, Any]]
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def wanted(self) -> int:
        return desired_replicas(self.body)

    @property
    def all(self) -> list[dict[str, Any]]:
        return [*self.old, *([self.new] if self.new is not None else [])]

    def size(self, replica_set: dict[str, Any]) -> int:
        return self.sizes[uid_of(replica_set)]

    def total(self) -> int:
        return sum(self.sizes.values())

    def scale(self, replica_set: dict[str, Any], replicas: int) -> bool:
        """Whether it had another size and has this one now."""
        if replicas == self.size(replica_set):
            return False
        uid = uid_of(replica_set)
        body = {"metadata": {"uid": uid}, "spec": {"replicas": replicas}}
        if not self.writer.patch(REPLICA_SET.ref(replica_set), body):
            return False
        self.sizes[uid] = replicas
        return True


def deployments(view: View, cluster: Cluster, now_ms: int) -> int:
    """One round over all Deployments; gives the number of writes."""
    writer = Writer(cluster, MANAGER)
    for body in view.of(DEPLOYMENT):
        if is_dying(body):
            continue
        _reconcile(body, view, writer, now_ms)
    return writer.writes


def _reconcile(body: dict[str, Any], view: View, writer: Writer, now_ms: int) -> None:
    owned = _claim(body, view, writer)
    new = next((s for s in owned if _template(s) == _template(body)), None)
    old = sorted(
        (s for s in owned if s is not new),
        key=lambda s: (s["metadata"].get("creationTimestamp") or "", s["metadata"]["name"]),
    )
    sizes = {uid_of(s): desired_replicas(s) for s in owned}
    rollout = _Rollout(body, writer, new, old, sizes)
    if not body["spec"].get("paused"):
        strategy = (body["spec"].get("strategy") or {}).get("type") or "RollingUpdate"
        if strategy == "Recreate":
            _recreate(rollout, view)
        else:
            _roll(rollout, view)
        _collect_history(rollout)
    patch = status_patch(body, rollout.new, rollout.all, now_ms)
    if patch is not None:
        writer.patch(DEPLOYMENT.ref(body), patch, subresource="status")


def _claim(body: dict[str, Any], view: View, writer: Writer) -> list[dict[str, Any]]:
    """Our ReplicaSets, orphans that match the selector adopted on the way."""
    owned = []
    for candidate in view.owned(REPLICA_SET, body["metadata"]["namespace"], uid_of(body)):
        owner = controller_of(candidate)
        if owner == uid_of(body):
            owned.append(candidate)
        elif (
            not owner
            and not is_dying(candidate)
            and selects(body["spec"].get("selector"), labels_of(candidate))
        ):
            reference = {"ownerReferences": [owner_reference(DEPLOYMENT, body)]}
            patch = {"metadata": {**reference, "uid": uid_of(candidate)}}
            if writer.patch(REPLICA_SET.ref(candidate), patch):
                owned.append(candidate)
    return owned


def _roll(rollout: _Rollout, view: View) -> None:
    """Up within maxSurge; down within maxUnavailable once there is nothing to go up."""
    unavailable, surge = unavailable_and_surge(rollout.body)
    room = max(0, rollout.wanted + surge - rollout.total())
    if rollout.new is None:
        _make_new(rollout, view, min(rollout.wanted, room))
        return
    size = rollout.size(rollout.new)
    if size > rollout.wanted or not any(rollout.size(s) for s in rollout.old):
        rollout.scale(rollout.new, rollout.wanted)
        return
    if rollout.scale(rollout.new, size + min(room, rollout.wanted - size)):
        return
    _shrink_old(rollout, rollout.wanted - unavailable)


def _shrink_old(rollout: _Rollout, least_available: int) -> None:
    """Take away old replicas: first those that serve nothing, then as availability allows."""
    assert rollout.new is not None
    missing = max(0, rollout.size(rollout.new) - _status(rollout.new, "availableReplicas"))
    spare = rollout.total() - least_available - missing
    for old in rollout.old:
        size = rollout.size(old)
        cut = min(max(0, size - _status(old, "availableReplicas")), max(0, spare))
        if cut and rollout.scale(old, size - cut):
            spare -= cut
    excess = sum(_status(s, "availableReplicas") for s in rollout.all) - least_available
    excess = min(excess, spare)
    for old in rollout.old:
        size = rollout.size(old)
        cut = min(size, max(0, excess))
        if cut and rollout.scale(old, size - cut):
            excess -= cut


def _recreate(rollout: _Rollout, view: View) -> None:
    """Everything old goes, and is gone, before anything new comes."""
    for old in rollout.old:
        rollout.scale(old, 0)
    owners = {uid_of(s) for s in rollout.old}
    pods = view.of(POD, rollout.body["metadata"]["namespace"])
    if any(controller_of(pod) in owners and not is_over(pod) for pod in pods):
        return
    if rollout.new is None:
        _make_new(rollout, view, rollout.wanted)
    else:
        rollout.scale(rollout.new, rollout.wanted)


def _make_new(rollout: _Rollout, view: View, replicas: int) -> None:
    body = rollout.body
    meta = body["metadata"]
    template = body["spec"]["template"]
    taken = {s["metadata"]["name"] for s in view.of(REPLICA_SET, meta["namespace"])}
    collisions = 0
    while True:
        short = _hash(template, collisions)
        if f"{meta['name']}-{short}" not in taken:
            break
        collisions += 1
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: short}
    selector = body["spec"].get("selector") or {}
    rollout.writer.create(
        {
            "apiVersion": REPLICA_SET.api_version,
            "kind": REPLICA_SET.kind,
            "metadata": {
                "name": f"{meta['name']}-{short}",
                "namespace": meta["namespace"],
                "labels": labels,
                "annotations": {REVISION: str(_next_revision(rollout))},
                "ownerReferences": [owner_reference(DEPLOYMENT, body)],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": body["spec"].get("minReadySeconds") or 0,
                "selector": {
                    **selector,
                    "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: short},
                },
                "template": {
                    **template,
                    "metadata": {**(template.get("metadata") or {}), "labels": labels},
                },
            },
        }
    )


def _next_revision(rollout: _Rollout) -> int:
    return 1 + max((_revision(s) for s in rollout.old), default=0)


def _revision(body: dict[str, Any]) -> int:
    return int((body["metadata"].get("annotations") or {}).get(REVISION) or 0)


def _collect_history(rollout: _Rollout) -> None:
    """Delete the oldest empty ReplicaSets beyond revisionHistoryLimit."""
    limit = rollout.body["spec"].get("revisionHistoryLimit")
    keep = DEFAULT_HISTORY if limit is None else int(limit)
    empty = [s for s in rollout.old if not rollout.size(s) and not _status(s, "replicas")]
    for old in empty[: max(0, len(empty) - keep)]:
        if not is_dying(old):
            rollout.writer.delete(REPLICA_SET.ref(old), uid_of(old))


def _status(replica_set: dict[str, Any], name: str) -> int:
    return int((replica_set.get("status") or {}).get(name) or 0)


def _template(body: dict[str, Any]) -> str:
    """The pod template as text, without the label that tells ReplicaSets apart."""
    template = body["spec"].get("template") or {}
    meta = dict(template.get("metadata") or {})
    labels = {k: v for k, v in (meta.get("labels") or {}).items() if k != HASH_LABEL}
    return canonical_json({**template, "metadata": {**meta, "labels": labels}})


def _hash(template: dict[str, Any], collisions: int) -> str:
    text = f"{canonical_json(template)}{collisions or ''}"
    return hashlib.sha256(text.encode()).hexdigest()[:10]
