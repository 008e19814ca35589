"""What `init --from-cluster` reads: pools from the GPU nodes, and what there is to import.

A client comes in, a `Seen` goes out. Nodes are pooled by the first label of a known kind
that they all have; nothing is invented where none fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.model.ports import Cluster
from stoker.objects import names
from stoker.report import manifest_text
from stoker.shipped import NEWEST_TEMPLATE

__all__ = ["Seen", "fleet_text", "look"]

_POOL_LABELS = (
    "pool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
    "nvidia.com/gpu.product",
)
"""What clouds and node autoscalers put on the nodes of one pool, the plainest first."""
_SPOT_LABELS = {
    "cloud.google.com/gke-spot": "true",
    "eks.amazonaws.com/capacityType": "SPOT",
    "karpenter.sh/capacity-type": "spot",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
_GPU = "nvidia.com/gpu"
_SYSTEM = frozenset({"kube-node-lease", "kube-public", "kube-system", "stoker-system"})
_WORKLOADS = ("Deployment", "StatefulSet")


@dataclass(frozen=True, slots=True)
class Seen:
    """A cluster as a Fleet file needs it.

    `pools` are (name, label, value, is spot); `namespace` the one with most GPU workloads,
    empty for none; `sources` what asks for GPUs, as arguments of `stoker import`, by
    namespace.
    """

    uid: str
    pools: tuple[tuple[str, str, str, bool], ...] = ()
    namespace: str = ""
    sources: tuple[tuple[str, tuple[str, ...]], ...] = ()


def look(cluster: Cluster) -> Seen:
    """Read nodes and workloads; raises what the Cluster port raises."""
    nodes = [node for node in cluster.list("", "Node").items if _gpus_of_node(node)]
    found: dict[str, set[str]] = {}
    count: Counter[str] = Counter()
    for kind in _WORKLOADS:
        for item in cluster.list("apps", kind).items:
            metadata = item["metadata"]
            namespace = str(metadata.get("namespace", ""))
            marked = names.OWNER in (metadata.get("annotations") or {})
            if namespace in _SYSTEM or marked or not _asks_for_gpus(item):
                continue
            found.setdefault(namespace, set()).add(_source(kind, metadata))
            count[namespace] += 1
    most = min(count, key=lambda name: (-count[name], name), default="")
    sources = tuple((space, tuple(sorted(found[space]))) for space in sorted(found))
    return Seen(cluster.server().cluster_uid, _pools(nodes), most, sources)


def fleet_text(name: str, seen: Seen) -> str:
    """The Fleet file, in mode Observe."""
    spec: dict[str, Any] = {
        "cluster": {"uid": seen.uid},
        "mode": "Observe",
        "include": ["/bundles/*/bundle.yaml"],
    }
    newest = {"modelService": {"render": {"template": NEWEST_TEMPLATE}}}
    spec["defaults"] = {"namespace": seen.namespace, **newest} if seen.namespace else newest
    if seen.pools:
        spec["pools"] = [_pool(*pool) for pool in seen.pools]
    body = {
        "apiVersion": names.API_VERSION,
        "kind": "Fleet",
        "metadata": {"name": name},
        "spec": spec,
    }
    head = "# yaml-language-server: $schema=../../.stoker/schema/fleet.json\n"
    return head + manifest_text(body)


def _pool(name: str, label: str, value: str, spot: bool) -> dict[str, Any]:  # noqa: FBT001
    pool: dict[str, Any] = {"name": name, "nodeSelector": {"matchLabels": {label: value}}}
    return {**pool, "capacityType": "Spot"} if spot else pool


def _pools(nodes: list[dict[str, Any]]) -> tuple[tuple[str, str, str, bool], ...]:
    labels = [node["metadata"].get("labels") or {} for node in nodes]
    key = next((key for key in _POOL_LABELS if labels and all(key in one for one in labels)), "")
    if not key:
        return ()
    result: dict[str, tuple[str, str, str, bool]] = {}
    for value in sorted({str(one[key]) for one in labels}):
        spot = all(_is_spot(one) for one in labels if one[key] == value)
        name = _dns_label(value)
        while name in result:
            name = f"{name[:61]}-2"
        result[name] = (name, key, value, spot)
    return tuple(result.values())


def _is_spot(labels: Mapping[str, Any]) -> bool:
    return any(labels.get(key) == value for key, value in _SPOT_LABELS.items())


def _dns_label(text: str) -> str:
    letters = (c if c.isascii() and c.isalnum() else "-" for c in text.lower())
    return "".join(letters)[:63].strip("-") or "gpu"


def _gpus_of_node(node: dict[str, Any]) -> bool:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return str(allocatable.get(_GPU, "0")) != "0"


def _asks_for_gpus(workload: dict[str, Any]) -> bool:
    pod = ((workload.get("spec") or {}).get("template") or {}).get("spec") or {}
    containers: Iterable[dict[str, Any]] = pod.get("containers") or ()
    return any(
        _GPU in ((container.get("resources") or {}).get(part) or {})
        for container in containers
        for part in ("limits", "requests")
    )


def _source(kind: str, metadata: dict[str, Any]) -> str:
    """How the workload is best imported: with everything of its Helm release, or alone."""
    release = (metadata.get("annotations") or {}).get("meta.helm.sh/release-name")
    return f"helm/{release}" if release else f"{kind.lower()}/{metadata['name']}"
