"""Every name that Stoker stamps on objects: manager, labels, annotations, owner marks."""

from __future__ import annotations

import hashlib

from stoker.model.refs import ObjectRef, UnitRef

__all__ = [
    "ADDRESS",
    "ADOPT",
    "ADOPTED",
    "API_VERSION",
    "DOMAIN",
    "DRAINING_SINCE",
    "FLEET_ID",
    "FLEET_LABEL",
    "GROUP",
    "MANAGED_BY",
    "MODEL_REVISION_LABEL",
    "NODE",
    "NODES",
    "NODE_UID",
    "OWNER",
    "PLACEMENT_LABEL",
    "PREFETCH_LABEL",
    "PREFETCH_MODEL",
    "PRUNE",
    "RECONCILE",
    "RECREATE",
    "REV",
    "SERVICE_LABEL",
    "SOURCE",
    "TEMPLATE",
    "TRAFFIC_LABEL",
    "VERSION",
    "deployment_name",
    "fleet_id_of",
    "fleet_of_mark",
    "group_name",
    "manager_of",
    "owner_mark",
    "place_in_pool",
    "placement_label",
    "pool_of_place",
    "prefetch_name",
    "unit_of_mark",
    "workload_name",
]

GROUP = "stoker.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

OWNER = "stoker.dev/owner"
"""Annotation on every applied object; names the object itself, so a copy is worthless."""
SOURCE = "stoker.dev/source"
"""Annotation on workloads: the file the unit stands in (no line: lines move)."""
NODE = "stoker.dev/node"
"""Annotation on Deployments of mode Nodes: the decided node's name, or `pool/<name>` for one
without a node (placement.whenFull: Unpinned).
"""
NODE_UID = "stoker.dev/node-uid"
NODES = "stoker.dev/nodes"
"""Annotation on LeaderWorkerSets of mode Nodes: the decided nodes, the leader's first."""
DOMAIN = "stoker.dev/domain"
"""Annotation on them: the value of placement.groupTopology.key on all of these nodes."""
REV = "stoker.dev/rev"
"""Annotation on Deployments: hash of the neutral pod template they were made from."""
DRAINING_SINCE = "stoker.dev/draining-since"
"""Annotation on a pod whose traffic label was taken off: RFC 3339, UTC."""
ADDRESS = "stoker.dev/address"
"""Annotation on simulated pods: `127.0.0.1:port` of the engine, since slices refuse loopback."""

ADOPT = "stoker.dev/adopt"
"""Annotation in Git: `enabled` takes over an object that somebody else made, by its name."""
PRUNE = "stoker.dev/prune"
"""Annotation in Git: `disabled` keeps the object when it leaves Git; `enabled` consents to
its deletion where that needs consent.
"""
RECREATE = "stoker.dev/recreate"
"""Annotation in Git: `enabled` answers a change of a fixed field by delete and create."""
RECONCILE = "stoker.dev/reconcile"
"""Annotation in Git: `disabled` leaves the object as it is live, `create-only` once it stands."""
TEMPLATE = "stoker.dev/template"
"""Annotation on a Deployment that a ModelService adopted: `adopted` while its pod template is
the one it came with.
"""
ADOPTED = "stoker.dev/adopted"
"""Annotation on live objects that somebody else made and this fleet took over; ours to write."""
FLEET_ID = "stoker.dev/fleet-id"
"""Annotation on mirrors: the fleet that writes them. It proves no ownership of anything else."""

FLEET_LABEL = "stoker.dev/fleet"
SERVICE_LABEL = "stoker.dev/service"
"""Label on Deployments and pods of a ModelService: its name. With the namespace it is unique."""
PLACEMENT_LABEL = "stoker.dev/placement"
"""Label that makes each Deployment's selector unique (siblings would adopt ReplicaSets)."""
TRAFFIC_LABEL = "stoker.dev/traffic"
"""Label `true` on pods that the Service selects; taking it off starts a drain."""
MODEL_REVISION_LABEL = "stoker.dev/model-revision"
PREFETCH_LABEL = "stoker.dev/prefetch"
"""Label on Jobs that fetch ahead of a start, and on their pods: the service's name."""
PREFETCH_MODEL = "stoker.dev/prefetch-model"
"""Annotation on such a Job: `<uri>@<revision>` of the weights; absent for the image only."""
MANAGED_BY = "app.kubernetes.io/managed-by"

MAX_SERVICE_IN_NAME = 40
MAX_SERVICE_OF_GROUP = 30
"""A StatefulSet's name and a hash of 10 have to fit into a label of its pods (63)."""
_POOL_PLACE = "pool/"


def _hash8(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def fleet_id_of(cluster_uid: str, fleet_name: str) -> str:
    """The id of a fleet that was given none: 8 hex digits of cluster and first name."""
    return _hash8(cluster_uid, fleet_name)


def manager_of(fleet_id: str) -> str:
    """The field manager of a fleet."""
    return f"stoker-{fleet_id}"


def _unit_part(unit: UnitRef) -> str:
    return f"{unit.kind}.{unit.namespace}.{unit.name}"


def owner_mark(fleet_id: str, unit: UnitRef, ref: ObjectRef) -> str:
    """`<fleet id>/<Kind.namespace.name of the unit>/<group>/<kind>/<namespace>/<name>`."""
    return f"{fleet_id}/{_unit_part(unit)}/{ref.group}/{ref.kind}/{ref.namespace}/{ref.name}"


def unit_of_mark(mark: str, fleet_id: str, ref: ObjectRef) -> UnitRef | None:
    """The unit an owner mark names, if the mark is this fleet's and names `ref` itself."""
    parts = mark.split("/")
    if len(parts) != 6 or parts[0] != fleet_id:
        return None
    if parts[2:] != [ref.group, ref.kind, ref.namespace, ref.name]:
        return None
    unit = parts[1].split(".", 2)
    if len(unit) != 3:
        return None
    return UnitRef(kind=unit[0], namespace=unit[1], name=unit[2])


def fleet_of_mark(mark: str, ref: ObjectRef) -> str:
    """The fleet id of an owner mark that names `ref` itself; empty for any other text."""
    parts = mark.split("/")
    names_it = len(parts) == 6 and parts[2:] == [ref.group, ref.kind, ref.namespace, ref.name]
    return parts[0] if names_it else ""


def placement_label(service: str, node: str, rev: str, *, grouped: bool = False) -> str:
    """Value of PLACEMENT_LABEL. In mode Scheduler node is empty: `any-<hash8>`, of groups
    `groups-<hash8>`.
    """
    if not node:
        return f"{'groups' if grouped else 'any'}-{_hash8(service)}"
    return f"{_hash8(service, node)}-{rev[:8]}"


def place_in_pool(pool: str) -> str:
    """What stands for a node's name where a replica may run on any node of a pool; no node can
    be called so.
    """
    return _POOL_PLACE + pool


def pool_of_place(place: str) -> str:
    """The pool of `place_in_pool`; empty for a node's name."""
    return place.removeprefix(_POOL_PLACE) if place.startswith(_POOL_PLACE) else ""


def deployment_name(service: str, node: str, rev: str) -> str:
    """Name of the Deployment of (service, node, rev); the service's own name without node."""
    if not node:
        return service
    prefix = service[:MAX_SERVICE_IN_NAME].rstrip("-.")
    return f"{prefix}-{_hash8(service, node)}-{rev[:8]}"


def group_name(service: str, node: str, rev: str) -> str:
    """Name of the LeaderWorkerSet of (service, leader's node, rev).

    Without a node it is not the service's own: its controller makes a headless Service of that
    name, and the service's Service is called so already.
    """
    prefix = service[:MAX_SERVICE_OF_GROUP].rstrip("-.")
    if not node:
        return f"{prefix}-groups-{_hash8(service)}"
    return f"{prefix}-{_hash8(service, node)}-{rev[:8]}"


def workload_name(service: str, node: str, rev: str, *, grouped: bool) -> str:
    """Name of the LeaderWorkerSet or Deployment of (service, node, rev)."""
    return (group_name if grouped else deployment_name)(service, node, rev)


def prefetch_name(service: str, *identity: str) -> str:
    """Name of the Job that fetches ahead for a service; `identity` is what, where and how."""
    prefix = service[:MAX_SERVICE_IN_NAME].rstrip("-.")
    return f"{prefix}-prefetch-{_hash8(service, *identity)}"
