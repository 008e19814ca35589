"""Deletes what left Git: by UID, dependents first, once.

DELETE changes of units that have applied come in, chains of jobs for the pool go out. What
finalizers hold stays in the inventory and is waited for. Called by apply, last of all
writes but the inventory's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stoker.apply.answers import Sent, is_uid_mismatch, sent_error
from stoker.errors import StokerError
from stoker.kube.errors import NotFound
from stoker.model.change import Change
from stoker.model.outcome import ObjectOutcome, Result
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.objects.kinds import CRD_GROUP, delete_order, pod_template_paths

__all__ = ["delete", "delete_chain"]


def delete_chain(
    cluster: Cluster, changes: Iterable[Change]
) -> list[list[tuple[ObjectRef, Callable[[], Sent]]]]:
    """One chain: a stage for each kind's place in the order, dependents first."""
    stages: dict[tuple[int, int], list[Change]] = {}
    for change in sorted(changes, key=lambda change: delete_order(change.ref)):
        stages.setdefault(delete_order(change.ref)[:2], []).append(change)
    return [
        [(change.ref, _job(cluster, change)) for change in stages[place]]
        for place in sorted(stages)
    ]


def _job(cluster: Cluster, change: Change) -> Callable[[], Sent]:
    if (change.ref.group, change.ref.kind) == (CRD_GROUP, "CustomResourceDefinition"):
        return lambda: _delete_crd(cluster, change.ref, change.live_uid)
    templates = pod_template_paths(change.ref.group, change.ref.kind)
    propagation = "Foreground" if templates else "Background"
    return lambda: delete(cluster, change.ref, change.live_uid, propagation)


def delete(cluster: Cluster, ref: ObjectRef, uid: str, propagation: str) -> Sent:
    """Delete the object of that UID and see whether it is gone."""
    assert uid, "a delete without a UID proves nothing"
    try:
        cluster.delete(ref, uid=uid, propagation=propagation)
        left = cluster.get(ref)
    except NotFound:
        return Sent(ObjectOutcome(ref, Result.DELETED), uid=uid, gone=True)
    except StokerError as error:
        if is_uid_mismatch(error):
            outcome = ObjectOutcome(ref, Result.KEPT, "uid-differs", "somebody made it again")
            return Sent(outcome, uncertain=True)
        return sent_error(ref, error)
    metadata: dict[str, Any] = left.get("metadata") or {}
    if metadata.get("uid") != uid:
        return Sent(ObjectOutcome(ref, Result.DELETED), uncertain=True)
    held = ", ".join(metadata.get("finalizers") or ())
    message = f"being deleted, held by finalizers {held}" if held else "being deleted"
    return Sent(ObjectOutcome(ref, Result.WAITING, "deletion-pending", message), body=left)


def _delete_crd(cluster: Cluster, ref: ObjectRef, uid: str) -> Sent:
    """A CRD goes only when no object of its kind is left anywhere: it would take them along."""
    cluster.forget_discovery()
    try:
        spec = cluster.get(ref).get("spec") or {}
        group, kind = str(spec.get("group", "")), str((spec.get("names") or {}).get("kind", ""))
        left = cluster.list(group, kind, metadata_only=True).items
    except NotFound:
        return Sent(ObjectOutcome(ref, Result.DELETED), uid=uid, gone=True)
    except StokerError as error:
        return sent_error(ref, error)
    if left:
        message = f"{len(left)} objects of its kind are left"
        return Sent(ObjectOutcome(ref, Result.WAITING, "custom-resources-left", message))
    return delete(cluster, ref, uid, "Background")
