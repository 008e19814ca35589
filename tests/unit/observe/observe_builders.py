"""A scripted cluster, a still clock and small objects for tests of observe."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from stoker.errors import SourceLocation, Unreachable
from stoker.kube.errors import api_error
from stoker.model.fleet import Desired, Fleet, FleetMode, ModelService, Unit
from stoker.model.ports import ListPage, WatchEvent
from stoker.model.refs import ObjectRef, SourceRevision, UnitRef
from stoker.objects import names
from stoker.observe import Observer

FLEET = "0a1b2c3d"
NOW = 1_800_000_000_000
LLAMA = UnitRef("ModelService", "llm", "llama")


class StillClock:
    """Moves only when somebody waits, or by `pass_seconds`."""

    def __init__(self):
        self.seconds = 1000.0
        self.waits = []

    def now_ms(self):
        return NOW

    def monotonic(self):
        return self.seconds

    def wait(self, seconds):
        self.waits.append(seconds)
        self.seconds += seconds

    def pass_seconds(self, seconds):
        self.seconds += seconds


class ScriptedCluster:
    """Holds objects; lists and watches can be told to fail.

    `watches[kind]` is a list of scripts, one a watch: events and exceptions in order. A
    watch without script ends at once.
    """

    def __init__(self, *objects, uid="uid-of-kube-system"):
        self.objects = {}
        self.revision = 100
        self.watches = defaultdict(list)
        self.failing = {}
        self.missing_kinds = {("keda.sh", "ScaledObject"), ("stoker.dev", "NodeState")}
        self.calls = []
        self.forgotten = 0
        self.uid = uid
        for item in objects:
            self.add(item)

    def add(self, item):
        ref = _ref(item)
        self.revision += 1
        stored = {**item, "metadata": {"uid": f"uid-{ref.name}", **item["metadata"]}}
        stored["metadata"]["resourceVersion"] = str(self.revision)
        self.objects[ref] = stored
        return stored

    def remove(self, item):
        self.revision += 1
        return self.objects.pop(_ref(item))

    def server(self):
        self._maybe_fail("server")
        return SimpleNamespace(version="v1.37.2", cluster_uid=self.uid, url="")

    def resource(self, group, kind, version=""):
        self._maybe_fail("discovery")
        if (group, kind) in self.missing_kinds:
            raise api_error(404, "no such kind", what=kind)
        return SimpleNamespace(namespaced=kind != "Gadget")

    def forget_discovery(self):
        self.forgotten += 1

    def get(self, ref, *, subresource=""):
        self.calls.append(("get", ref.kind, ref.name))
        self._maybe_fail(f"get {ref.kind}")
        if ref not in self.objects:
            raise api_error(404, {"message": "not found", "reason": "NotFound"}, what="get")
        return self.objects[ref]

    def list(self, group, kind, namespace="", *, each=None, **_):
        self.calls.append(("list", kind, namespace))
        self._maybe_fail(kind)
        if (group, kind) in self.missing_kinds:
            raise api_error(404, "no such kind", what=kind)
        items = tuple(
            item
            for ref, item in sorted(self.objects.items())
            if (ref.group, ref.kind) == (group, kind) and namespace in {"", ref.namespace}
        )
        for item in items if each is not None else ():
            each(item)
        return ListPage(str(self.revision), () if each is not None else items)

    def watch(self, group, kind, namespace="", *, resource_version, **_):
        self.calls.append(("watch", kind, resource_version))
        script = self.watches[kind].pop(0) if self.watches[kind] else []
        for step in script:
            if isinstance(step, Exception):
                raise step
            if callable(step):
                step()
                continue
            yield step

    def _maybe_fail(self, what):
        error = self.failing.get(what)
        if error is not None:
            raise error


def scripted(*objects: Any) -> Any:
    """A ScriptedCluster that type checkers take for the whole port."""
    return ScriptedCluster(*objects)


def event(kind, item, revision=None):
    body = item
    if revision is not None:
        body = {**item, "metadata": {**item["metadata"], "resourceVersion": str(revision)}}
    return WatchEvent(kind, body)


def bookmark(revision):
    return WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(revision)}})


def forbidden(what="nodes"):
    return api_error(403, {"message": f"{what} is forbidden", "reason": "Forbidden"}, what="list")


def gone():
    return api_error(410, {"message": "too old", "reason": "Expired"}, what="watch")


def broken(code=500):
    return api_error(code, {"message": "etcd"}, what="list")


def silence():
    return Unreachable("no answer", code="api-server-unreachable")


def manifest(api_version, kind, name, namespace="", **more):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= more.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def marked(item, unit=LLAMA, fleet=FLEET):
    """The same object with the owner mark of one of our units."""
    mark = names.owner_mark(fleet, unit, _ref(item))
    annotations = {**item["metadata"].get("annotations", {}), names.OWNER: mark}
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}


def node(name="n1", *, ready=True, gpus=8, labels=None, taints=(), spec=None, **status):
    return manifest(
        "v1",
        "Node",
        name,
        metadata={"labels": labels or {}},
        spec={"taints": list(taints), **(spec or {})},
        status={
            "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": gpus},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
            **status,
        },
    )


def pod(name="p1", node_name="n1", *, gpus=1, phase="Running", namespace="llm", **more):
    container = {"name": "engine", "resources": {"requests": {"nvidia.com/gpu": gpus}}}
    return manifest(
        "v1",
        "Pod",
        name,
        namespace,
        metadata=more.pop("metadata", {}),
        spec={"nodeName": node_name, "containers": [container], **more.pop("spec", {})},
        status={"phase": phase, **more.pop("status", {})},
    )


def deployment(name="d1", *, replicas=1, namespace="llm", unit=LLAMA, placement="x-1", **more):
    annotations = {names.REV: "1", names.NODE: "n1", names.NODE_UID: "uid-n1"}
    return marked(
        manifest(
            "apps/v1",
            "Deployment",
            name,
            namespace,
            metadata={"annotations": annotations, **more},
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": {names.PLACEMENT_LABEL: placement}},
                "template": {"spec": {"containers": [{"name": "engine"}]}},
            },
        ),
        unit,
    )


def service_unit(ref=LLAMA, **spec):
    body = ModelService(
        model_uri="hf://a/b",
        model_revision="0" * 40,
        served_names=("m",),
        engine_image="i",
        gpu_count=1,
        **spec,
    )
    return Unit(ref=ref, spec=body, location=SourceLocation("m.yaml"), digest="d")


def desired(*units):
    fleet = Fleet(
        name="f", cluster_uid="c", mode=FleetMode.CORRECT, location=SourceLocation("fleet.yaml")
    )
    return Desired(SourceRevision("main", "0" * 40), fleet, tuple(units) or (service_unit(),))


def observer_of(cluster, clock=None, **more):
    return Observer(cluster, clock or StillClock(), fleet_id=FLEET, jitter=lambda: 1.0, **more)


def _ref(item):
    group, _, version = item["apiVersion"].rpartition("/")
    metadata = item["metadata"]
    return ObjectRef(group, item["kind"], metadata.get("namespace", ""), metadata["name"], version)
