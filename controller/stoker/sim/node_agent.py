"""The node's own side of the simulated kubelet: heartbeats, and images that it holds.

In: the Cluster port. Out: node status. Used by `sim.kubelet`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.errors import Retryable
from stoker.kube.errors import NotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.model.times import to_milliseconds
from stoker.sim.nodes import MANAGER, SIMULATED_LABEL, ready_condition
from stoker.sim.pods import condition
from stoker.sim.view import NODE

__all__ = ["NodeAgent"]


class NodeAgent:
    """All simulated nodes at once. `heartbeat_seconds` 0 = none are sent."""

    def __init__(self, cluster: Cluster, heartbeat_seconds: float) -> None:
        self._cluster = cluster
        self._heartbeat_ms = round(heartbeat_seconds * 1000)
        self._beaten: dict[str, int] = {}
        self._lost: set[str] = set()
        self._silent: set[str] = set()

    def nodes(self) -> dict[str, dict[str, Any]]:
        """The simulated nodes by name, without those that are lost or silent."""
        label = f"{SIMULATED_LABEL}=true"
        page = self._cluster.list(NODE.group, NODE.kind, label_selector=label)
        found = {node["metadata"]["name"]: node for node in page.items}
        quiet = self._lost | self._silent
        return {name: found[name] for name in sorted(found) if name not in quiet}

    def lose(self, node: str) -> None:
        """Never speak for that node again."""
        self._lost.add(node)

    def silence(self, node: str, *, silent: bool) -> None:
        """Speak for that node no more, or again, and then at once."""
        if silent:
            self._silent.add(node)
        else:
            self._silent.discard(node)
            self._beaten.pop(node, None)

    def is_silent(self, node: str) -> bool:
        """Whether it lives and nobody speaks for it."""
        return node in self._silent

    def beat(self, nodes: Iterable[dict[str, Any]], now_ms: int) -> None:
        """Say of each node that it lives, as often as asked for."""
        if not self._heartbeat_ms:
            return
        for node in nodes:
            name = node["metadata"]["name"]
            last = self._beaten.get(name)
            if last is not None and now_ms - last < self._heartbeat_ms:
                continue
            self._beaten[name] = now_ms
            before = condition(node, "Ready") or {}
            since_ms = now_ms
            if before.get("status") == "True" and before.get("lastTransitionTime"):
                since_ms = to_milliseconds(before["lastTransitionTime"])
            known = (node.get("status") or {}).get("conditions") or ()
            others = [c for c in known if c["type"] != "Ready"]
            self._write(name, {"conditions": [*others, ready_condition(now_ms, since_ms=since_ms)]})

    def holds_image(self, node: str, image: str) -> bool:
        """Whether the node's status lists the image."""
        return any(image in (held.get("names") or ()) for held in self._images(node))

    def add_image(self, node: str, image: str, size_bytes: int) -> None:
        """List the image in the node's status."""
        images = self._images(node)
        if not any(image in (held.get("names") or ()) for held in images):
            self._write(node, {"images": [*images, {"names": [image], "sizeBytes": size_bytes}]})

    def _images(self, node: str) -> list[dict[str, Any]]:
        body = self._cluster.get(ObjectRef("", "Node", "", node))
        images: list[dict[str, Any]] = (body.get("status") or {}).get("images") or []
        return images

    def _write(self, name: str, status: dict[str, Any]) -> None:
        ref = ObjectRef("", "Node", "", name)
        body = {"status": status}
        try:
            self._cluster.patch(ref, "merge", body, manager=MANAGER, subresource="status")
        except (NotFound, Retryable):
            return
