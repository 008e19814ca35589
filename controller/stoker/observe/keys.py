"""What is watched: one kind in one namespace, or in all of them.

A WatchKey is the identity of one cache and one watch thread; whoever needs to see a kind
hands its keys to `Observer.ensure`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stoker.model.refs import ObjectRef
from stoker.objects.names import GROUP, VERSION

__all__ = [
    "CRDS",
    "FLEETS",
    "HPAS",
    "NAMESPACES",
    "NODES",
    "NODE_STATES",
    "PODS",
    "SCALED_OBJECTS",
    "SERVICES",
    "WatchKey",
    "base_keys",
]


@dataclass(frozen=True, slots=True, order=True)
class WatchKey:
    """A kind, in the version to be read, in one namespace or (empty) in all."""

    group: str
    kind: str
    version: str
    namespace: str = ""

    def covers(self, ref: ObjectRef) -> bool:
        """Whether an object of that name would be in this cache, in whatever version."""
        return (
            self.group == ref.group
            and self.kind == ref.kind
            and self.namespace in {"", ref.namespace}
        )

    def ref(self, namespace: str, name: str) -> ObjectRef:
        """The object of that name, in the version that is read."""
        return ObjectRef(self.group, self.kind, namespace, name, self.version)

    @property
    def label(self) -> str:
        """How Snapshot.unknown names it: `nodes`, `deployments/llm`."""
        word = self.kind.lower()
        if word.endswith("y") and not word.endswith(("ay", "ey", "oy", "uy")):
            word = f"{word[:-1]}ies"
        else:
            word += "es" if word.endswith(("s", "x", "ch")) else "s"
        return f"{word}/{self.namespace}" if self.namespace else word


NODES = WatchKey("", "Node", "v1")
PODS = WatchKey("", "Pod", "v1")
NAMESPACES = WatchKey("", "Namespace", "v1")
CRDS = WatchKey("apiextensions.k8s.io", "CustomResourceDefinition", "v1")
HPAS = WatchKey("autoscaling", "HorizontalPodAutoscaler", "v2")
SCALED_OBJECTS = WatchKey("keda.sh", "ScaledObject", "v1alpha1")
NODE_STATES = WatchKey(GROUP, "NodeState", VERSION)
FLEETS = WatchKey(GROUP, "Fleet", VERSION)
SERVICES = WatchKey(GROUP, "ModelService", VERSION)
"""The mirrors: people ask things of us by annotations on them."""

_BASE = (NODES, PODS, NAMESPACES, CRDS, HPAS, SCALED_OBJECTS, NODE_STATES, FLEETS, SERVICES)


def base_keys(namespaces: Iterable[str]) -> tuple[WatchKey, ...]:
    """What every pass needs: the cluster-wide kinds, and Deployments in these namespaces.

    An empty name among the namespaces means all of them, in one cache.
    """
    places = sorted(set(namespaces))
    if "" in places:
        places = [""]
    return (*_BASE, *(WatchKey("apps", "Deployment", "v1", place) for place in places))
