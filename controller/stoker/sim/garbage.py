"""Owner garbage collection and namespace deletion of the in-memory cluster.

In: a view. Out: dependents of vanished owners deleted, the finalizers `orphan` and
`foregroundDeletion` worked off, dying namespaces emptied and then let go.
"""

from __future__ import annotations

from typing import Any

from stoker.kube.errors import KindNotFound, NotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.sim.deployments import MANAGER
from stoker.sim.pod_calls import PodCalls
from stoker.sim.view import NAMESPACE, NODE, POD, Kind, View, Writer, is_dying, uid_of

__all__ = ["LostPods", "collect_garbage", "delete_namespaces"]

_ORPHAN = "orphan"
_FOREGROUND = "foregroundDeletion"


def collect_garbage(view: View, cluster: Cluster, _now_ms: int) -> int:
    """One round; gives the number of writes."""
    writer = Writer(cluster, MANAGER)
    dependents: dict[str, list[tuple[Kind, dict[str, Any]]]] = {}
    alive = {}
    for kind, body in view.all():
        alive[uid_of(body)] = body
        for owner in body["metadata"].get("ownerReferences") or ():
            dependents.setdefault(str(owner.get("uid")), []).append((kind, body))
    for kind, body in view.all():
        if is_dying(body):
            _work_off(kind, body, dependents.get(uid_of(body), []), writer)
        else:
            _collect(kind, body, alive, cluster, writer)
    return writer.writes


def _work_off(
    kind: Kind,
    body: dict[str, Any],
    dependents: list[tuple[Kind, dict[str, Any]]],
    writer: Writer,
) -> None:
    """Do what the owner's finalizers ask for, then take them off."""
    finalizers = body["metadata"].get("finalizers") or []
    if _ORPHAN in finalizers:
        for each_kind, each in dependents:
            _drop_owners(each_kind, each, {uid_of(body)}, writer)
        _drop_finalizer(kind, body, _ORPHAN, writer)
    elif _FOREGROUND in finalizers:
        for each_kind, each in dependents:
            if not is_dying(each):
                writer.delete(each_kind.ref(each), uid_of(each), propagation="Foreground")
        if not dependents:
            _drop_finalizer(kind, body, _FOREGROUND, writer)


def _collect(
    kind: Kind,
    body: dict[str, Any],
    alive: dict[str, dict[str, Any]],
    cluster: Cluster,
    writer: Writer,
) -> None:
    """Delete what has owners and none of them stands; drop references to those that don't."""
    owners = body["metadata"].get("ownerReferences") or ()
    gone = {
        str(owner.get("uid"))
        for owner in owners
        if not _stands(owner, str(body["metadata"].get("namespace") or ""), alive, cluster)
    }
    if not gone:
        return
    if len(gone) == len({str(owner.get("uid")) for owner in owners}):
        writer.delete(kind.ref(body), uid_of(body))
    else:
        _drop_owners(kind, body, gone, writer)


def _stands(
    owner: dict[str, Any], namespace: str, alive: dict[str, dict[str, Any]], cluster: Cluster
) -> bool:
    uid = str(owner.get("uid"))
    if uid in alive:
        return True
    group, _, version = str(owner.get("apiVersion", "")).rpartition("/")
    ref = ObjectRef(group, str(owner.get("kind")), namespace, str(owner.get("name")), version)
    try:
        return uid_of(cluster.get(ref)) == uid
    except (NotFound, KindNotFound):
        return False


def _drop_owners(kind: Kind, body: dict[str, Any], gone: set[str], writer: Writer) -> None:
    kept = [o for o in body["metadata"]["ownerReferences"] if str(o.get("uid")) not in gone]
    patch = {"metadata": {"uid": uid_of(body), "ownerReferences": kept or None}}
    writer.patch(kind.ref(body), patch)


def _drop_finalizer(kind: Kind, body: dict[str, Any], name: str, writer: Writer) -> None:
    kept = [f for f in body["metadata"]["finalizers"] if f != name]
    writer.patch(kind.ref(body), {"metadata": {"uid": uid_of(body), "finalizers": kept or None}})


class LostPods:
    """The loop `collect`, with the call that deletes without asking a kubelet."""

    def __init__(self, calls: PodCalls) -> None:
        self._calls = calls

    def collect(self, view: View, _cluster: Cluster, _now_ms: int) -> int:
        """Delete the pods of nodes that are gone; the real controller waits 40 s for this."""
        nodes = {node["metadata"]["name"] for node in view.of(NODE)}
        lost = [p for p in view.of(POD) if p["spec"].get("nodeName") not in {None, "", *nodes}]
        return sum(self._calls.force_delete(POD.ref(pod), uid_of(pod)) for pod in lost)


def delete_namespaces(view: View, cluster: Cluster, _now_ms: int) -> int:
    """Empty each dying namespace; when nothing is left, finalize it."""
    writer = Writer(cluster, MANAGER)
    for namespace in view.of(NAMESPACE):
        if not is_dying(namespace):
            continue
        name = namespace["metadata"]["name"]
        content = [
            (kind, body)
            for kind, body in view.all()
            if kind.namespaced and body["metadata"].get("namespace") == name
        ]
        for kind, body in content:
            if not is_dying(body):
                writer.delete(kind.ref(body), uid_of(body))
        if not content:
            _finalize(namespace, writer)
    return writer.writes


def _finalize(namespace: dict[str, Any], writer: Writer) -> None:
    if not (namespace.get("spec") or {}).get("finalizers"):
        return
    body = {
        **namespace,
        "apiVersion": "v1",
        "kind": "Namespace",
        "spec": {**namespace["spec"], "finalizers": []},
    }
    try:
        writer.cluster.update(body, manager=MANAGER, subresource="finalize")
    except NotFound:
        return
    writer.writes += 1
