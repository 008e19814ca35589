"""What the server fills in when a field is absent, for the kinds Stoker meets.

In: a manifest as Go types hold it. Out: the manifest with defaults, sharing what did not
change. Values seen on 1.37.2; run after every decode, so they count for ownership of PUT
and POST, never of apply. Used by memory_write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stoker.kube.memory_defaults_pod import (
    Json,
    each,
    fill,
    pod_defaults,
    put,
    template_defaults,
)

__all__ = ["with_defaults"]


def with_defaults(kind: str, manifest: Json) -> Json:
    """The manifest with the defaults of its kind (built-in kinds only)."""
    change = _BY_KIND.get(kind)
    return change(manifest) if change else manifest


_RBAC: Final = "rbac.authorization.k8s.io"


def _spec(change: Callable[[Json], Json]) -> Callable[[Json], Json]:
    """Lift a function over specs to manifests."""
    return lambda manifest: put(manifest, "spec", change(manifest.get("spec") or {}))


def _deployment(spec: Json) -> Json:
    strategy = fill(spec.get("strategy") or {}, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate") or {}
        rolling = fill(rolling, maxUnavailable="25%", maxSurge="25%")
        strategy = put(strategy, "rollingUpdate", rolling)
    spec = put(_templated(spec), "strategy", strategy)
    return fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)


def _templated(spec: Json) -> Json:
    return put(spec, "template", template_defaults(spec.get("template") or {}))


def _stateful_set(spec: Json) -> Json:
    strategy = fill(spec.get("updateStrategy") or {}, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = fill(strategy.get("rollingUpdate") or {}, partition=0, maxUnavailable=1)
        strategy = put(strategy, "rollingUpdate", rolling)
    policy = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    policy = fill(policy, whenDeleted="Retain", whenScaled="Retain")
    spec = put(_templated(spec), "updateStrategy", strategy)
    spec = put(spec, "persistentVolumeClaimRetentionPolicy", policy)
    spec = each(spec, "volumeClaimTemplates", _claim_template)
    return fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady")


def _claim_template(claim: Json) -> Json:
    claim = fill(claim, apiVersion="v1", kind="PersistentVolumeClaim")
    claim = put(claim, "spec", fill(claim.get("spec") or {}, volumeMode="Filesystem"))
    return put(claim, "status", fill(claim.get("status") or {}, phase="Pending"))


def _daemon_set(spec: Json) -> Json:
    strategy = fill(spec.get("updateStrategy") or {}, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = fill(strategy.get("rollingUpdate") or {}, maxUnavailable=1, maxSurge=0)
        strategy = put(strategy, "rollingUpdate", rolling)
    return fill(put(_templated(spec), "updateStrategy", strategy), revisionHistoryLimit=10)


def _daemon_set_object(manifest: Json) -> Json:
    manifest = put(manifest, "spec", _daemon_set(manifest.get("spec") or {}))
    metadata = manifest.get("metadata") or {}
    notes = metadata.get("annotations") or {}
    key = "deprecated.daemonset.template.generation"
    if key in notes:
        return manifest
    return {**manifest, "metadata": {**metadata, "annotations": {**notes, key: "1"}}}


def _job_object(manifest: Json) -> Json:
    """A Job without labels of its own takes its template's."""
    manifest = put(manifest, "spec", _job(manifest.get("spec") or {}))
    metadata = manifest.get("metadata") or {}
    labels = (manifest["spec"]["template"].get("metadata") or {}).get("labels")
    if metadata.get("labels") or not labels:
        return manifest
    return {**manifest, "metadata": {**metadata, "labels": labels}}


def _job(spec: Json) -> Json:
    spec = _templated(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec = fill(spec, completions=1)
    return fill(
        spec,
        parallelism=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="TerminatingOrFailed",
    )


def _cron_job(spec: Json) -> Json:
    job = spec.get("jobTemplate") or {}
    job = put(job, "spec", _templated(job.get("spec") or {}))
    return fill(
        put(spec, "jobTemplate", job),
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )


def _service(spec: Json) -> Json:
    spec = fill(spec, sessionAffinity="None", type="ClusterIP")
    spec = each(spec, "ports", _service_port)
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        spec = fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        spec = fill(spec, allocateLoadBalancerNodePorts=True)
    if spec["sessionAffinity"] == "ClientIP":
        spec = fill(spec, sessionAffinityConfig={"clientIP": {"timeoutSeconds": 10800}})
    elif "sessionAffinityConfig" in spec:
        spec = {key: value for key, value in spec.items() if key != "sessionAffinityConfig"}
    return spec if spec["type"] == "ExternalName" else fill(spec, internalTrafficPolicy="Cluster")


def _service_port(port: Json) -> Json:
    return fill(port, protocol="TCP", targetPort=port.get("port", 0))


_SCALE_UP: Final = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Final = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_CPU_80: Final = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def _autoscaler(spec: Json) -> Json:
    spec = fill(spec, minReplicas=1, metrics=[_CPU_80])
    behavior = spec.get("behavior")
    if behavior is not None:
        up = fill(behavior.get("scaleUp") or {}, **_SCALE_UP)
        down = fill(behavior.get("scaleDown") or {}, **_SCALE_DOWN)
        spec = put(spec, "behavior", put(put(behavior, "scaleUp", up), "scaleDown", down))
    return spec


def _role_binding(manifest: Json) -> Json:
    role = manifest.get("roleRef") or {}
    if not role.get("apiGroup"):
        role = {**role, "apiGroup": _RBAC}
    return each(put(manifest, "roleRef", role), "subjects", _subject)


def _subject(subject: Json) -> Json:
    return subject if subject.get("kind") == "ServiceAccount" else fill(subject, apiGroup=_RBAC)


def _endpoint_slice(manifest: Json) -> Json:
    return each(manifest, "ports", lambda port: fill(port, name="", protocol="TCP"))


def _namespace(manifest: Json) -> Json:
    metadata = manifest.get("metadata") or {}
    name = metadata.get("name")
    if not name:
        return manifest
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}
    if labels == metadata.get("labels"):
        return manifest
    return put(manifest, "metadata", {**metadata, "labels": labels})


def _network_policy(spec: Json) -> Json:
    types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return fill(spec, policyTypes=types)


def _crd(spec: Json) -> Json:
    names = spec.get("names") or {}
    kind = str(names.get("kind") or "")
    names = fill(names, singular=kind.lower(), listKind=f"{kind}List")
    return put(fill(spec, conversion={"strategy": "None"}), "names", names)


def _secret(manifest: Json) -> Json:
    return fill(manifest, type="Opaque")


_BY_KIND: Final[dict[str, Callable[[Json], Json]]] = {
    "Deployment": _spec(_deployment),
    "ReplicaSet": _spec(lambda spec: fill(_templated(spec), replicas=1)),
    "StatefulSet": _spec(_stateful_set),
    "DaemonSet": _daemon_set_object,
    "Job": _job_object,
    "CronJob": _spec(_cron_job),
    "Pod": _spec(pod_defaults),
    "Service": _spec(_service),
    "HorizontalPodAutoscaler": _spec(_autoscaler),
    "RoleBinding": _role_binding,
    "ClusterRoleBinding": _role_binding,
    "EndpointSlice": _endpoint_slice,
    "Namespace": _namespace,
    "NetworkPolicy": _spec(_network_policy),
    "CustomResourceDefinition": _spec(_crd),
    "Secret": _secret,
    "PersistentVolumeClaim": _spec(lambda spec: fill(spec, volumeMode="Filesystem")),
    "PersistentVolume": _spec(
        lambda spec: fill(spec, volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")
    ),
    "PriorityClass": lambda manifest: fill(manifest, preemptionPolicy="PreemptLowerPriority"),
    "StorageClass": lambda manifest: fill(
        manifest, reclaimPolicy="Delete", volumeBindingMode="Immediate"
    ),
}
