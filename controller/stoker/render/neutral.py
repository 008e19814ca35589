"""Neutral objects: everything a unit renders to, with placeholders for what is not decided.

Units and their files come in; one `NeutralUnit` each goes out, from the memo when neither
the unit nor a template it may use has changed. Called by shape and, for decided counts, by
render.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.errors import BadInput, Finding, SourceLocation
from stoker.model.fleet import ModelService, Unit
from stoker.model.refs import ObjectRef, UnitRef, ref_from_manifest
from stoker.model.shape import PodShape
from stoker.model.workload import workload_ref
from stoker.objects.kinds import pod_template_paths
from stoker.objects.paths import value_under, with_value
from stoker.render.merge import merge_pod_template
from stoker.render.pod_shape import (
    MAIN_CONTAINER,
    containers_of,
    rev_of,
    rev_of_group,
    shape_of,
    shape_of_group,
)
from stoker.render.pool import JobResult

__all__ = ["NeutralObject", "NeutralUnit", "bundle_from", "objects_from", "service_from"]

_PER_POD = " in leaderTemplate and workerTemplate"
_NAMELESS = "a manifest needs {}"
_SERVER_FIELDS = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Set by the server alone; sent back they are refused (managedFields) or turn an apply into
a check of versions (resourceVersion, uid), so an exported manifest works without them."""


@dataclass(frozen=True, slots=True)
class NeutralObject:
    """One object as its file gives it. `decided`: its template looked at a decision."""

    ref: ObjectRef
    body: dict[str, Any] = field(hash=False, repr=False)
    source: SourceLocation
    decided: bool = False


@dataclass(frozen=True, slots=True)
class NeutralUnit:
    """One unit. With an ERROR among `findings` it has no objects.

    For a ModelService, `workload` is the Deployment that replicas are made from, or the
    LeaderWorkerSet of groups (with `podTemplate` merged in; not among `objects`), and `rev` and `shape` are read from it.
    """

    ref: UnitRef
    key: str
    objects: tuple[NeutralObject, ...] = ()
    findings: tuple[Finding, ...] = ()
    workload: NeutralObject | None = None
    rev: str = ""
    shape: PodShape | None = None

    @property
    def usable(self) -> bool:
        """Whether it can be rendered further."""
        return not self.findings


def bundle_from(unit: Unit, key: str, result: JobResult) -> NeutralUnit:
    """Take the objects of a Bundle from what its files hold."""
    objects, findings = objects_from(unit, result)
    return _finished(NeutralUnit(unit.ref, key, objects), findings)


def service_from(unit: Unit, spec: ModelService, key: str, result: JobResult) -> NeutralUnit:
    """Take the objects of a ModelService: its workload and everything around it."""
    objects, findings = objects_from(unit, result)
    neutral = NeutralUnit(unit.ref, key, objects)
    if findings:
        return _finished(neutral, findings)
    wanted = workload_ref("", "", grouped=spec.nodes > 1)
    engines = [
        item
        for item in objects
        if (item.ref.group, item.ref.kind) == (wanted.group, wanted.kind) and _has_engine(item)
    ]
    if len(engines) != 1:
        message = (
            f"template {spec.template} must render exactly one {wanted.kind} with a container "
            f"called {MAIN_CONTAINER}{_PER_POD if spec.nodes > 1 else ''}, "
            f"and renders {len(engines)}"
        )
        location = unit.line_of("spec.render.template")
        return _finished(neutral, [Finding(location, "engine-container-missing", message)])
    (found,) = engines
    try:
        return _with_workload(neutral, unit, spec, found)
    except BadInput as error:
        return _finished(neutral, error.findings)


def _with_workload(
    neutral: NeutralUnit, unit: Unit, spec: ModelService, found: NeutralObject
) -> NeutralUnit:
    location = unit.line_of("spec.podTemplate") if spec.pod_template else unit.location
    body, merged = found.body, []
    for path in pod_template_paths(found.ref.group, found.ref.kind):
        template = merge_pod_template(value_under(body, path), spec.pod_template, location)
        merged.append(template)
        body = with_value(body, path, template)
    workload = replace(found, body=body)
    if not _has_engine(workload):
        message = f"podTemplate removes the container {MAIN_CONTAINER}"
        finding = Finding(location, "engine-container-missing", message, field="spec.podTemplate")
        return _finished(neutral, [finding])
    size = value_under(body, ("spec", "leaderWorkerTemplate", "size"))
    if spec.nodes > 1 and size != spec.nodes:
        message = f"template {spec.template} renders groups of {size}, for {spec.nodes} nodes"
        finding = Finding(unit.line_of("spec.render.template"), "template-error", message)
        return _finished(neutral, [finding])
    first, last = merged[0], merged[-1]
    single = len(merged) == 1
    return replace(
        neutral,
        objects=tuple(item for item in neutral.objects if item is not found),
        workload=workload,
        rev=rev_of(first) if single else rev_of_group(first, last, spec.nodes),
        shape=shape_of(first, location) if single else shape_of_group(first, last, location),
    )


def _has_engine(item: NeutralObject) -> bool:
    """Whether each of its pod templates has the main container."""
    paths = pod_template_paths(item.ref.group, item.ref.kind)
    templates = [value_under(item.body, path) for path in paths]
    return all(
        isinstance(template, dict)
        and any(c.get("name") == MAIN_CONTAINER for c in containers_of(template))
        for template in templates
    )


def _finished(neutral: NeutralUnit, findings: Iterable[Finding]) -> NeutralUnit:
    marked = tuple(sorted(replace(finding, unit=str(neutral.ref)) for finding in findings))
    return replace(neutral, objects=(), findings=marked) if marked else neutral


def objects_from(
    unit: Unit, result: JobResult
) -> tuple[tuple[NeutralObject, ...], tuple[Finding, ...]]:
    """Every object of a result, and what is wrong with those that cannot be sent."""
    findings = list(result.findings)
    objects: list[NeutralObject] = []
    decided = frozenset(result.decided)
    for path, line, value in result.documents:
        location = SourceLocation(path, line, 1 if line else 0)
        for manifest in _unlisted(value):
            problem = _problem(manifest)
            if problem:
                findings.append(Finding(location, "invalid-manifest", problem))
            else:
                body = _clean(manifest)
                objects.append(
                    NeutralObject(ref_from_manifest(body), body, location, path in decided)
                )
    if not objects and not findings:
        message = "the unit renders no object at all"
        findings.append(Finding(unit.location, "nothing-rendered", message))
    return tuple(objects), tuple(findings)


def _unlisted(value: Any) -> list[Any]:
    """The items of a `v1 List`, as kubectl takes them apart; anything else as it is."""
    if isinstance(value, dict) and value.get("apiVersion") == "v1" and value.get("kind") == "List":
        items = value.get("items")
        return items if isinstance(items, list) else [value]
    return [value]


def _problem(manifest: Any) -> str:
    """Why this cannot be sent; empty when it can."""
    if not isinstance(manifest, dict):
        return f"a manifest is a map, this is a {type(manifest).__name__}"
    for name in ("apiVersion", "kind"):
        if not isinstance(manifest.get(name), str) or not manifest[name]:
            return _NAMELESS.format(name)
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return _NAMELESS.format("metadata")
    if not metadata.get("name") and metadata.get("generateName"):
        return "generateName makes a new object at each apply; give metadata.name"
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return _NAMELESS.format("metadata.name, as text")
    if not isinstance(metadata.get("namespace") or "", str):
        return "metadata.namespace must be text"
    for name in ("labels", "annotations"):
        if not isinstance(metadata.get(name) or {}, dict):
            return f"metadata.{name} must be a map"
    return ""


def _clean(manifest: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in manifest["metadata"].items() if k not in _SERVER_FIELDS}
    return {**manifest, "metadata": metadata}
