"""Pods, events and logs of starts, as an API server and `kubectl logs --timestamps` give them."""

from __future__ import annotations

from typing import Any

DAY = "2026-09-17T"
LAB_NAME = "vllm-7b9d6c4f8-zr8hk"
LAB_IMAGE = "vllm/vllm-openai:v0.28.0"
LAB = (
    ("14:52:31", "Nominated", "Pod should schedule on: nodeclaim/gpu-c3ptx"),
    ("14:55:18", "Scheduled", f"Successfully assigned vllm/{LAB_NAME} to ip-10-0-31-9"),
    ("14:55:20", "Pulling", f'Pulling image "{LAB_IMAGE}"'),
    ("14:59:04", "Pulled", f'Successfully pulled image "{LAB_IMAGE}" in 3m44s'),
    ("14:59:05", "Created", "Created container vllm"),
    ("14:59:05", "Started", "Started container vllm"),
)
"""Events of seed 003, the cold-start lab."""
LAB_LOG = (
    f"{DAY}14:59:20.5Z INFO 09-17 14:59:20 [api_server.py:1] vLLM API server version 0.28.0",
    f"{DAY}15:00:05Z Loading safetensors checkpoint shards: 100% Completed | 2/2",
    f"{DAY}15:01:05Z INFO:     Application startup complete.",
)
"""The two lines that the lab waits for, a minute apart each ("about 60")."""


def event(at: str, reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    """A core/v1 Event about the lab's pod; `path` is the container's field path."""
    about = {"kind": "Pod", "namespace": "vllm", "name": LAB_NAME}
    if "path" in more:
        about["fieldPath"] = more.pop("path")
    stamp = f"{DAY}{at}Z"
    return {
        "kind": "Event",
        "reason": reason,
        "message": message,
        "involvedObject": about,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        **more,
    }


def lab_events() -> list[dict[str, Any]]:
    """All of them."""
    return [event(*each) for each in LAB]


def pod(**times: str) -> dict[str, Any]:
    """A pod with an engine. `created`, `scheduled`, `started`, `ready` are times of the day."""
    stamp = {name: f"{DAY}{at}Z" for name, at in times.items()}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": stamp[name]}
        for kind, name in (("PodScheduled", "scheduled"), ("Ready", "ready"))
        if name in stamp
    ]
    state = {"running": {"startedAt": stamp["started"]}} if "started" in stamp else {}
    metadata: dict[str, Any] = {"namespace": "vllm", "name": LAB_NAME, "uid": "u1"}
    if "created" in stamp:
        metadata["creationTimestamp"] = stamp["created"]
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": "ip-10-0-31-9",
            "containers": [
                {"name": "proxy", "image": "proxy:1"},
                {"name": "engine", "image": LAB_IMAGE},
            ],
        },
        "status": {
            "conditions": conditions,
            "containerStatuses": [{"name": "engine", "restartCount": 0, "state": state}],
        },
    }
