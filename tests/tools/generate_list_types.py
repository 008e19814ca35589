"""Writes controller/stoker/objects/list_types.json from a running API server's OpenAPI v3.

In: a running API server (by default a control plane of its own, as `make schemas` calls it).
Out: one table of structs, list types, keys and kinds, read by stoker.objects.schema_table.
What OpenAPI leaves out, which zero values Go drops from its JSON, stands in the tables below
(read off the API types of 1.37).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import urllib.parse
from pathlib import Path
from typing import Any

from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request, Transport
from stoker.sim.controlplane import ControlPlane


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OUTPUT = Path(__file__).parents[2] / "controller/stoker/objects/list_types.json"

KINDS = _words(
    """
    /v1/Binding /v1/ConfigMap /v1/Event /v1/LimitRange /v1/Namespace /v1/Node /v1/PersistentVolume
    /v1/PersistentVolumeClaim /v1/Pod /v1/ResourceQuota /v1/Secret /v1/Service /v1/ServiceAccount
    apiextensions.k8s.io/v1/CustomResourceDefinition
    apps/v1/ControllerRevision apps/v1/DaemonSet apps/v1/Deployment apps/v1/ReplicaSet
    apps/v1/StatefulSet
    autoscaling/v1/Scale autoscaling/v2/HorizontalPodAutoscaler
    batch/v1/CronJob batch/v1/Job
    coordination.k8s.io/v1/Lease discovery.k8s.io/v1/EndpointSlice
    networking.k8s.io/v1/Ingress networking.k8s.io/v1/IngressClass networking.k8s.io/v1/NetworkPolicy
    node.k8s.io/v1/RuntimeClass
    policy/v1/Eviction policy/v1/PodDisruptionBudget
    rbac.authorization.k8s.io/v1/ClusterRole rbac.authorization.k8s.io/v1/ClusterRoleBinding
    rbac.authorization.k8s.io/v1/Role rbac.authorization.k8s.io/v1/RoleBinding
    scheduling.k8s.io/v1/PriorityClass storage.k8s.io/v1/StorageClass
    """
)

ZERO_DROPPED = _words(
    """
    active available availableReplicas binaryReadOnly chapAuthDiscovery chapAuthSession count
    currentReplicas deprecated exclusiveMaximum exclusiveMinimum failed fullyLabeledReplicas
    globalDefault healthCheckNodePort hostIPC hostNetwork hostPID hostPort initialDelaySeconds
    minReadySeconds nodePort nullable numberAvailable numberUnavailable observedGeneration
    partition paused preserveUnknownFields priority publishNotReadyAddresses readOnly
    readyReplicas signal sizeBytes sslEnabled stdin stdinOnce succeeded tty unavailableReplicas
    uniqueItems unschedulable updatedNumberScheduled updatedReplicas generation
    x-kubernetes-embedded-resource x-kubernetes-int-or-string
    Probe.timeoutSeconds Probe.periodSeconds Probe.successThreshold Probe.failureThreshold
    ScaleSpec.replicas DeploymentStatus.replicas ServiceBackendPort.number
    """
)
"""Numbers and booleans that Go leaves out when zero (plain type with omitempty), by field
name, or by struct and field where another struct keeps the same name."""

ZERO_KEPT = _words(
    """
    PodSpec.priority RollingUpdateStatefulSetStrategy.partition EvictionResponder.priority
    CSIVolumeSource.readOnly HorizontalPodAutoscalerStatus.observedGeneration
    HorizontalPodAutoscalerCondition.observedGeneration
    """
)
"""Exceptions: pointers whose field name is in ZERO_DROPPED."""

EMPTY_KEPT = _words(
    """
    TypedLocalObjectReference.apiGroup TypedObjectReference.apiGroup appProtocol
    completionMode PodFailurePolicyOnExitCodesRequirement.containerName
    currentVolumeAttributesClassName
    failedIndexes holderIdentity Endpoint.hostname hostnameOverride ingressClassName
    internalTrafficPolicy ipFamilyPolicy loadBalancerClass localhostProfile managedBy
    preemptionPolicy preferredHolder procMount runtimeClassName seLinuxChangePolicy
    PersistentVolumeClaimSpec.storageClassName strategy succeededIndexes supplementalGroupsPolicy timeZone trafficDistribution
    unhealthyPodEvictionPolicy volumeAttributesClassName volumeMode zone $ref
    x-kubernetes-list-type x-kubernetes-map-type HostPathVolumeSource.type
    PodDNSConfigOption.value EndpointPort.name Endpoint.nodeName
    """
)
"""Text fields that are pointers in Go: an empty text is kept."""

VALUE_TIMES = _words(
    """
    eventTime finishedAt firstTimestamp lastHeartbeatTime lastObservedTime lastProbeTime
    lastTimestamp lastTransitionTime lastUpdateTime startedAt
    """
)
"""Times that are no pointers in Go: printed as null when absent."""

NULL_EMITTED = _words(
    """
    Role.rules ClusterRole.rules EndpointSlice.endpoints EndpointSlice.ports PodSpec.containers
    HorizontalPodAutoscalerStatus.currentMetrics CustomResourceDefinitionStatus.conditions
    CustomResourceDefinitionStatus.storedVersions
    """
)
"""Lists without omitempty: printed as null when empty."""

NAMED = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "q",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "o",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "t",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "u",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "r",
}


class Table:
    """Collects structs in the order they are met."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self.schemas = schemas
        self.index: dict[str, int] = {}
        self.types: list[Any] = []

    def named(self, name: str) -> Any:
        """The reference to a named definition."""
        if name in NAMED:
            return NAMED[name]
        schema = self.schemas[name]
        if "properties" not in schema:
            return "x" if schema.get("type") == "object" else "j"
        if name not in self.index:
            self.index[name] = len(self.types)
            self.types.append(None)
            self.types[self.index[name]] = self.struct(name, schema)
        return self.index[name]

    def struct(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """One struct: its fields, and what is special about it."""
        short = name.rsplit(".", 1)[1]
        out: dict[str, Any] = {"n": short, "f": {}}
        required = schema.get("required", [])
        for field, member in sorted(schema["properties"].items()):
            out["f"][field] = self.member(name, short, field, member)
            default = member.get("default")
            if default not in (None, "", 0, {}, False):
                out.setdefault("d", {})[field] = default
            if member.get("x-kubernetes-patch-strategy") == "replace":
                out.setdefault("p", []).append(field)
            if f"{short}.{field}" in NULL_EMITTED:
                out.setdefault("e", []).append(field)
        if schema.get("x-kubernetes-map-type") == "atomic":
            out["a"] = 1
        if required:
            out["r"] = required
        return out

    def member(self, name: str, short: str, field: str, member: dict[str, Any]) -> Any:
        """The reference of one field."""
        ref = member.get("$ref") or next((r["$ref"] for r in member.get("allOf", ())), "")
        if ref:
            code = self.named(ref.rsplit("/", 1)[1])
            if code in ("t", "u") and field in VALUE_TIMES:
                return code.upper()
            if isinstance(code, int):
                if member.get("x-kubernetes-map-type") == "atomic" and not self.is_atomic(ref):
                    raise SystemExit(f"{name}.{field}: atomic by reference is not supported")
                if member.get("default") == {}:
                    return ["v", code]
            return code
        match member.get("type"):
            case "array":
                element = self.member(name, short, "", member["items"])
                kind = member.get("x-kubernetes-list-type", "atomic")
                merge = (
                    member.get("x-kubernetes-patch-merge-key", "")
                    if "merge" in member.get("x-kubernetes-patch-strategy", "")
                    else ""
                )
                if kind == "map":
                    return ["L", element, member["x-kubernetes-list-map-keys"], merge]
                if kind == "set":
                    return ["S", element]
                return ["l", element, merge] if merge else ["l", element]
            case "object":
                if "additionalProperties" not in member:
                    return "x"
                element = self.member(name, short, "", member["additionalProperties"])
                atomic = member.get("x-kubernetes-map-type") == "atomic"
                return ["M" if atomic else "m", element]
            case "string":
                return self.text(short, field, member)
            case "integer" | "number" | "boolean":
                return self.number(short, field, member)
            case _:
                return "x"

    def is_atomic(self, ref: str) -> bool:
        """Whether the named struct is itself atomic."""
        schema = self.schemas[ref.rsplit("/", 1)[1]]
        return bool(schema.get("x-kubernetes-map-type") == "atomic")

    @staticmethod
    def text(short: str, field: str, member: dict[str, Any]) -> str:
        """Code s is dropped when empty, S always printed, p a pointer, d bytes."""
        if member.get("format") == "byte":
            return "d"
        if member.get("default") == "" and short != "LocalObjectReference":
            return "S"
        if field in EMPTY_KEPT or f"{short}.{field}" in EMPTY_KEPT:
            return "p"
        return "s"

    @staticmethod
    def number(short: str, field: str, member: dict[str, Any]) -> str:
        """i, b, f are pointers; z, y dropped when zero; I, B always printed."""
        boolean = member["type"] == "boolean"
        full = f"{short}.{field}"
        if "default" in member and not member["default"] and full not in ZERO_DROPPED:
            return "B" if boolean else "I"
        if (field in ZERO_DROPPED or full in ZERO_DROPPED) and full not in ZERO_KEPT:
            return "y" if boolean else "z"
        if member["type"] == "number":
            return "f"
        return "b" if boolean else "i"


def generate(cluster: Transport) -> str:
    """The whole table as text."""

    def read(path: str, query: str = "") -> Any:
        pairs = tuple(urllib.parse.parse_qsl(query))
        return json.loads(cluster.send(Request("GET", path, pairs)).body)

    version = read("/version")["gitVersion"]
    root = read("/openapi/v3")["paths"]
    schemas: dict[str, Any] = {}
    for path in {f"apis/{k.rsplit('/', 1)[0]}" if k[0] != "/" else "api/v1" for k in KINDS} & set(
        root
    ):
        document = read(*root[path]["serverRelativeURL"].split("?", 1))
        schemas |= document["components"]["schemas"]
    table = Table(schemas)
    kinds: dict[str, Any] = {}
    for name, schema in sorted(schemas.items()):
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            key = f"{gvk['group']}/{gvk['version']}/{gvk['kind']}"
            if key in KINDS:
                kinds[key] = table.named(name)
    missing = sorted(KINDS - set(kinds))
    if missing:
        raise SystemExit(f"not served: {missing}")
    meta = table.named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    head = json.dumps(
        {"server": version, "meta": meta, "kinds": dict(sorted(kinds.items()))},
        separators=(",", ":"),
    )
    lines = ",\n".join(json.dumps(t, separators=(",", ":")) for t in table.types)
    return re.sub(r"\}$", ',"types":[\n', head) + lines + "\n]}\n"


def main() -> int:
    """Generate from --url or a control plane of its own; write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", help="an API server; without it one is started")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    if options.kubeconfig:
        text = generate(HttpsTransport.from_kubeconfig(options.kubeconfig))
    else:
        components = ("etcd", "kube-apiserver")
        with (
            tempfile.TemporaryDirectory() as folder,
            ControlPlane(Path(folder), components=components) as plane,
        ):
            text = generate(HttpsTransport.from_kubeconfig(plane.kubeconfig_path))
    if options.check:
        return 0 if OUTPUT.read_text("utf-8") == text else 1
    OUTPUT.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
