"""What is known of kinds without asking a server: order, pod templates, consent to delete.

An ObjectRef or (group, kind) comes in, plain facts go out. Used by render and diff for
the order, by check, diff and apply for pod templates and for what is never pruned.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from stoker.model.refs import ObjectRef
from stoker.objects.paths import value_under

__all__ = [
    "CRD_GROUP",
    "NEEDS_CONSENT",
    "Stage",
    "apply_order",
    "delete_order",
    "is_builtin_group",
    "is_builtin_namespaced",
    "pod_specs_of",
    "pod_template_paths",
    "stage_of",
]


class Stage(IntEnum):
    """When an object is sent. FOUNDATION of all units comes before anything else."""

    FOUNDATION = 0
    CONFIG = 1
    WORKLOAD = 2
    GUARD = 3
    """Admission hooks and aggregated APIs: sent last, for they judge everything after them."""


CRD_GROUP: Final = "apiextensions.k8s.io"

_ORDER: tuple[tuple[Stage, tuple[tuple[str, str], ...]], ...] = (
    (
        Stage.FOUNDATION,
        (("", "Namespace"), (CRD_GROUP, "CustomResourceDefinition")),
    ),
    (
        Stage.CONFIG,
        (
            ("scheduling.k8s.io", "PriorityClass"),
            ("node.k8s.io", "RuntimeClass"),
            ("", "ResourceQuota"),
            ("", "LimitRange"),
            ("networking.k8s.io", "NetworkPolicy"),
            ("", "ServiceAccount"),
            ("", "Secret"),
            ("", "ConfigMap"),
            ("storage.k8s.io", "StorageClass"),
            ("", "PersistentVolume"),
            ("", "PersistentVolumeClaim"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io", "Role"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("policy", "PodDisruptionBudget"),
            ("networking.k8s.io", "IngressClass"),
            ("networking.k8s.io", "Ingress"),
            ("", "Endpoints"),
            ("discovery.k8s.io", "EndpointSlice"),
            ("", "Service"),
        ),
    ),
    (
        Stage.WORKLOAD,
        (
            ("apps", "DaemonSet"),
            ("", "Pod"),
            ("", "ReplicationController"),
            ("apps", "ReplicaSet"),
            ("apps", "StatefulSet"),
            ("apps", "Deployment"),
            ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
            ("batch", "Job"),
            ("batch", "CronJob"),
            ("autoscaling", "HorizontalPodAutoscaler"),
            ("keda.sh", "ScaledObject"),
        ),
    ),
    (
        Stage.GUARD,
        (
            ("apiregistration.k8s.io", "APIService"),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
            ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ),
    ),
)
"""What others need comes first: accounts before bindings, config before what mounts it."""

_RANKS: dict[tuple[str, str], tuple[Stage, int]] = {
    kind: (stage, rank) for stage, kinds in _ORDER for rank, kind in enumerate(kinds)
}
_UNKNOWN_RANK = (Stage.CONFIG, len(_ORDER[1][1]))
"""Custom resources configure operators: after all known config, before workloads."""

NEEDS_CONSENT: frozenset[tuple[str, str]] = frozenset(
    {
        ("", "Namespace"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("", "Secret"),
        (CRD_GROUP, "CustomResourceDefinition"),
    }
)
"""Kinds that are deleted only when a commit trailer names the object (design section 6).

Any Secret may hold the token of a model, and what named it may leave Git in the same
commit; so all of them need consent.
"""

_BUILTIN_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        CRD_GROUP,
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    }
)

_CLUSTER_SCOPED = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        (CRD_GROUP, "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttributesClass"),
        ("storage.k8s.io", "VolumeAttachment"),
    }
)
"""Read from the discovery of Kubernetes 1.37; everything else built in has a namespace."""

_TEMPLATES: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("", "ReplicationController"): (("spec", "template"),),
    ("apps", "DaemonSet"): (("spec", "template"),),
    ("apps", "Deployment"): (("spec", "template"),),
    ("apps", "ReplicaSet"): (("spec", "template"),),
    ("apps", "StatefulSet"): (("spec", "template"),),
    ("batch", "CronJob"): (("spec", "jobTemplate", "spec", "template"),),
    ("batch", "Job"): (("spec", "template"),),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
    ),
}


def stage_of(ref: ObjectRef) -> Stage:
    """When the object is sent."""
    return _RANKS.get((ref.group, ref.kind), _UNKNOWN_RANK)[0]


def apply_order(ref: ObjectRef) -> tuple[int, int, str, str, str, str]:
    """Sort key: what others need comes first; ties by group, kind, namespace and name."""
    stage, rank = _RANKS.get((ref.group, ref.kind), _UNKNOWN_RANK)
    return (int(stage), rank, ref.group, ref.kind, ref.namespace, ref.name)


def delete_order(ref: ObjectRef) -> tuple[int, int, str, str, str, str]:
    """Sort key for deletes: dependents first, custom resources before their CRD."""
    stage, rank, *rest = apply_order(ref)
    group, kind, namespace, name = rest
    return (-stage, -rank, group, kind, namespace, name)


def pod_template_paths(group: str, kind: str) -> tuple[tuple[str, ...], ...]:
    """Where the kind holds pod templates, as map keys from the top; empty for none.

    A Pod itself is not a template: nothing rolls it out.
    """
    return _TEMPLATES.get((group, kind), ())


def pod_specs_of(body: dict[str, Any], group: str, kind: str) -> list[dict[str, Any]]:
    """The pod specs inside a manifest, in the order of `pod_template_paths`."""
    specs = (value_under(body, (*path, "spec")) for path in pod_template_paths(group, kind))
    return [spec if isinstance(spec, dict) else {} for spec in specs]


def is_builtin_group(group: str) -> bool:
    """Whether the API server itself serves the group, with its defaults and quantities."""
    return group in _BUILTIN_GROUPS


def is_builtin_namespaced(group: str, kind: str) -> bool | None:
    """Whether a built-in kind lives in namespaces; None for custom resources."""
    if not is_builtin_group(group):
        return None
    return (group, kind) not in _CLUSTER_SCOPED
