"""A cluster in memory that serves NodeStates as they are shipped, and reporters of one node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker.errors import Unreachable
from stoker.kube.client import Client
from stoker.kube.memory import MemoryServer
from stoker.kube.transport import Request, Response
from stoker.model.refs import ObjectRef
from stoker.node.notice import NodeNotice, Poll, Told
from stoker.node.state_writer import StateWriter
from stoker.report.definitions import definition_manifests
from stoker.sim.clock import VirtualClock

NODE = "l4-spot-1"
REF = ObjectRef("stoker.dev", "NodeState", "", NODE, "v1alpha1")


class Wire:
    """The memory server behind a cable that can be cut; counts requests by method and path."""

    def __init__(self, server: MemoryServer) -> None:
        self.url = server.url
        self.cut = False
        self.before_patch: Callable[[], None] | None = None
        """Called once before the next patch, as another hand that is quicker."""
        self.sent: list[str] = []
        self._server = server

    def send(self, request: Request) -> Response:
        if self.cut:
            raise Unreachable("the cable is cut")
        hook = self.before_patch
        if request.method == "PATCH" and hook is not None:
            self.before_patch = None
            hook()
        self.sent.append(f"{request.method} {request.path}")
        return self._server.send(request)

    def stream(self, request: Request) -> Any:
        return self._server.stream(request)

    def close(self) -> None:
        """Nothing is open."""


class Cloud:
    """A NoticeSource whose answers a test sets."""

    pause_seconds = 0.01

    def __init__(self, poll: Poll | None = None) -> None:
        self.answer = poll or Told()
        self.acknowledged: list[NodeNotice] = []

    def poll(self) -> Poll:
        return self.answer

    def acknowledge(self, notice: NodeNotice) -> bool:
        self.acknowledged.append(notice)
        return True


class World:
    """One clock, one API server."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.wire = Wire(MemoryServer(self.clock))
        self.cluster = Client(self.wire)
        for manifest in definition_manifests():
            if manifest["metadata"]["name"] == "nodestates.stoker.dev":
                self.cluster.apply(manifest, manager="test")
        self.wire.sent.clear()

    def writer(self, holder: str = "first", **more: Any) -> StateWriter:
        return StateWriter(self.cluster, self.clock, NODE, holder, **more)

    def state(self) -> dict[str, Any]:
        return self.cluster.get(REF)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.state().get("status") or {}
        return found

    def patch(self, **status: Any) -> None:
        """Another hand writes."""
        self.cluster.patch(REF, "merge", {"status": status}, manager="hand", subresource="status")

    def writes(self) -> list[str]:
        """The requests that changed something, since the last call."""
        found = [line for line in self.wire.sent if not line.startswith("GET ")]
        self.wire.sent.clear()
        return found
