"""Fleets, sets and plans with only what a test of diff or apply is about."""

from __future__ import annotations

import copy
from typing import Any

from definitions import a_definition
from stoker.errors import Finding, SourceLocation
from stoker.model.codec import digest
from stoker.model.fleet import Bundle, Desired, Fleet, FleetMode, ModelService, PlacementMode, Unit
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.plan import Retirement
from stoker.model.prune import MaxUnits, PruneMode, PruneSettings
from stoker.model.refs import ObjectRef, SourceRevision, UnitRef, ref_from_manifest
from stoker.model.scaling import ScalingMode
from stoker.objects import names

FLEET_ID = "f1"
NO_CLUSTER: Any = None
"""For tests in which nothing may be asked."""
US = names.manager_of(FLEET_ID)
A = UnitRef("Bundle", "llm", "a")
B = UnitRef("Bundle", "llm", "b")
C = UnitRef("Bundle", "llm", "c")
QWEN = UnitRef("ModelService", "llm", "qwen")


def config(name: str = "c", data: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "llm", **metadata},
        "data": {"a": "1"} if data is None else data,
    }


def secret(name: str = "s", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "llm"},
        **fields,
    }


def namespace(name: str = "llm") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def deployment(
    name: str = "d",
    *,
    replicas: int | None = 2,
    image: str = "x:1",
    labels: dict[str, str] | None = None,
    container: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A Deployment that the API server accepts."""
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "llm"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, **(labels or {})}},
                "spec": {"containers": [{"name": "engine", "image": image, **(container or {})}]},
            },
        },
    }
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    return body


def placement(
    name: str = "qwen-1", *, rev: str = "r1", node: str = "n1", gpus: int = 1, **options: Any
) -> dict[str, Any]:
    """A Deployment of a ModelService, as the templates make it."""
    limits = {"nvidia.com/gpu": str(gpus)}
    container = {"resources": {"limits": limits}, **options.pop("container", {})}
    body = deployment(name, container=container, **options)
    label = {names.PLACEMENT_LABEL: name}
    body["metadata"]["labels"] = {names.SERVICE_LABEL: "qwen", **label}
    body["metadata"]["annotations"] = {names.REV: rev, names.NODE: node}
    body["spec"]["selector"] = {"matchLabels": label}
    template_labels = body["spec"]["template"]["metadata"]["labels"]
    template_labels.update(
        {**label, "app": "qwen", names.SERVICE_LABEL: "qwen", names.TRAFFIC_LABEL: "true"}
    )
    return body


def crd(kind: str = "Gizmo", plural: str = "gizmos", group: str = "example.org") -> dict[str, Any]:
    """A CRD that preserves what it does not know."""
    return a_definition(group, "v1", kind, plural)


def gizmo(name: str = "g", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.org/v1",
        "kind": "Gizmo",
        "metadata": {"name": name, "namespace": "llm"},
        "spec": spec or {"v": 1},
    }


def marked(unit: UnitRef, body: dict[str, Any]) -> dict[str, Any]:
    """The manifest with this fleet's owner mark, as render stamps it."""
    body = copy.deepcopy(body)
    mark = names.owner_mark(FLEET_ID, unit, ref_from_manifest(body))
    body["metadata"].setdefault("annotations", {})[names.OWNER] = mark
    return body


def rendered(
    unit: UnitRef,
    *bodies: dict[str, Any],
    kept: tuple[ObjectRef, ...] = (),
    retirements: tuple[Retirement, ...] = (),
    coldest: tuple[str, ...] = (),
) -> ManifestSet:
    """The set of a unit; Deployments with a rev have their template frozen."""
    manifests = tuple(manifest_of(unit, body) for body in bodies)
    return ManifestSet(unit, manifests, kept=kept, retirements=retirements, coldest=coldest)


def manifest_of(unit: UnitRef, body: dict[str, Any]) -> Manifest:
    body = marked(unit, body)
    frozen = names.REV in (body["metadata"].get("annotations") or {})
    source = SourceLocation(f"{unit.name}.yaml", 1, 1)
    return Manifest(ref_from_manifest(body), body, digest(body), source, frozen)


def broken_render(unit: UnitRef) -> ManifestSet:
    finding = Finding(SourceLocation("x.yaml", 1, 1), "render-failed", "no")
    return ManifestSet(unit, complete=False, findings=(finding,))


def service(**options: Any) -> ModelService:
    return ModelService(
        model_uri="hf://a/b",
        model_revision="0" * 40,
        served_names=("q",),
        engine_image="x",
        gpu_count=1,
        **options,
    )


def external(mode: PlacementMode = PlacementMode.SCHEDULER) -> ModelService:
    return service(replicas=None, scaling_mode=ScalingMode.EXTERNAL, placement_mode=mode)


def unit_of(ref: UnitRef, spec: ModelService | Bundle | None = None) -> Unit:
    default: ModelService | Bundle = service() if ref.kind == "ModelService" else Bundle()
    return Unit(
        ref, spec or default, SourceLocation(f"{ref.name}.yaml", 1, 1), f"digest-{ref.name}"
    )


def desired(
    *units: UnitRef | Unit,
    prune: PruneMode = PruneMode.AUTO,
    max_units: MaxUnits | None = None,
    mode: FleetMode = FleetMode.CORRECT,
    **options: Any,
) -> Desired:
    """A fleet with these units. Pruning is not capped unless a test asks."""
    fleet = Fleet(
        name="prod",
        cluster_uid="c1",
        mode=mode,
        location=SourceLocation("fleet.yaml", 1, 1),
        prune=PruneSettings(prune, max_units or MaxUnits(count=100)),
    )
    found = sorted((u if isinstance(u, Unit) else unit_of(u) for u in units), key=lambda u: u.ref)
    return Desired(SourceRevision("main", "1" * 40), fleet, tuple(found), **options)


def with_mark_removed(body: dict[str, Any]) -> dict[str, Any]:
    body = copy.deepcopy(body)
    del body["metadata"]["annotations"][names.OWNER]
    return body
