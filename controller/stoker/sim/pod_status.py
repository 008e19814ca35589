"""Pod status as a kubelet writes it, for each phase of a start.

In: a pod and what its kubelet knows. Out: merge patches for /status. Other writers' conditions
(the scheduler's, an eviction's) are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker.model.times import rfc3339
from stoker.sim.pods import condition

__all__ = ["ContainerState", "pod_status"]

_OURS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@dataclass(frozen=True, slots=True)
class ContainerState:
    """What all containers of a pod do. `started` is the startup probe's word.

    `waiting` and `message` say why they wait; `running_since_ms` 0 = they don't run.
    `exit_code` is that of the last run, where one ended at `ended_ms`.
    """

    waiting: str = ""
    message: str = ""
    running_since_ms: int = 0
    started: bool = False
    ready: bool = False
    restarts: int = 0
    exit_code: int | None = None
    ended_ms: int = 0


def pod_status(
    pod: dict[str, Any], state: ContainerState, *, ip: str, host_ip: str, now_ms: int
) -> dict[str, Any]:
    """The whole status of the pod in that state, times of equal conditions kept."""
    others = [
        c for c in (pod.get("status") or {}).get("conditions") or () if c.get("type") not in _OURS
    ]
    ready = state.ready
    not_ready = {"reason": "ContainersNotReady", "message": "containers are not ready"}
    ours = [
        _condition(pod, "PodReadyToStartContainers", True, now_ms),
        _condition(pod, "Initialized", True, now_ms),
        _condition(pod, "Ready", ready, now_ms, **({} if ready else not_ready)),
        _condition(pod, "ContainersReady", ready, now_ms, **({} if ready else not_ready)),
    ]
    before = pod.get("status") or {}
    status: dict[str, Any] = {
        "phase": "Running" if state.running_since_ms or state.restarts else "Pending",
        "conditions": [*others, *ours],
        "startTime": before.get("startTime") or rfc3339(now_ms),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "containerStatuses": [_container(c, state) for c in pod["spec"]["containers"]],
    }
    if ip:
        status["podIP"] = ip
        status["podIPs"] = [{"ip": ip}]
    return status


def _condition(
    pod: dict[str, Any], kind: str, holds: bool, now_ms: int, **more: str
) -> dict[str, Any]:
    status = "True" if holds else "False"
    before = condition(pod, kind)
    since = rfc3339(now_ms)
    if before is not None and before.get("status") == status:
        since = before.get("lastTransitionTime") or since
    return {"type": kind, "status": status, "lastTransitionTime": since, **more}


def _container(container: dict[str, Any], state: ContainerState) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": container["name"],
        "image": container.get("image") or "",
        "imageID": container.get("image") or "" if state.running_since_ms else "",
        "ready": state.ready,
        "started": state.started,
        "restartCount": state.restarts,
    }
    if state.running_since_ms:
        made["state"] = {"running": {"startedAt": rfc3339(state.running_since_ms)}}
    else:
        waiting = {"reason": state.waiting}
        if state.message:
            waiting["message"] = state.message
        made["state"] = {"waiting": waiting}
    if state.exit_code is not None:
        ended = {
            "exitCode": state.exit_code,
            "reason": "Completed" if state.exit_code == 0 else "Error",
            "finishedAt": rfc3339(state.ended_ms),
        }
        made["lastState"] = {"terminated": ended}
    return made
