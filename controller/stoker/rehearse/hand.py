"""The nodes of a ground whose kubelet is the simulated one: joins, notices, deaths, faults.

Used on the in-memory cluster and on a real control plane with simulated nodes. In memory
nobody plays the node lifecycle controller, so a silent node and its pods are marked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.kube.errors import NotFound
from stoker.kube.transport import Transport
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.rehearse.schema import NodeBlock, StartsBlock
from stoker.sim.kubelet import Kubelet
from stoker.sim.kubelet_run import FaultKind, PodFault
from stoker.sim.nodes import MANAGER, Weights, create_node, node_manifest
from stoker.sim.pod_calls import PodCalls
from stoker.sim.start_times import StartTimes
from stoker.sim.view import NODE, POD

__all__ = ["KubeletHand", "Model", "start_times"]

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Model:
    """What a service loads and by which image, as far as a node can hold it."""

    uri: str
    revision: str
    image: str

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any]) -> Model:
        """From the spec of a ModelService."""
        model, engine = spec["model"], spec["engine"]
        return cls(str(model["uri"]), str(model.get("revision") or ""), str(engine["image"]))


def start_times(starts: StartsBlock, models: Mapping[str, Model]) -> StartTimes:
    """The phases of a scenario as sizes and bandwidths: everything is 1 GiB."""
    return StartTimes(
        image_bytes={model.image: GIB for model in models.values()},
        weights_bytes={model.uri: GIB for model in models.values()},
        default_image_bytes=GIB,
        default_weights_bytes=GIB,
        pull_bytes_per_second=_rate(starts.pull),
        download_bytes_per_second=_rate(starts.download),
        disk_bytes_per_second=_rate(starts.disk),
        init_seconds=starts.init / 1000,
        capture_seconds=0.0,
    )


def _rate(milliseconds: int) -> int:
    return GIB * 1000 // max(1, milliseconds)


class KubeletHand:
    """`ground.NodeHand` by way of the simulated kubelet. `plays_lifecycle` in memory only."""

    def __init__(
        self,
        cluster: Cluster,
        transport: Transport,
        clock: Clock,
        kubelet: Kubelet,
        models: Mapping[str, Model],
        *,
        plays_lifecycle: bool,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._kubelet = kubelet
        self._models = models
        self._calls = PodCalls(transport)
        self._plays_lifecycle = plays_lifecycle

    def add(self, node: NodeBlock) -> None:
        """A node joins, with what it holds."""
        manifest = node_manifest(
            node.name,
            labels={"pool": node.pool},
            gpus=node.gpus,
            spot=node.capacity_type == "Spot",
            now_ms=self._clock.now_ms(),
        )
        create_node(self._cluster, manifest)
        held = [self._models[service] for service in node.holds]
        images = sorted({model.image for model in held})
        if images:
            status = {"images": [{"names": [image], "sizeBytes": GIB} for image in images]}
            self._status(node.name, status)
        for model in held:
            weights = Weights(model.uri, model.revision, GIB)
            self._kubelet.node_states.note(node.name, weights, complete=True)

    def give_notice(self, node: str, kind: str, at_ms: int, deadline_ms: int) -> None:
        """The NodeState says that it goes."""
        states = self._kubelet.node_states
        states.give_notice(node, kind, at_ms=at_ms, deadline_ms=deadline_ms)

    def lose(self, node: str) -> None:
        """The machine is gone."""
        self._kubelet.lose_node(node)

    def break_starts(self, node: str, *, running: bool) -> None:
        """Starts there crash from now on."""
        self._kubelet.faults.append(PodFault(FaultKind.CRASH_LOOP, node=node))
        if running:
            self._kubelet.crash_engines(node)

    def crash_image(self, image: str) -> None:
        """Starts of that image crash."""
        self._kubelet.faults.append(PodFault(FaultKind.CRASH_LOOP, image=image))

    def silence(self, node: str) -> None:
        """Its kubelet says nothing more: NotReady, and so are its pods."""
        self._kubelet.silence(node)
        self._say_ready(node, "Unknown")
        if self._plays_lifecycle:
            for pod in self._cluster.list(POD.group, POD.kind).items:
                if pod["spec"].get("nodeName") == node:
                    self._say_not_ready(pod)

    def speak(self, node: str) -> None:
        """Its kubelet is back, and says of itself and its pods how they are."""
        self._kubelet.silence(node, silent=False)

    def evict(self, pod: ObjectRef) -> None:
        """Ask for a pod to go, within its budget."""
        self._calls.evict(pod)

    def _say_ready(self, node: str, status: str) -> None:
        ref = ObjectRef(NODE.group, NODE.kind, "", node)
        try:
            found = self._cluster.get(ref)
        except NotFound:
            return
        self._status(node, {"conditions": self._with_ready(found, status, "NodeStatusUnknown")})

    def _say_not_ready(self, pod: dict[str, Any]) -> None:
        body = {"status": {"conditions": self._with_ready(pod, "False", "NodeNotReady")}}
        try:
            self._cluster.patch(POD.ref(pod), "merge", body, manager=MANAGER, subresource="status")
        except NotFound:
            return

    def _with_ready(self, body: dict[str, Any], status: str, reason: str) -> list[dict[str, Any]]:
        conditions = (body.get("status") or {}).get("conditions") or ()
        changed = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "lastTransitionTime": rfc3339(self._clock.now_ms()),
        }
        return [*(c for c in conditions if c["type"] != "Ready"), changed]

    def _status(self, node: str, status: dict[str, Any]) -> None:
        ref = ObjectRef(NODE.group, NODE.kind, "", node)
        body = {"status": status}
        self._cluster.patch(ref, "merge", body, manager=MANAGER, subresource="status")
