"""Fake GPU nodes, and what they hold: Node manifests and NodeState objects.

In: names and amounts. Out: manifests to create, and `NodeStates`, which reads and writes the
weights that a node holds as the node reporter will. Used by the simulated kubelet, tests,
`stoker dev nodes` and the demo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.kube.errors import AlreadyExists, KindNotFound, NotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.objects import names

__all__ = [
    "SIMULATED_LABEL",
    "NodeStates",
    "Weights",
    "create_node",
    "node_manifest",
    "ready_condition",
]

SIMULATED_LABEL = "stoker.dev/simulated"
"""Label `true` on nodes whose pods the simulated kubelet runs."""
MANAGER = "kubelet"
DEFAULT_GPU_MEMORY_MIB = 24 * 1024


def node_manifest(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    gpus: int = 1,
    product: str = "NVIDIA-L4",
    gpu_memory_mib: int = DEFAULT_GPU_MEMORY_MIB,
    spot: bool = False,
    zone: str = "zone-a",
    cpu: str = "64",
    memory: str = "256Gi",
    pods: int = 110,
    taints: tuple[dict[str, Any], ...] = (),
    now_ms: int = 0,
) -> dict[str, Any]:
    """One Ready node as the API server keeps it, with the labels that GPU discovery sets.

    `labels` carries the pool's own. GPUs are whole devices named nvidia.com/gpu.
    """
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    known = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": zone,
        SIMULATED_LABEL: "true",
        "stoker.dev/capacity-type": "spot" if spot else "on-demand",
    }
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
        known["nvidia.com/gpu.product"] = product
        known["nvidia.com/gpu.memory"] = str(gpu_memory_mib)
        known["nvidia.com/gpu.count"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**known, **(labels or {})}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready_condition(now_ms)],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "v1.37.2",
                "kubeProxyVersion": "",
                "kernelVersion": "6.1.0",
                "osImage": "simulated",
                "containerRuntimeVersion": "simulated://1",
                "machineID": name,
                "systemUUID": name,
                "bootID": name,
            },
        },
    }


def ready_condition(now_ms: int, *, since_ms: int | None = None) -> dict[str, Any]:
    """The node condition of a live kubelet."""
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "simulated kubelet is posting ready status",
        "lastHeartbeatTime": rfc3339(now_ms),
        "lastTransitionTime": rfc3339(now_ms if since_ms is None else since_ms),
    }


def create_node(cluster: Cluster, manifest: dict[str, Any]) -> dict[str, Any]:
    """Create the node, or bring the labels, taints and status of one that stands to this."""
    name = manifest["metadata"]["name"]
    ref = ObjectRef("", "Node", "", name)
    try:
        made = cluster.create(manifest, manager=MANAGER)
    except AlreadyExists:
        labels = {"metadata": {"labels": manifest["metadata"]["labels"]}}
        made = cluster.patch(ref, "merge", labels, manager=MANAGER)
    if (made.get("status") or {}).get("allocatable") != manifest["status"]["allocatable"]:
        status = {"status": manifest["status"]}
        made = cluster.patch(ref, "merge", status, manager=MANAGER, subresource="status")
    return made


@dataclass(frozen=True, slots=True, order=True)
class Weights:
    """Weights of one model revision. `bytes` is their whole size."""

    uri: str
    revision: str
    bytes: int


class NodeStates:
    """What NodeState objects say; where the CRD is absent, what was noted here.

    One object a node, named as it. Lists are read, changed and written back whole, so only
    one writer a node may use this.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._noted: dict[str, list[dict[str, Any]]] = {}

    def holds(self, node: str, weights: Weights) -> bool:
        """Whether the node has a complete copy of exactly that revision."""
        return any(
            entry.get("complete")
            and (entry.get("uri"), entry.get("revision")) == (weights.uri, weights.revision)
            for entry in self._cache(node)
        )

    def note(self, node: str, weights: Weights, *, complete: bool) -> None:
        """Say that a copy is there, or on its way (`complete` False)."""
        others = [
            entry
            for entry in self._cache(node)
            if (entry.get("uri"), entry.get("revision")) != (weights.uri, weights.revision)
        ]
        entry = {
            "uri": weights.uri,
            "revision": weights.revision,
            "bytes": weights.bytes if complete else 0,
            "complete": complete,
        }
        cache = sorted([*others, entry], key=lambda e: (e["uri"], e["revision"]))
        self._noted[node] = cache
        self.write(node, {"cache": cache})

    def forget(self, node: str) -> None:
        """The node's disk is empty: it was replaced or cleaned."""
        self._noted.pop(node, None)
        self.write(node, {"cache": []})

    def give_notice(
        self, node: str, kind: str, *, at_ms: int, deadline_ms: int | None = None
    ) -> None:
        """Say that the node will go away, as a cloud's metadata service would."""
        notice = {"kind": kind, "at": rfc3339(at_ms)}
        if deadline_ms is not None:
            notice["deadline"] = rfc3339(deadline_ms)
        self.write(node, {"notice": notice})

    def write(self, node: str, status: dict[str, Any]) -> None:
        """Merge into the node's status, making the object where it is absent.

        Nothing happens where the API server doesn't serve NodeState.
        """
        ref = _ref(node)
        body = {"status": status}
        for _ in range(2):
            try:
                self._cluster.patch(ref, "merge", body, manager=MANAGER, subresource="status")
            except KindNotFound:
                return
            except NotFound:
                made = {
                    "apiVersion": names.API_VERSION,
                    "kind": "NodeState",
                    "metadata": {"name": node},
                }
                try:
                    self._cluster.create(made, manager=MANAGER)
                except AlreadyExists:
                    continue
            else:
                return

    def _cache(self, node: str) -> list[dict[str, Any]]:
        try:
            body = self._cluster.get(_ref(node))
        except KindNotFound:
            return self._noted.get(node, [])
        except NotFound:
            return []
        cache: list[dict[str, Any]] = (body.get("status") or {}).get("cache") or []
        return cache


def _ref(node: str) -> ObjectRef:
    return ObjectRef(names.GROUP, "NodeState", "", node, names.VERSION)
