"""Status of a Deployment from its ReplicaSets: counts and conditions as kubectl shows them.

In: the Deployment, its new ReplicaSet and all of them. Out: a merge patch for /status, or
None when nothing moved. Called by `sim.deployments`.
"""

from __future__ import annotations

from typing import Any

from stoker.model.times import rfc3339, to_milliseconds
from stoker.sim.pods import condition

__all__ = ["desired_replicas", "status_patch", "unavailable_and_surge"]

REVISION = "deployment.kubernetes.io/revision"
DEFAULT_DEADLINE_SECONDS = 600
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def desired_replicas(body: dict[str, Any]) -> int:
    """Spec.replicas, 1 where it is not set."""
    replicas = body["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def unavailable_and_surge(body: dict[str, Any]) -> tuple[int, int]:
    """Resolve maxUnavailable (rounded down) and maxSurge (up); never both zero."""
    rolling = (body["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    wanted = desired_replicas(body)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    surge = _share(rolling.get("maxSurge", "25%"), wanted, up=True)
    if not unavailable and not surge:
        unavailable = 1
    return min(unavailable, wanted), surge


def status_patch(
    body: dict[str, Any],
    new: dict[str, Any] | None,
    owned: list[dict[str, Any]],
    now_ms: int,
) -> dict[str, Any] | None:
    """What to write on /status, the revision annotation included."""
    before = body.get("status") or {}
    wanted = desired_replicas(body)
    counts = {
        "replicas": sum(_count(s, "replicas") for s in owned),
        "updatedReplicas": _count(new, "replicas"),
        "readyReplicas": sum(_count(s, "readyReplicas") for s in owned),
        "availableReplicas": sum(_count(s, "availableReplicas") for s in owned),
    }
    missing = max(0, wanted - counts["availableReplicas"])
    after: dict[str, Any] = {name: counts[name] or None for name in _COUNTS}
    after["unavailableReplicas"] = missing or None
    after["observedGeneration"] = body["metadata"].get("generation")
    conditions = _conditions(body, new, counts, now_ms)
    revision = ((new or {}).get("metadata", {}).get("annotations") or {}).get(REVISION)
    annotated = (body["metadata"].get("annotations") or {}).get(REVISION)
    unchanged = all(before.get(name) == value for name, value in after.items())
    if unchanged and before.get("conditions") == conditions and revision in {None, annotated}:
        return None
    patch: dict[str, Any] = {"status": {**after, "conditions": conditions}}
    if revision is not None and revision != annotated:
        patch["metadata"] = {"annotations": {REVISION: revision}}
    return patch


def _conditions(
    body: dict[str, Any], new: dict[str, Any] | None, counts: dict[str, int], now_ms: int
) -> list[dict[str, Any]]:
    wanted = desired_replicas(body)
    unavailable, _ = unavailable_and_surge(body)
    enough = counts["availableReplicas"] >= wanted - unavailable
    available = _renew(
        body,
        {
            "type": "Available",
            "status": "True" if enough else "False",
            "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        },
        now_ms,
    )
    return [available, _progressing(body, new, counts, now_ms)]


def _progressing(
    body: dict[str, Any], new: dict[str, Any] | None, counts: dict[str, int], now_ms: int
) -> dict[str, Any]:
    name = (new or {}).get("metadata", {}).get("name") or body["metadata"]["name"]
    wanted = desired_replicas(body)
    done = (
        counts["updatedReplicas"] == wanted
        and counts["replicas"] == wanted
        and counts["availableReplicas"] == wanted
    )
    before = condition(body, "Progressing")
    moved = _moved(body, counts)
    status, reason, message = "True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.'
    if done:
        reason = "NewReplicaSetAvailable"
        message = f'ReplicaSet "{name}" has successfully progressed.'
    elif before is not None and not moved and _over_deadline(body, before, now_ms):
        status, reason = "False", "ProgressDeadlineExceeded"
        message = f'ReplicaSet "{name}" has timed out progressing.'
    elif before is None:
        reason, message = "NewReplicaSetCreated", f'Created new replica set "{name}"'
    elif not moved:
        return before
    made = {"type": "Progressing", "status": status, "reason": reason, "message": message}
    return _renew(body, made, now_ms, touch=moved)


def _moved(body: dict[str, Any], counts: dict[str, int]) -> bool:
    """Whether more is updated, ready or available than was, or less is old: progress."""
    before = body.get("status") or {}
    if before.get("observedGeneration") != body["metadata"].get("generation"):
        return True
    was = {name: int(before.get(name) or 0) for name in _COUNTS}
    old_before = was["replicas"] - was["updatedReplicas"]
    old_now = counts["replicas"] - counts["updatedReplicas"]
    grew = any(
        counts[n] > was[n] for n in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return grew or old_now < old_before


def _over_deadline(body: dict[str, Any], before: dict[str, Any], now_ms: int) -> bool:
    if before.get("reason") == "ProgressDeadlineExceeded":
        return True
    if before.get("reason") == "NewReplicaSetAvailable":
        return False
    limit = body["spec"].get("progressDeadlineSeconds") or DEFAULT_DEADLINE_SECONDS
    return now_ms - to_milliseconds(before["lastUpdateTime"]) > int(limit) * 1000


def _renew(
    body: dict[str, Any], made: dict[str, Any], now_ms: int, *, touch: bool = False
) -> dict[str, Any]:
    """Keep the times of an equal condition; another status is a transition."""
    before = condition(body, made["type"])
    now = rfc3339(now_ms)
    if before is None:
        return {**made, "lastUpdateTime": now, "lastTransitionTime": now}
    same = all(before.get(key) == value for key, value in made.items())
    if same and not touch:
        return before
    since = before["lastTransitionTime"] if before.get("status") == made["status"] else now
    return {**made, "lastUpdateTime": now, "lastTransitionTime": since}


def _count(replica_set: dict[str, Any] | None, name: str) -> int:
    return int(((replica_set or {}).get("status") or {}).get(name) or 0)


def _share(value: int | str, total: int, *, up: bool) -> int:
    if isinstance(value, str) and value.endswith("%"):
        percent = int(value[:-1])
        return -(-total * percent // 100) if up else total * percent // 100
    return int(value)
