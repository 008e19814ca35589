"""Tells a ReplicaSet which pods to remove, just before the count of their Deployment is lowered.

Names of pods, the coldest first, come in; requests go out, one a pod. Only those that leave are
marked, and only then: the annotation is a hint that frequent writes would make dear (seed 001).
A failed one changes nothing else. Called by apply before workloads are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from stoker.apply.answers import Sent, changed_meanwhile, is_uid_mismatch, sent_error
from stoker.apply.send import Sender
from stoker.errors import StokerError
from stoker.kube.errors import NotFound
from stoker.model.outcome import ObjectOutcome, Result
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects import names

__all__ = ["marks"]

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def marks(
    unit: UnitRef, pods: Sequence[str], sender: Sender
) -> tuple[tuple[ObjectRef, Callable[[], Sent]], ...]:
    """A request for each pod: below zero, what pods without a mark count for, and the coldest
    lowest.
    """
    refs = [ObjectRef("", "Pod", unit.namespace, name) for name in pods]
    return tuple(
        (ref, partial(_mark, ref, place - len(refs), unit, sender))
        for place, ref in enumerate(refs)
    )


def _mark(ref: ObjectRef, cost: int, unit: UnitRef, sender: Sender) -> Sent:
    try:
        live = sender.cluster.get(ref)
        metadata = live["metadata"]
        labels = metadata.get("labels") or {}
        if labels.get(names.SERVICE_LABEL) != unit.name or metadata.get("deletionTimestamp"):
            return changed_meanwhile(ref, "the pod is leaving, or no longer the service's")
        found = (metadata.get("annotations") or {}).get(_DELETION_COST)
        if found == str(cost):
            return Sent(ObjectOutcome(ref, Result.UNCHANGED), body=live)
        if found is not None and not _is_ours(metadata, sender.manager):
            why = f"its pod-deletion-cost of {found} is somebody else's"
            return Sent(ObjectOutcome(ref, Result.UNCHANGED, message=why), body=live)
        patch = {"metadata": {"uid": metadata["uid"], "annotations": {_DELETION_COST: str(cost)}}}
        body = sender.cluster.patch(ref, "merge", patch, manager=sender.manager)
    except NotFound:
        return Sent(ObjectOutcome(ref, Result.UNCHANGED, message="the pod is gone"), gone=True)
    except StokerError as error:
        if is_uid_mismatch(error):
            return changed_meanwhile(ref, "the pod was made again meanwhile")
        return sent_error(ref, error)
    return Sent(ObjectOutcome(ref, Result.CHANGED, message="leaves first"), body=body)


def _is_ours(metadata: dict[str, Any], manager: str) -> bool:
    """Whether the annotation was written by us; Karpenter writes it too."""
    for entry in metadata.get("managedFields") or ():
        fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
        if f"f:{_DELETION_COST}" in (fields.get("f:annotations") or {}):
            return bool(entry.get("manager") == manager)
    return False
