"""RBAC of one fleet: wide reading of nodes and pods, writing only where it was allowed.

Called by install. Without cluster-wide read of nodes and pods capacity is unknown and mode
Nodes holds (design section 8).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.model.workload import LWS_GROUP
from stoker.objects.names import GROUP, MANAGED_BY

__all__ = ["InstallNames", "rights"]

READ = ["get", "list", "watch"]
WRITE = ["get", "list", "watch", "create", "update", "patch", "delete"]
_ADMISSION = [
    f"{how}{what}"
    for how in ("mutating", "validating")
    for what in ("webhookconfigurations", "admissionpolicies", "admissionpolicybindings")
]
"""When one changes, the audit asks about what it matches."""
RBAC_GROUP = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class InstallNames:
    """Names that carry `instance`, the fleet id or what stands for it (cases.md row 155)."""

    instance: str
    namespace: str

    @property
    def name(self) -> str:
        """The name of everything that belongs to this fleet alone."""
        return f"stoker-{self.instance}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels that select this fleet's controller and nothing else."""
        return {"app.kubernetes.io/name": "stoker", "app.kubernetes.io/instance": self.name}

    def metadata(self, suffix: str = "", namespace: str | None = None) -> dict[str, Any]:
        """Metadata of an object; an empty namespace is for cluster-scoped ones."""
        place = self.namespace if namespace is None else namespace
        metadata: dict[str, Any] = {"name": self.name + suffix}
        if place:
            metadata["namespace"] = place
        metadata["labels"] = {**self.labels, MANAGED_BY: "stoker-install"}
        return metadata


def rights(
    names: InstallNames, namespaces: Iterable[str], header_secrets: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """Roles and their bindings: one for the cluster, one for state, one a written namespace.

    Of the Secrets beside the controller it may read those by name that hold headers.
    """
    written = sorted(set(namespaces))
    found = [_role("ClusterRole", names, "", "", _cluster_rules(written)), _binding(names, "", "")]
    found += [
        _role("Role", names, "-state", names.namespace, _state_rules(sorted(set(header_secrets)))),
        _binding(names, "-state", names.namespace),
    ]
    for namespace in written:
        found += [
            _role("Role", names, "-apply", namespace, _apply_rules()),
            _binding(names, "-apply", namespace),
        ]
    return found


def _cluster_rules(written: list[str]) -> list[dict[str, Any]]:
    """Reading, mirrors, and the very namespaces the fleet writes in: none can be made or gone."""
    mirrors = ["fleets", "modelservices", "scalepolicies"]
    spaces = _rule([""], ["namespaces"], ["get", "patch", "update"])
    return [
        *([{**spaces, "resourceNames": written}] if written else []),
        _rule([""], ["nodes", "pods", "namespaces"], READ),
        _rule([GROUP], ["nodestates"], READ),
        _rule(["autoscaling"], ["horizontalpodautoscalers"], READ),
        _rule(["keda.sh"], ["scaledobjects"], READ),
        _rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], READ),
        _rule(["admissionregistration.k8s.io"], _ADMISSION, READ),
        _rule([GROUP], mirrors, WRITE),
        _rule([GROUP], [f"{plural}/status" for plural in mirrors], ["get", "patch", "update"]),
        _rule(["argoproj.io"], ["applications"], READ),
        _rule(["helm.toolkit.fluxcd.io"], ["helmreleases"], READ),
        _rule(["kustomize.toolkit.fluxcd.io"], ["kustomizations"], READ),
        _rule(["scheduling.k8s.io"], ["priorityclasses"], READ),
        _rule(["storage.k8s.io"], ["storageclasses", "csinodes"], READ),
        _rule([""], ["persistentvolumes"], READ),
    ]


def _state_rules(header_secrets: list[str]) -> list[dict[str, Any]]:
    """Inventory and lease in the controller's namespace, and headers of metric sources."""
    headers = {**_rule([""], ["secrets"], ["get"]), "resourceNames": header_secrets}
    return [
        *([headers] if header_secrets else []),
        _rule([""], ["configmaps"], WRITE),
        _rule(["coordination.k8s.io"], ["leases"], WRITE),
        _rule(["", "events.k8s.io"], ["events"], ["create", "patch"]),
    ]


def _apply_rules() -> list[dict[str, Any]]:
    """What fleets usually hold. Other kinds need a Role of your own bound to the account."""
    return [
        _rule(
            [""],
            ["configmaps", "secrets", "services", "serviceaccounts", "persistentvolumeclaims"],
            WRITE,
        ),
        _rule([""], ["pods"], [*READ, "patch"]),
        _rule(["apps"], ["deployments", "statefulsets", "daemonsets", "replicasets"], WRITE),
        _rule(["apps"], ["deployments/scale", "statefulsets/scale"], ["get", "patch", "update"]),
        _rule(["batch"], ["jobs", "cronjobs"], WRITE),
        _rule(["policy"], ["poddisruptionbudgets"], WRITE),
        _rule(["autoscaling"], ["horizontalpodautoscalers"], WRITE),
        _rule(["inference.networking.k8s.io"], ["inferencepools"], WRITE),
        _rule([LWS_GROUP], ["leaderworkersets"], WRITE),
        _rule(["networking.k8s.io"], ["ingresses", "networkpolicies"], WRITE),
        _rule(["", "events.k8s.io"], ["events"], ["create", "patch"]),
    ]


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def _role(
    kind: str, names: InstallNames, suffix: str, namespace: str, rules: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": names.metadata(suffix, namespace),
        "rules": rules,
    }


def _binding(names: InstallNames, suffix: str, namespace: str) -> dict[str, Any]:
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    role = "Role" if namespace else "ClusterRole"
    account = {"kind": "ServiceAccount", "name": names.name, "namespace": names.namespace}
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": names.metadata(suffix, namespace),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": role, "name": names.name + suffix},
        "subjects": [account],
    }
