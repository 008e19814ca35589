"""What the in-memory API server serves: built-in kinds, and custom ones from CRDs.

In: a CRD manifest (or nothing). Out: Resources, the facts that routing, storage and
discovery need. Used by the other memory modules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from stoker.objects.fieldset_trees import Tree
from stoker.objects.schema_table import ListSchema, schema_for
from stoker.objects.ssa_structural import schema_from_crd

__all__ = ["BUILT_IN", "Resource", "resources_from_crd"]

_ROWS: Final = """
v1 namespaces Namespace - status,finalize
v1 nodes Node - status
v1 persistentvolumes PersistentVolume - status
v1 configmaps ConfigMap +
v1 events Event + :create
v1 limitranges LimitRange + :create
v1 persistentvolumeclaims PersistentVolumeClaim + status
v1 pods Pod + status,binding,eviction :generation
v1 resourcequotas ResourceQuota + status
v1 secrets Secret +
v1 serviceaccounts ServiceAccount +
v1 services Service + status :create
apps/v1 controllerrevisions ControllerRevision +
apps/v1 daemonsets DaemonSet + status :generation
apps/v1 deployments Deployment + status,scale :generation
apps/v1 replicasets ReplicaSet + status,scale :generation
apps/v1 statefulsets StatefulSet + status,scale :generation
autoscaling/v2 horizontalpodautoscalers HorizontalPodAutoscaler + status :generation
batch/v1 cronjobs CronJob + status :generation
batch/v1 jobs Job + status :generation
networking.k8s.io/v1 ingresses Ingress + status :generation
networking.k8s.io/v1 ingressclasses IngressClass - :generation
networking.k8s.io/v1 networkpolicies NetworkPolicy + :generation
policy/v1 poddisruptionbudgets PodDisruptionBudget + status :generation,conditional
rbac.authorization.k8s.io/v1 clusterroles ClusterRole - :create
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding - :create
rbac.authorization.k8s.io/v1 roles Role + :create
rbac.authorization.k8s.io/v1 rolebindings RoleBinding + :create
storage.k8s.io/v1 storageclasses StorageClass -
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition - status :generation,conditional
scheduling.k8s.io/v1 priorityclasses PriorityClass - :generation
coordination.k8s.io/v1 leases Lease + :create,conditional
node.k8s.io/v1 runtimeclasses RuntimeClass -
discovery.k8s.io/v1 endpointslices EndpointSlice + :generation
"""
"""apiVersion, plural, kind, + for namespaced, subresources, and after a colon: `generation`
(metadata.generation is kept), `create` (PUT creates), `conditional` (PUT needs a
resourceVersion). In the order in which 1.37 lists its groups."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One served kind. `crd` holds the version's parts of its CRD, None for built-in kinds."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    schema: ListSchema
    subresources: tuple[str, ...] = ()
    has_generation: bool = False
    put_creates: bool = False
    needs_version: bool = False
    crd: CustomVersion | None = None

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """What the store files objects under: versions share it."""
        return f"{self.group}/{self.plural}"

    @property
    def qualified(self) -> str:
        """`deployments.apps`, or `configmaps`: how messages name the resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """`Deployment.apps`, or `ConfigMap`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def resets(self, subresource: str) -> Tree | None:
        """Fields that a write to this endpoint neither changes nor records."""
        if subresource == "status":
            if self.crd is not None:
                return {"f:metadata": {}, "f:spec": {}}
            return _STATUS_RESETS.get(self.kind, {"f:spec": {}})
        if subresource:
            return None
        return {"f:status": {}} if self.schema.resets_status else None


_STATUS_RESETS: Final[dict[str, Tree]] = {
    "Deployment": {"f:spec": {}, "f:metadata": {"f:labels": {}}},
    "CustomResourceDefinition": {"f:metadata": {}, "f:spec": {}},
    "Pod": {
        "f:spec": {},
        "f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}},
    },
}


@dataclass(frozen=True, slots=True)
class CustomVersion:
    """One version of a CRD: its structural schema and where scale finds its fields."""

    schema: dict[str, Any] = field(hash=False)
    has_status: bool = False
    spec_replicas: tuple[str, ...] = ()
    status_replicas: tuple[str, ...] = ()
    selector: tuple[str, ...] = ()


def _built_in() -> tuple[Resource, ...]:
    found: list[Resource] = []
    for row in _ROWS.strip().splitlines():
        columns = row.split()
        flags = columns.pop()[1:].split(",") if columns[-1].startswith(":") else []
        api_version, plural, kind, scope, *rest = columns
        group, _, version = api_version.rpartition("/")
        found.append(
            Resource(
                group=group,
                version=version,
                plural=plural,
                kind=kind,
                namespaced=scope == "+",
                schema=schema_for(group, kind, version),
                subresources=tuple(rest[0].split(",")) if rest else (),
                has_generation="generation" in flags,
                put_creates="create" in flags,
                needs_version="conditional" in flags,
            )
        )
    return tuple(found)


BUILT_IN: Final = _built_in()


def resources_from_crd(crd: dict[str, Any]) -> tuple[Resource, ...]:
    """One Resource for each served version of an established CRD."""
    spec = crd["spec"]
    names = spec["names"]
    found: list[Resource] = []
    for version in spec["versions"]:
        schema = schema_from_crd(crd, version["name"])
        if not version.get("served") or schema is None:
            continue
        below = version.get("subresources") or {}
        scale = below.get("scale") or {}
        found.append(
            Resource(
                group=spec["group"],
                version=version["name"],
                plural=names["plural"],
                kind=names["kind"],
                namespaced=spec.get("scope") == "Namespaced",
                schema=schema,
                subresources=tuple(name for name in ("status", "scale") if name in below),
                has_generation=True,
                needs_version=True,
                crd=CustomVersion(
                    schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
                    has_status="status" in below,
                    spec_replicas=_path(scale.get("specReplicasPath")),
                    status_replicas=_path(scale.get("statusReplicasPath")),
                    selector=_path(scale.get("labelSelectorPath")),
                ),
            )
        )
    return tuple(found)


def _path(text: str | None) -> tuple[str, ...]:
    return tuple((text or "").lstrip(".").split(".")) if text else ()
