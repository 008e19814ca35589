"""Requests to either server in few words, and managedFields in the spelling of ssa-facts.md."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stoker.kube.transport import Request, Transport
from stoker.objects.fieldset import parse_fields_v1, path_text

BAD_UID = "00000000-0000-0000-0000-000000000000"

METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The Accept header of a list of metadata."""

CONTENT = {
    "apply": "application/apply-patch+yaml",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}

KINDS = {
    "ConfigMap": ("v1", "configmaps"),
    "Secret": ("v1", "secrets"),
    "Service": ("v1", "services"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "Pod": ("v1", "pods"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "Deployment": ("apps/v1", "deployments"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "Job": ("batch/v1", "jobs"),
    "CronJob": ("batch/v1", "cronjobs"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "HorizontalPodAutoscaler": ("autoscaling/v2", "horizontalpodautoscalers"),
    "Lease": ("coordination.k8s.io/v1", "leases"),
    "EndpointSlice": ("discovery.k8s.io/v1", "endpointslices"),
    "Event": ("v1", "events"),
    "Role": ("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    "Gizmo": ("stoker.dev/v1alpha1", "gizmos"),
}
CLUSTER_KINDS = {
    "Namespace": ("v1", "namespaces"),
    "Node": ("v1", "nodes"),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles"),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses"),
    "StorageClass": ("storage.k8s.io/v1", "storageclasses"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
}


@dataclass(frozen=True)
class Answer:
    """One answer. `body` is parsed JSON, or text where it isn't JSON."""

    status: int
    body: Any
    headers: tuple[tuple[str, str], ...] = field(default=())

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else self.body

    @property
    def reason(self) -> str:
        return str(self.body.get("reason", ""))

    @property
    def causes(self) -> list[tuple[str, str, str]]:
        """(reason, message, field) of each cause, sorted: their order varies."""
        details = self.body.get("details") or {}
        return sorted(
            (c.get("reason", ""), c.get("message", ""), c.get("field", ""))
            for c in details.get("causes") or ()
        )

    @property
    def rv(self) -> str:
        return str(self.body["metadata"].get("resourceVersion", ""))

    @property
    def uid(self) -> str:
        return str(self.body["metadata"].get("uid", ""))

    @property
    def data(self) -> Any:
        return self.body.get("data")

    @property
    def owners(self) -> str:
        return owners_of(self.body)

    def __getitem__(self, path: str) -> Any:
        """A value by dotted path; None where it is absent."""
        value = self.body
        for part in path.split("."):
            if isinstance(value, list):
                value = value[int(part)] if int(part) < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        return value


def owners_of(manifest: dict[str, Any], *, without: str = "") -> str:
    """`manager:operation/subresource{paths}` of each entry, A for Apply and U for Update."""
    entries = []
    for entry in manifest["metadata"].get("managedFields") or ():
        if entry["manager"] == without:
            continue
        below = f"/{entry['subresource']}" if entry.get("subresource") else ""
        fields = parse_fields_v1(entry["fieldsV1"])
        paths = []
        for path in fields.elements():
            node = fields.tree
            for element in path:
                node = node[element]
            paths.append(path_text(path)[1:] + ("." if node else ""))
        spelled = " ".join(sorted(paths))
        entries.append(f"{entry['manager']}:{entry['operation'][0]}{below}{{{spelled}}}")
    return " ".join(entries)


class Api:
    """One server and one namespace of the test's own."""

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        *,
        real: bool,
        wait: Callable[[float], None],
        nobody: Transport | None = None,
    ) -> None:
        self.transport = transport
        self.nobody = nobody
        self.wait = wait
        self.ns = namespace
        self.real = real
        made = self.post("Namespace", {"metadata": {"name": namespace}}, by="kube-apiserver")
        assert made.status == 201, made

    def as_nobody(self) -> Api:
        """The same server and namespace, seen by a user without rights."""
        other = copy.copy(self)
        other.transport = self.nobody or self.transport
        return other

    # ---------------------------------------------------------------- requests

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        agent: str = "contract/1.0",
        **query: Any,
    ) -> Answer:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = Request(
            method,
            path,
            tuple((key.rstrip("_"), str(value)) for key, value in query.items()),
            body=b"" if body is None else raw,
            content_type="" if body is None else content_type,
            accept=accept,
            user_agent=agent,
        )
        response = self.transport.send(request)
        text = response.body.decode()
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = text
        return Answer(response.status, parsed, response.headers)

    def path(self, kind: str, name: str = "", sub: str = "", ns: str | None = None) -> str:
        api, plural = KINDS.get(kind) or CLUSTER_KINDS[kind]
        root = f"/apis/{api}" if "/" in api else f"/api/{api}"
        place = f"/namespaces/{ns or self.ns}" if kind in KINDS else ""
        return "/".join(part for part in (root + place, plural, name, sub) if part)

    def whole(self, kind: str, fields: dict[str, Any], name: str = "") -> dict[str, Any]:
        """The fields with apiVersion, kind, name and namespace."""
        api = (KINDS.get(kind) or CLUSTER_KINDS[kind])[0]
        metadata = dict(fields.get("metadata") or {})
        if name:
            metadata.setdefault("name", name)
        if kind in KINDS:
            metadata.setdefault("namespace", self.ns)
        return {"apiVersion": api, "kind": kind, **fields, "metadata": metadata}

    def apply(
        self,
        kind: str,
        name: str,
        fields: dict[str, Any],
        *,
        by: str = "stoker",
        force: bool | None = None,
        dry: bool = False,
        sub: str = "",
        **query: Any,
    ) -> Answer:
        body = self.whole(kind, fields, name)
        if force is not None:
            query["force"] = "true" if force else "false"
        if dry:
            query["dryRun"] = "All"
        return self.send(
            "PATCH",
            self.path(kind, name, sub),
            body,
            content_type=CONTENT["apply"],
            fieldManager=by,
            **query,
        )

    def patch(
        self,
        kind: str,
        name: str,
        body: Any,
        *,
        by: str = "ed",
        how: str = "merge",
        sub: str = "",
        **query: Any,
    ) -> Answer:
        if by:
            query["fieldManager"] = by
        path = self.path(kind, name, sub)
        return self.send("PATCH", path, body, content_type=CONTENT[how], **query)

    def post(
        self, kind: str, fields: dict[str, Any], *, by: str = "terraform", **query: Any
    ) -> Answer:
        body = self.whole(kind, fields)
        return self.send("POST", self.path(kind), body, fieldManager=by, **query)

    def put(
        self, kind: str, name: str, body: Any, *, by: str = "ed", sub: str = "", **query: Any
    ) -> Answer:
        return self.send("PUT", self.path(kind, name, sub), body, fieldManager=by, **query)

    def get(self, kind: str, name: str, sub: str = "") -> Answer:
        return self.send("GET", self.path(kind, name, sub))

    def delete(self, kind: str, name: str, options: Any = None, **query: Any) -> Answer:
        return self.send("DELETE", self.path(kind, name), options, **query)

    def scale(
        self, kind: str, target: str, replicas: Any, *, by: str = "vpa", **meta: Any
    ) -> Answer:
        """A merge patch on the scale subresource."""
        body: dict[str, Any] = {"spec": {"replicas": replicas}}
        if meta:
            body["metadata"] = meta
        return self.patch(kind, target, body, by=by, sub="scale")

    def watch(self, kind: str, *, seconds: int = 1, **query: Any) -> list[dict[str, Any]]:
        """All events until the server ends the watch after that time."""
        pairs = {"watch": "true", "timeoutSeconds": str(seconds), **query}
        request = Request("GET", self.path(kind), tuple(pairs.items()))
        return [json.loads(line) for line in self.transport.stream(request)]


def data(**values: str) -> dict[str, Any]:
    """The data of a ConfigMap."""
    return {"data": values}


def deployment(**spec: Any) -> dict[str, Any]:
    """A Deployment with one container `c`, image `x:1`."""
    return {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template(), **spec}}


def template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": list(containers) or [{"name": "c", "image": "x:1"}], **spec},
    }
