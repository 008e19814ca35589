"""What a rehearsal is played on: the port between play.py and a cluster with its nodes.

`cli` implements it on the in-memory cluster, on a real control plane and on any cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef
from stoker.rehearse.load import Endpoint
from stoker.rehearse.record import Request
from stoker.rehearse.schema import NodeBlock

__all__ = ["Ground", "Load", "NodeHand"]


class Load(Protocol):
    """The clients of all services."""

    @property
    def requests(self) -> list[Request]:
        """Every request so far."""
        ...

    def note_endpoints(self, at_ms: int, service: str, endpoints: tuple[Endpoint, ...]) -> None:
        """What the cluster says of a service's endpoints from now on."""
        ...

    def begin(self, at_ms: int) -> None:
        """Requests come from now on."""
        ...

    def stop(self) -> None:
        """No further requests; those under way are cut off and count as open."""
        ...


class NodeHand(Protocol):
    """What only whoever plays the nodes can do to them."""

    def add(self, node: NodeBlock) -> None:
        """A node joins."""
        ...

    def give_notice(self, node: str, kind: str, at_ms: int, deadline_ms: int) -> None:
        """The NodeState says that it goes."""
        ...

    def lose(self, node: str) -> None:
        """The machine is gone; the Node object stays."""
        ...

    def break_starts(self, node: str, *, running: bool) -> None:
        """Engines that start there crash from now on; those that run too, if asked."""
        ...

    def crash_image(self, image: str) -> None:
        """Engines of that image crash whenever they start."""
        ...

    def silence(self, node: str) -> None:
        """Its kubelet says nothing more; its engines go on."""
        ...

    def speak(self, node: str) -> None:
        """Its kubelet is back."""
        ...

    def evict(self, pod: ObjectRef) -> None:
        """Ask for a pod to go, within its budget."""
        ...


class Ground(Protocol):
    """A cluster with nodes, a repository and a controller. Times are divided by `time_scale`."""

    @property
    def name(self) -> str:
        """What it is, for people."""
        ...

    @property
    def time_scale(self) -> float:
        """1 for times as the scenario says them, 10 for a tenth of each."""
        ...

    @property
    def cluster(self) -> Cluster:
        """The API server, as a person with all rights."""
        ...

    @property
    def clock(self) -> Clock:
        """What time it is there."""
        ...

    @property
    def nodes(self) -> NodeHand:
        """Who does things to nodes."""
        ...

    @property
    def load(self) -> Load:
        """The clients."""
        ...

    @property
    def version(self) -> int | None:
        """Another one after each write to the cluster; None where that is not known."""
        ...

    def commit(self, message: str, files: Mapping[str, str | None]) -> None:
        """Commit and push."""
        ...

    def start_controller(self) -> None:
        """One runs from now on."""
        ...

    def kill_controller(self) -> None:
        """It is gone without a word."""
        ...

    def advance(self) -> None:
        """Let a little time go by."""
        ...

    def hear(self) -> None:
        """Let what was just done to the cluster be heard, where nothing happens by itself."""
        ...
