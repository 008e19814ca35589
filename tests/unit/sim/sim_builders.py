"""A cluster in memory in virtual time, with simulated controllers and kubelet."""

from __future__ import annotations

from typing import Any

from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.kube.memory import MemoryServer
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.clock import DEFAULT_START_MS, VirtualClock
from stoker.sim.kubelet import Kubelet
from stoker.sim.nodes import create_node, node_manifest
from stoker.sim.start_times import GIB, StartTimes
from stoker.sim.view import POD, Kind
from stoker.sim.workloads import Workloads

T0 = DEFAULT_START_MS
GPU = "nvidia.com/gpu"
KINDS = {
    "Deployment": Kind("apps", "Deployment"),
    "ReplicaSet": Kind("apps", "ReplicaSet"),
    "Pod": POD,
    "ConfigMap": Kind("", "ConfigMap"),
    "Node": Kind("", "Node", namespaced=False),
    "NodeState": Kind(names.GROUP, "NodeState", "v1alpha1", namespaced=False),
}

# Round figures: 10 s to pull, 20 s to download, 2 s from disk, 3 s of init, no graphs.
TIMES = StartTimes(
    default_image_bytes=10 * GIB,
    default_weights_bytes=20 * GIB,
    pull_bytes_per_second=GIB,
    download_bytes_per_second=GIB,
    disk_bytes_per_second=10 * GIB,
    init_seconds=3,
    capture_seconds=0,
    plain_seconds=1,
    stop_seconds=1,
)


class Sim:
    """Everything at once; `run` lets virtual time pass."""

    def __init__(self, *, node_state: bool = True, heartbeat_seconds: float = 0) -> None:
        self.clock = VirtualClock()
        self.server = MemoryServer(self.clock)
        self.cluster = Client(self.server)
        self.workloads = Workloads(self.cluster, self.server)
        self.heartbeat_seconds = heartbeat_seconds
        self.kubelet = self.new_kubelet()
        if node_state:
            self.cluster.apply(node_state_crd(), manager="test")

    def new_kubelet(self) -> Kubelet:
        """As after a restart: it remembers nothing."""
        return Kubelet(
            self.cluster,
            self.clock,
            self.server,
            times=TIMES,
            heartbeat_seconds=self.heartbeat_seconds,
        )

    def node(self, name: str, **more: Any) -> None:
        create_node(self.cluster, node_manifest(name, **more))

    def apply(self, *manifests: dict[str, Any]) -> None:
        for manifest in manifests:
            self.cluster.apply(manifest, manager="test")

    def patch(self, kind: str, name: str, body: dict[str, Any], subresource: str = "") -> None:
        self.cluster.patch(
            self.ref(kind, name), "merge", body, manager="test", subresource=subresource
        )

    def delete(self, kind: str, name: str) -> None:
        self.cluster.delete(self.ref(kind, name))

    def ref(self, kind: str, name: str) -> ObjectRef:
        known = KINDS[kind]
        place = "default" if known.namespaced else ""
        return ObjectRef(known.group, kind, place, name, known.version)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return self.cluster.get(self.ref(kind, name))

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            return self.get(kind, name)
        except NotFound:
            return None

    def all(self, kind: str) -> list[dict[str, Any]]:
        items = self.cluster.list(KINDS[kind].group, kind).items
        return sorted(items, key=lambda o: o["metadata"]["name"])

    def settle(self) -> int | None:
        """Controllers and kubelet act until nothing is left to do now; gives the next due time."""
        for _ in range(100):
            due = self.kubelet.step(self.clock.now_ms())
            if not self.workloads.step(self.clock.now_ms()):
                return due
        raise AssertionError("the controllers fight")

    def run(self, seconds: float) -> None:
        """Let time pass, from one thing that is due to the next."""
        end = self.clock.now_ms() + round(seconds * 1000)
        due = self.settle()
        while self.clock.now_ms() < end:
            self.clock.advance_to(min(end, due or end, self.clock.now_ms() + 10_000))
            due = self.settle()


def node_state_crd() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodestates.stoker.dev"},
        "spec": {
            "group": names.GROUP,
            "scope": "Cluster",
            "names": {"plural": "nodestates", "kind": "NodeState", "singular": "nodestate"},
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def model_pod_spec(*args: str, host_path: bool = True, **more: Any) -> dict[str, Any]:
    """A pod that loads weights `hf://o/model` at revision abc and asks for one GPU."""
    source = {"hostPath": {"path": "/mnt/cache"}} if host_path else {"emptyDir": {}}
    engine = {
        "name": "engine",
        "image": "registry.example/vllm:1",
        "command": ["vllm", "serve"],
        "args": ["o/model", "--revision=abc", *args],
        "resources": {"limits": {GPU: "1"}},
    }
    return {"containers": [engine], "volumes": [{"name": "cache", **source}], **more}


def deployment(
    name: str,
    *,
    replicas: int = 1,
    pod: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    plain = {"containers": [{"name": "c", "image": "registry.example/plain:1"}]}
    chosen = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": chosen},
            "template": {
                "metadata": {"labels": {**chosen, **(labels or {})}},
                "spec": pod or plain,
            },
            **spec,
        },
    }


def model_deployment(
    name: str = "llm", *args: str, replicas: int = 1, **more: Any
) -> dict[str, Any]:
    """A Deployment of engine pods."""
    pod = model_pod_spec(*args, **more)
    return deployment(name, replicas=replicas, pod=pod, labels={names.SERVICE_LABEL: name})
