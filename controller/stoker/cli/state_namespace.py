"""The namespace that holds inventory, history and lease: made where it is missing.

Called before anything of ours is written, by `run`, `apply` and the lease.
"""

from __future__ import annotations

from stoker.errors import Stalled, StokerError
from stoker.kube.errors import NotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.objects.names import manager_of

__all__ = ["ensure_namespace"]


def ensure_namespace(cluster: Cluster, name: str, fleet_id: str) -> None:
    """Make the namespace of inventory and lease where it is missing and we may."""
    ref = ObjectRef("", "Namespace", "", name)
    try:
        cluster.get(ref)
    except NotFound:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            cluster.apply(body, manager=manager_of(fleet_id))
        except StokerError as error:
            raise Stalled(
                f"namespace {name} is missing and cannot be made: {error.message}",
                code="state-namespace-missing",
                hint="run `stoker install … | kubectl apply -f -` first",
            ) from error
