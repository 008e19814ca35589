"""Where the in-memory API server answers differently from the real one, and why that stands.

Each difference is asked of both servers by test_known_differences.py: what stands here stays
true, and a difference that vanishes must leave this file. Not listed: what needs controllers
or kubectl (ssa-facts rows 48, 52 with an HPA, 57 with owners, 58, 60), which live elsewhere,
and texts that only a person reads (YAML positions, Go dumps of whole objects).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contract.api import Api, deployment, template

__all__ = ["DIFFERENCES", "Difference"]


@dataclass(frozen=True)
class Difference:
    """`ask` gives what a server answers; `memory` and `real` are what they answer."""

    name: str
    why: str
    ask: Callable[[Api], Any]
    memory: Any
    real: Any


def rights(api: Api) -> int:
    """ssa-facts row 13: a user without rights reads a ConfigMap."""
    return api.as_nobody().get("ConfigMap", "absent").status


def claim_finalizers(api: Api) -> Any:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return api.apply("PersistentVolumeClaim", "p", {"spec": spec})["metadata.finalizers"]


def new_node_taints(api: Api) -> Any:
    taints = api.apply("Node", f"{api.ns}-n", {})["spec.taints"] or []
    return [taint["key"] for taint in taints]


def other_version(api: Api) -> int:
    path = f"/apis/autoscaling/v1/namespaces/{api.ns}/horizontalpodautoscalers"
    return api.send("GET", path).status


def rarer_group(api: Api) -> int:
    return api.send("GET", "/apis/resource.k8s.io/v1/deviceclasses").status


def open_api(api: Api) -> int:
    return api.send("GET", "/openapi/v3").status


def warnings(api: Api) -> bool:
    fields = deployment(template=template({"name": "c", "image": "x:1", "imge": "y"}))
    answer = api.post("Deployment", {"metadata": {"name": "d"}, **fields})
    return "warning" in dict(answer.headers)


def rules_in_cel(api: Api) -> int:
    group = f"{api.ns}.stoker.dev"
    rule = {"rule": "self.n > 3", "message": "more"}
    spec = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "x-kubernetes-validations": [rule],
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    crd = {
        "group": group,
        "names": {"kind": "Rule", "plural": "rules"},
        "scope": "Cluster",
        "versions": [version],
    }
    assert api.apply("CustomResourceDefinition", f"rules.{group}", {"spec": crd}).status == 201
    body = {
        "apiVersion": f"{group}/v1",
        "kind": "Rule",
        "metadata": {"name": "r"},
        "spec": {"n": 1},
    }
    path = f"/apis/{group}/v1/rules"
    for _ in range(2000):
        if api.send("GET", path).status == 200:
            break
    return api.send("POST", path, body).status


def unknown_priority_class(api: Api) -> int:
    spec = template(priorityClassName="nope")["spec"]
    return api.post("Pod", {"metadata": {"name": "p"}, "spec": spec}).status


def causes_of_a_null_count(api: Api) -> int:
    return len(api.apply("Gizmo", "g", {"spec": {"replicas": None}}).causes)


def causes_of_a_fraction(api: Api) -> int:
    return len(api.apply("Gizmo", "g", {"spec": {"replicas": 1.5}}).causes)


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "rights",
        "no users and no RBAC: stories about rights run on the real server",
        rights,
        memory=404,
        real=403,
    ),
    Difference(
        "claim protection",
        "the finalizer is only useful with the controller that takes it off",
        claim_finalizers,
        memory=None,
        real=["kubernetes.io/pvc-protection"],
    ),
    Difference(
        "not-ready taint",
        "admission adds it, the node life-cycle controller takes it off",
        new_node_taints,
        memory=[],
        real=["node.kubernetes.io/not-ready"],
    ),
    Difference(
        "other versions",
        "no version conversion: one version of each built-in kind",
        other_version,
        memory=404,
        real=200,
    ),
    Difference(
        "rarer groups",
        "only the kinds of kube.memory_kinds are served",
        rarer_group,
        memory=404,
        real=200,
    ),
    Difference(
        "OpenAPI", "list_types.json is made from the real one", open_api, memory=404, real=200
    ),
    Difference("warnings", "nobody reads them here", warnings, memory=False, real=True),
    Difference(
        "rules in CEL",
        "structural schemas only",
        rules_in_cel,
        memory=201,
        real=422,
    ),
    Difference(
        "priority classes",
        "admission plugins but NamespaceLifecycle are left out",
        unknown_priority_class,
        memory=201,
        real=403,
    ),
    Difference(
        "a null count of a custom resource",
        "the real server checks the scale path a second time",
        causes_of_a_null_count,
        memory=1,
        real=2,
    ),
    Difference(
        "a fraction in a custom resource",
        "the real server checks the type and the scale path again",
        causes_of_a_fraction,
        memory=1,
        real=3,
    ),
)
