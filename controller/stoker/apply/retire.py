"""Carries out the next step of a Deployment that leaves: traffic off, scale down, delete.

A Retirement of a unit comes in, jobs for the pool go out. Draining itself sends nothing:
it is read from the pods, and decide gives the next step. Called by apply after everything
rendered was sent, so that additions come first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from stoker.apply.answers import Sent, changed_meanwhile, is_uid_mismatch, sent_error
from stoker.apply.prune import delete
from stoker.apply.send import Sender
from stoker.errors import StokerError
from stoker.kube.errors import NotFound
from stoker.model.change import Action, Change
from stoker.model.outcome import ObjectOutcome, Result
from stoker.model.plan import Retirement, RetireStage
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.times import rfc3339
from stoker.objects import names
from stoker.objects.owned import owned

__all__ = ["retirement_jobs"]

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_FIRST_TO_GO = "-1000"
"""Where a Deployment keeps other pods, its ReplicaSet must choose the drained ones."""


def retirement_jobs(
    unit: UnitRef, retirement: Retirement, sender: Sender, now_ms: int
) -> tuple[tuple[ObjectRef, Callable[[], Sent]], ...]:
    """The requests of this step by object; none while the pods drain."""
    ref = retirement.ref_in(unit.namespace)
    match retirement.stage:
        case RetireStage.STOP_TRAFFIC:
            pods = [ObjectRef("", "Pod", unit.namespace, name) for name in retirement.pods]
            stop = partial(_stop_traffic, unit=unit, retirement=retirement, sender=sender)
            return tuple((pod, partial(stop, pod, now_ms=now_ms)) for pod in pods)
        case RetireStage.DRAIN:
            return ()
        case RetireStage.SCALE_TO_ZERO:
            return ((ref, partial(_scale, ref, retirement, sender)),)
        case RetireStage.DELETE:
            return ((ref, partial(delete, sender.cluster, ref, retirement.uid, "Background")),)


def _stop_traffic(
    pod: ObjectRef, *, unit: UnitRef, retirement: Retirement, sender: Sender, now_ms: int
) -> Sent:
    """Take the traffic label off one pod, by its UID, and say since when it drains."""
    try:
        live = sender.cluster.get(pod)
        metadata = live["metadata"]
        labels = metadata.get("labels") or {}
        if labels.get(names.SERVICE_LABEL) != unit.name or metadata.get("deletionTimestamp"):
            return changed_meanwhile(pod, "the pod is leaving, or no longer the service's")
        annotations = {names.DRAINING_SINCE: rfc3339(now_ms)}
        if retirement.keep:
            annotations[_DELETION_COST] = _FIRST_TO_GO
        patch = {
            "metadata": {
                "uid": metadata["uid"],
                "labels": {names.TRAFFIC_LABEL: None},
                "annotations": annotations,
            }
        }
        body = sender.cluster.patch(pod, "merge", patch, manager=sender.manager)
    except NotFound:
        return Sent(ObjectOutcome(pod, Result.UNCHANGED, message="the pod is gone"), gone=True)
    except StokerError as error:
        if is_uid_mismatch(error):
            return changed_meanwhile(pod, "the pod was made again meanwhile")
        return sent_error(pod, error)
    message = f"takes no new requests: {retirement.reason}"
    return Sent(ObjectOutcome(pod, Result.CHANGED, message=message), body=body)


def _scale(ref: ObjectRef, retirement: Retirement, sender: Sender) -> Sent:
    """Send the live object's own fields again with the count that stays."""
    try:
        live = sender.cluster.get(ref)
    except NotFound:
        return Sent(ObjectOutcome(ref, Result.UNCHANGED, message="it is gone"), gone=True)
    except StokerError as error:
        return sent_error(ref, error)
    metadata = live["metadata"]
    if metadata["uid"] != retirement.uid:
        return changed_meanwhile(ref, "it was deleted and made again meanwhile")
    if metadata.get("deletionTimestamp"):
        return Sent(ObjectOutcome(ref, Result.WAITING, "deletion-pending", "being deleted"))
    if (live.get("spec") or {}).get("replicas") == retirement.keep:
        return Sent(ObjectOutcome(ref, Result.UNCHANGED), body=live)
    payload: dict[str, Any] = owned(live, sender.manager)
    spec = payload.get("spec")
    payload["spec"] = {**(spec if isinstance(spec, dict) else {}), "replicas": retirement.keep}
    return sender.send(
        Change(
            ref,
            Action.CHANGE,
            payload=payload,
            live_uid=retirement.uid,
            live_resource_version=str(metadata.get("resourceVersion", "")),
        )
    )
