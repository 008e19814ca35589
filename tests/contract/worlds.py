"""The two clusters that the contract is asked of, with pods that start and nodes that live.

`real` is the real control plane; `memory` the in-memory server with the simulated controllers.
On both the simulated kubelet starts pods at once, and `until` lets time pass until a claim holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.kube.transport import Request, Response, Transport
from stoker.model.ports import Clock
from stoker.model.refs import ObjectRef
from stoker.sim.kubelet import Kubelet
from stoker.sim.kubelet_run import FaultKind, PodFault
from stoker.sim.nodes import create_node, node_manifest
from stoker.sim.pods import is_active
from stoker.sim.start_times import StartTimes
from stoker.sim.workloads import Workloads

GPU = "nvidia.com/gpu"
SECONDS = 30.0


class World:
    """One cluster, with a namespace of its own for the test."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        namespace: str,
        *,
        simulated: bool,
        step_seconds: float,
    ) -> None:
        self.transport = transport
        self.cluster = Client(transport)
        self.clock = clock
        self.namespace = namespace
        self.pool = namespace
        self._workloads = Workloads(self.cluster, transport) if simulated else None
        self._step_seconds = step_seconds
        self._nodes: list[str] = []
        times = StartTimes(plain_seconds=0, stop_seconds=0, default_image_bytes=0)
        self.kubelet = Kubelet(
            self.cluster,
            clock,
            transport,
            times=times,
            speed=1000,
        )
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        self.cluster.create(made, manager="test")

    # --------------------------------------------------------------------- time

    def step(self) -> None:
        """Let every simulated part act once, and a little time pass."""
        if self._workloads is not None:
            self._workloads.step(self.clock.now_ms())
        self.kubelet.step(self.clock.now_ms())
        self.clock.wait(self._step_seconds)

    def until(self, claim: Callable[[], object], what: str = "") -> None:
        """Step until the claim holds; fails after 30 s of this world's time."""
        deadline = self.clock.monotonic() + SECONDS
        while not claim():
            assert self.clock.monotonic() < deadline, f"it never happened: {what}"
            self.step()

    def rest(self, seconds: float = 3.0) -> None:
        """Let time pass, so that what would happen happens."""
        deadline = self.clock.monotonic() + seconds
        while self.clock.monotonic() < deadline:
            self.step()

    # ------------------------------------------------------------------ objects

    def node(self, name: str, *, gpus: int = 1, **more: Any) -> str:
        """A Ready node of this test's pool; gives its name."""
        full = f"{self.namespace}-{name}"
        labels = {"pool": self.pool, **more.pop("labels", {})}
        create_node(
            self.cluster,
            node_manifest(full, labels=labels, gpus=gpus, now_ms=self.clock.now_ms(), **more),
        )
        self._nodes.append(full)
        self.until(lambda: not self.get("Node", full, "")["spec"].get("taints"), "node is ready")
        return full

    def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Server-side apply into this test's namespace."""
        manifest["metadata"].setdefault("namespace", self.namespace)
        return self.cluster.apply(manifest, manager="stoker-test")

    def get(self, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
        """One object, of this test's namespace unless told otherwise."""
        return self.cluster.get(self.ref(kind, name, namespace))

    def exists(self, kind: str, name: str, namespace: str | None = None) -> bool:
        """Whether it stands."""
        try:
            self.get(kind, name, namespace)
        except NotFound:
            return False
        return True

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind in this test's namespace."""
        group = _GROUPS.get(kind, "")
        return list(self.cluster.list(group, kind, self.namespace).items)

    def pods(self, **labels: str) -> list[dict[str, Any]]:
        """The active pods with those labels, sorted by name."""
        found = [
            pod
            for pod in self.objects("Pod")
            if is_active(pod) and labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]
        return sorted(found, key=lambda pod: pod["metadata"]["name"])

    def delete(self, kind: str, name: str, propagation: str = "Background") -> None:
        """Delete one object of this test's namespace."""
        self.cluster.delete(self.ref(kind, name), propagation=propagation)

    def ref(self, kind: str, name: str, namespace: str | None = None) -> ObjectRef:
        """Name an object."""
        place = self.namespace if namespace is None else namespace
        return ObjectRef(_GROUPS.get(kind, ""), kind, place, name)

    def scale(self, name: str, replicas: int) -> None:
        """Set a Deployment's count on its main path."""
        body = {"spec": {"replicas": replicas}}
        self.cluster.patch(self.ref("Deployment", name), "merge", body, manager="stoker-test")

    def evict(self, pod: dict[str, Any]) -> Response:
        """Ask for an eviction, as kubectl drain does."""
        meta = {"name": pod["metadata"]["name"], "namespace": self.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        path = f"/api/v1/namespaces/{self.namespace}/pods/{meta['name']}/eviction"
        return self.transport.send(
            Request("POST", path, body=json.dumps(body).encode(), content_type="application/json")
        )

    def keep_unready(self, prefix: str) -> None:
        """Pods whose names begin so never get Ready."""
        self.kubelet.faults.append(PodFault(FaultKind.STUCK_START, pod=prefix))

    def close(self) -> None:
        """Take down what the test left."""
        for name in self._nodes:
            self.cluster.delete(ObjectRef("", "Node", "", name))
        self.cluster.delete(ObjectRef("", "Namespace", "", self.namespace))
        self.kubelet.stop()


_GROUPS = {
    "Deployment": "apps",
    "ReplicaSet": "apps",
    "PodDisruptionBudget": "policy",
    "EndpointSlice": "discovery.k8s.io",
}


def deployment(
    name: str,
    pool: str,
    *,
    replicas: int = 1,
    gpus: int = 1,
    selector: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    affinity: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A Deployment whose pods want GPUs of one pool."""
    chosen = selector or {"app": name}
    resources = {"limits": {GPU: str(gpus)}} if gpus else {}
    pod: dict[str, Any] = {
        "nodeSelector": {"pool": pool},
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "x:1", "resources": resources}],
    }
    if affinity is not None:
        pod["affinity"] = {"nodeAffinity": affinity}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": chosen},
            "template": {"metadata": {"labels": {**chosen, **(labels or {})}}, "spec": pod},
            **spec,
        },
    }
