"""Requests about pods that only a scheduler or a kubelet makes, and the Cluster port lacks.

Nothing in production may bind a pod or take away its grace period, so these go past the port.
In: a transport. Out: `PodCalls`, for `sim.scheduler`, `sim.garbage`, `sim.kubelet` and rehearsals.
"""

from __future__ import annotations

import json
from typing import Any

from stoker.kube.errors import api_error
from stoker.kube.transport import Request, Transport
from stoker.model.refs import ObjectRef

__all__ = ["PodCalls"]


class PodCalls:
    """Calls take a pod's reference; a pod that is gone or was replaced is no error."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def bind(self, ref: ObjectRef, uid: str, node: str) -> bool:
        """Put the pod on a node; False when it is bound, gone or another one by now."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": ref.name, "namespace": ref.namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self._send("POST", ref, "/binding", binding, f"bind {ref}")

    def evict(self, ref: ObjectRef) -> bool:
        """Ask for the pod to go, as `kubectl drain` does; False while a budget forbids it."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": ref.name, "namespace": ref.namespace},
        }
        return self._send("POST", ref, "/eviction", eviction, f"evict {ref}")

    def force_delete(self, ref: ObjectRef, uid: str) -> bool:
        """Remove the pod now, as a kubelet does when all of it has stopped."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": uid},
        }
        return self._send("DELETE", ref, "", options, f"delete {ref}")

    def _send(
        self, method: str, ref: ObjectRef, subresource: str, body: dict[str, Any], what: str
    ) -> bool:
        request = Request(
            method=method,
            path=f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}{subresource}",
            body=json.dumps(body).encode(),
            content_type="application/json",
            user_agent="stoker-simulation",
        )
        answer = self._transport.send(request)
        if answer.status in {404, 409, 429}:
            return False
        if answer.status >= 300:
            text = answer.body.decode(errors="replace")
            raise api_error(answer.status, text, what=what)
        return True
