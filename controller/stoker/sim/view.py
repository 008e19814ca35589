"""One look at the cluster for the simulated controllers, and the hand they write with.

In: the Cluster port. Out: `View`, every object of the kinds that controllers care about, and
`Writer`, which counts what it changed and takes a lost race for an answer: the next round
looks again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stoker.kube.errors import AlreadyExists, Conflict, Forbidden, KindNotFound, NotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.model.workload import LWS_GROUP, LWS_KIND

__all__ = [
    "DEPLOYMENT",
    "ENDPOINT_SLICE",
    "KINDS",
    "LEADER_WORKER_SET",
    "NAMESPACE",
    "NODE",
    "POD",
    "POD_DISRUPTION_BUDGET",
    "REPLICA_SET",
    "SERVICE",
    "Kind",
    "View",
    "Writer",
    "controller_of",
    "is_dying",
    "labels_of",
    "owner_reference",
    "selects",
    "uid_of",
]


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """A served kind. Cluster-scoped ones have no namespace."""

    group: str
    kind: str
    version: str = "v1"
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def ref(self, body: dict[str, Any]) -> ObjectRef:
        """Name an object of this kind; items of a list say neither kind nor version."""
        meta = body["metadata"]
        return ObjectRef(
            self.group, self.kind, str(meta.get("namespace") or ""), meta["name"], self.version
        )


NODE = Kind("", "Node", namespaced=False)
NAMESPACE = Kind("", "Namespace", namespaced=False)
POD = Kind("", "Pod")
SERVICE = Kind("", "Service")
DEPLOYMENT = Kind("apps", "Deployment")
REPLICA_SET = Kind("apps", "ReplicaSet")
LEADER_WORKER_SET = Kind(LWS_GROUP, LWS_KIND)
POD_DISRUPTION_BUDGET = Kind("policy", "PodDisruptionBudget")
ENDPOINT_SLICE = Kind("discovery.k8s.io", "EndpointSlice")

KINDS: tuple[Kind, ...] = (
    NODE,
    NAMESPACE,
    POD,
    SERVICE,
    DEPLOYMENT,
    REPLICA_SET,
    POD_DISRUPTION_BUDGET,
    ENDPOINT_SLICE,
    Kind("", "ConfigMap"),
    Kind("", "Secret"),
    Kind("", "ServiceAccount"),
    Kind("", "PersistentVolumeClaim"),
    Kind("", "ResourceQuota"),
    Kind("apps", "StatefulSet"),
    Kind("apps", "DaemonSet"),
    Kind("batch", "Job"),
    Kind("batch", "CronJob"),
    Kind("autoscaling", "HorizontalPodAutoscaler", "v2"),
    Kind("networking.k8s.io", "NetworkPolicy"),
    Kind("networking.k8s.io", "Ingress"),
    Kind("rbac.authorization.k8s.io", "Role"),
    Kind("rbac.authorization.k8s.io", "RoleBinding"),
    Kind("coordination.k8s.io", "Lease"),
    LEADER_WORKER_SET,
    Kind("stoker.dev", "Fleet", "v1alpha1"),
    Kind("stoker.dev", "ModelService", "v1alpha1"),
    Kind("stoker.dev", "ScalePolicy", "v1alpha1"),
)
"""What garbage collection and namespace deletion know of."""


@dataclass(frozen=True, slots=True)
class View:
    """Everything of `kinds`, each kind sorted by namespace and name; read-only."""

    objects: dict[Kind, tuple[dict[str, Any], ...]] = field(hash=False)
    _found: dict[tuple[Kind, str], tuple[dict[str, Any], ...]] = field(
        default_factory=dict, hash=False, compare=False, repr=False
    )
    _owned: dict[tuple[Kind, str], dict[str, list[dict[str, Any]]]] = field(
        default_factory=dict, hash=False, compare=False, repr=False
    )

    @classmethod
    def read(
        cls,
        cluster: Cluster,
        kinds: tuple[Kind, ...] = KINDS,
        *,
        before: View | None = None,
        changed: frozenset[Kind] | None = None,
    ) -> View:
        """List every kind once; kinds that aren't served are empty.

        With `changed` only those are listed, and the others are as in the view `before`.
        """
        objects = {}
        for kind in kinds:
            if before is not None and changed is not None and kind not in changed:
                if kind in before.objects:
                    objects[kind] = before.objects[kind]
                continue
            try:
                page = cluster.list(kind.group, kind.kind, version=kind.version)
            except KindNotFound:
                continue
            objects[kind] = tuple(
                sorted(page.items, key=lambda o: (_namespace(o), o["metadata"]["name"]))
            )
        return cls(objects)

    def of(self, kind: Kind, namespace: str = "") -> tuple[dict[str, Any], ...]:
        """All objects of a kind, in one namespace or (empty) in all."""
        found = self.objects.get(kind, ())
        if not namespace:
            return found
        if (kind, namespace) not in self._found:
            here = tuple(o for o in found if _namespace(o) == namespace)
            self._found[kind, namespace] = here
        return self._found[kind, namespace]

    def owned(self, kind: Kind, namespace: str, uid: str) -> tuple[dict[str, Any], ...]:
        """Objects of a namespace whose controller is `uid`, and orphans, in their order."""
        if (kind, namespace) not in self._owned:
            by_owner: dict[str, list[dict[str, Any]]] = {}
            for each in self.of(kind, namespace):
                by_owner.setdefault(controller_of(each), []).append(each)
            self._owned[kind, namespace] = by_owner
        by_owner = self._owned[kind, namespace]
        found = [*by_owner.get(uid, ()), *by_owner.get("", ())]
        return tuple(sorted(found, key=lambda each: str(each["metadata"]["name"])))

    def all(self) -> Iterator[tuple[Kind, dict[str, Any]]]:
        """Every object with its kind, in the order of the kinds."""
        for kind, objects in self.objects.items():
            for each in objects:
                yield kind, each


class Writer:
    """Writes as one controller. `writes` counts the changes that the server took."""

    def __init__(self, cluster: Cluster, manager: str) -> None:
        self.cluster = cluster
        self.manager = manager
        self.writes = 0

    def create(self, manifest: dict[str, Any]) -> bool:
        """Whether it stands now because of us."""
        try:
            self.cluster.create(manifest, manager=self.manager)
        except (AlreadyExists, Conflict, NotFound, Forbidden):
            return False
        self.writes += 1
        return True

    def patch(self, ref: ObjectRef, body: dict[str, Any], *, subresource: str = "") -> bool:
        """Merge patch; with metadata.uid in the body it never hits a namesake."""
        try:
            self.cluster.patch(ref, "merge", body, manager=self.manager, subresource=subresource)
        except (NotFound, Conflict, Forbidden):
            return False
        self.writes += 1
        return True

    def delete(self, ref: ObjectRef, uid: str, *, propagation: str = "Background") -> bool:
        """Delete exactly that object."""
        try:
            self.cluster.delete(ref, uid=uid, propagation=propagation)
        except (NotFound, Conflict, Forbidden):
            return False
        self.writes += 1
        return True


def _namespace(body: dict[str, Any]) -> str:
    return str(body["metadata"].get("namespace") or "")


def uid_of(body: dict[str, Any]) -> str:
    """The object's UID."""
    return str(body["metadata"].get("uid") or "")


def labels_of(body: dict[str, Any]) -> dict[str, str]:
    """The object's labels, maybe none."""
    return body["metadata"].get("labels") or {}


def is_dying(body: dict[str, Any]) -> bool:
    """Whether its deletion was asked for."""
    return bool(body["metadata"].get("deletionTimestamp"))


def controller_of(body: dict[str, Any]) -> str:
    """UID of the controlling owner, empty for an orphan."""
    for owner in body["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("uid") or "")
    return ""


def owner_reference(kind: Kind, owner: dict[str, Any]) -> dict[str, Any]:
    """The reference that makes `owner` the controller of something."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def selects(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    """Whether a LabelSelector takes those labels; an absent one takes nothing."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for term in selector.get("matchExpressions") or ():
        value = labels.get(term["key"])
        wanted = value is not None and value in (term.get("values") or ())
        match term["operator"]:
            case "In" if not wanted:
                return False
            case "NotIn" if wanted:
                return False
            case "Exists" if value is None:
                return False
            case "DoesNotExist" if value is not None:
                return False
            case _:
                continue
    return True
