"""A draft becomes a unit: defaults below it, patches over it, schema, checks, conversion.

The result depends on the file and on the Fleet file alone (not on other files), so source
remembers it; the files that a Bundle names are found afterwards, by bundle.py.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from stoker.errors import Finding, Severity, SourceLocation
from stoker.model.fleet import ModelService
from stoker.model.flow import Flow
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.scale_policy import ScalePolicy
from stoker.model.scaling import MetricSourceType
from stoker.objects.names import API_VERSION
from stoker.source.findings import findings_of
from stoker.source.layers import Layer, overlay
from stoker.source.places import Field, closest, dotted
from stoker.source.policy import policy_from_spec, policy_problems, target_of
from stoker.source.ready import ready_findings
from stoker.source.refused import take_out_refused
from stoker.source.schema_bundle import BundleFile, BundleSpec
from stoker.source.schema_flow import flow_of, pace_problems
from stoker.source.schema_policy import ScalePolicyFile
from stoker.source.schema_service import ModelServiceFile
from stoker.source.service import Problem, service_from_spec, service_problems
from stoker.source.unit_file import Draft

__all__ = ["Claim", "Compiled", "Patch", "UnitSettings", "compile_draft"]

_SCHEMAS: dict[str, type[BaseModel]] = {
    "Bundle": BundleFile,
    "ModelService": ModelServiceFile,
    "ScalePolicy": ScalePolicyFile,
}
_FILES = (BundleFile, ModelServiceFile, ScalePolicyFile)
_Spec: TypeAlias = ModelService | BundleSpec | ScalePolicy | None


@dataclass(frozen=True, slots=True)
class Patch:
    """One entry of unitPatches. `namespace` empty means any."""

    kind: str
    name: str
    namespace: str
    layer: Layer
    location: SourceLocation

    def targets(self, ref: UnitRef) -> bool:
        """Whether the unit is meant."""
        return (self.kind, self.name) == (ref.kind, ref.name) and (
            not self.namespace or self.namespace == ref.namespace
        )


@dataclass(frozen=True, slots=True)
class UnitSettings:
    """What a Fleet file adds to units. `pools` is None when there is no Fleet at hand."""

    namespace: str = ""
    defaults: Layer = field(default_factory=Layer)
    patches: tuple[Patch, ...] = ()
    pools: tuple[str, ...] | None = None
    flow: Flow = field(default_factory=Flow)
    """The Fleet's own timeout and retry interval."""
    sources: tuple[tuple[str, MetricSourceType], ...] | None = None
    """The Fleet's metric sources; None when there is no Fleet at hand."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A workload whose count the unit decides, and the field that says so."""

    ref: ObjectRef
    field: Field


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a draft. `ref` is None when its name is unreadable.

    `spec` is None when something is wrong; then `findings` says what, else they are warnings.
    `digest` covers kind, name, path and the spec after defaults and patches.
    """

    ref: UnitRef | None
    location: SourceLocation
    spec: ModelService | BundleSpec | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    places: dict[Field, SourceLocation] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    digest: str = ""
    lines: tuple[tuple[str, SourceLocation], ...] = ()
    flow: Flow = field(default_factory=Flow)
    named: tuple[UnitRef, ...] = ()
    """The units of dependsOn, in the order of the file."""
    policy: ScalePolicy | None = None
    """What a ScalePolicy says; no unit is made of it while its kind is refused."""
    owns: Claim | None = None
    """The workload that others made and whose count this unit decides."""


def compile_draft(draft: Draft, settings: UnitSettings) -> Compiled:
    """Merge, check and convert one draft. Never raises on bad input."""
    namespace = draft.namespace or settings.namespace
    ref = UnitRef(draft.kind, namespace, draft.name) if draft.name and namespace else None
    unit = str(ref) if ref is not None else ""
    layer = _merged(draft, ref, settings)

    def locate(at: Field) -> SourceLocation:
        return closest(layer.places, at, draft.location)

    def complain(problem: Problem) -> Finding:
        shown = dotted(problem.field)
        place = locate(problem.field)
        return Finding(
            place, problem.code, problem.message, shown, problem.hint, problem.severity, unit
        )

    findings = [_owned(finding, unit) for finding in draft.findings]
    value, refusals = take_out_refused(draft.kind, layer.value)
    problems = [Problem(r.field, "not-implemented-yet", r.message) for r in refusals]
    problems += _header_problems(value, namespace)
    findings += [complain(problem) for problem in problems]
    told = {refusal.field for refusal in refusals if refusal.in_schema}
    whole = len(findings) == len(told)
    quiet = (*draft.bad, *(problem.field for problem in problems if problem.field not in told))
    parsed: BaseModel | None = None
    try:
        parsed = _SCHEMAS[draft.kind].model_validate(value)
    except ValidationError as error:
        schema = _SCHEMAS[draft.kind]
        found = findings_of(error, schema, locate, kind=draft.kind, unit=unit, quiet=quiet)
        findings += found
        whole = False
        if any(finding.field.startswith("metadata") for finding in found):
            ref = None
    spec: _Spec = None
    flow = Flow()
    named: tuple[UnitRef, ...] = ()
    owns: Claim | None = None
    if isinstance(parsed, _FILES) and whole and draft.trusted:
        spec, problems = _spec(parsed, ref, layer.value, settings)
        owns = _claim(parsed, namespace)
        problems += [Problem(*found) for found in pace_problems(parsed.spec)]
        flow = flow_of(parsed.spec, namespace, settings.flow)
        named = tuple(
            UnitRef(entry.kind, entry.namespace or namespace, entry.name)
            for entry in parsed.spec.depends_on
        )
        findings += [complain(problem) for problem in problems]
        findings += ready_findings(parsed.spec, draft, layer, unit)
    good = all(finding.severity is not Severity.ERROR for finding in findings)
    return Compiled(
        ref,
        draft.location,
        spec=spec if isinstance(spec, ModelService | BundleSpec) and good else None,
        raw=value,
        places=layer.places,
        findings=tuple(findings),
        digest=_digest(ref, draft.location.path, value),
        lines=tuple(sorted((dotted(at), place) for at, place in layer.places.items())),
        flow=flow,
        named=named,
        policy=spec if isinstance(spec, ScalePolicy) and good else None,
        owns=owns,
    )


def _claim(parsed: BaseModel, namespace: str) -> Claim | None:
    """The workload that the file names as its own; None where it makes its own or leaves it."""
    if isinstance(parsed, ScalePolicyFile):
        return Claim(target_of(parsed.spec, namespace), ("spec", "target", "name"))
    if not isinstance(parsed, ModelServiceFile) or parsed.spec.adopt is None:
        return None
    if parsed.spec.scaling is not None and parsed.spec.scaling.mode == "External":
        return None
    workload = ObjectRef("apps", "Deployment", namespace, parsed.spec.adopt.name)
    return Claim(workload, ("spec", "adopt", "name"))


def _merged(draft: Draft, ref: UnitRef | None, settings: UnitSettings) -> Layer:
    base = settings.defaults if draft.kind == "ModelService" else Layer()
    layer = overlay(base, draft.layer)
    for patch in settings.patches:
        if ref is not None and patch.targets(ref):
            layer = overlay(layer, patch.layer)
    return layer


def _header_problems(value: dict[str, Any], namespace: str) -> list[Problem]:
    problems = []
    if value.get("apiVersion") != API_VERSION:
        given = value.get("apiVersion")
        message = f"is {given!r}" if isinstance(given, str) else "is required"
        hint = f"write {API_VERSION}"
        problems.append(Problem(("apiVersion",), "wrong-api-version", message, hint))
    metadata = value.get("metadata")
    if not namespace and isinstance(metadata, dict) and "namespace" not in metadata:
        hint = "name it here, or once in the Fleet's spec.defaults.namespace"
        field_ = ("metadata", "namespace")
        problems.append(Problem(field_, "namespace-missing", "is required", hint))
    return problems


def _spec(
    parsed: BaseModel, ref: UnitRef | None, merged: dict[str, Any], settings: UnitSettings
) -> tuple[_Spec, list[Problem]]:
    """The converted spec, None where something stands against it, and what is wrong with it."""
    sources = None if settings.sources is None else dict(settings.sources)
    name, namespace = (ref.name, ref.namespace) if ref is not None else ("", "")
    if isinstance(parsed, ModelServiceFile):
        problems = list(service_problems(parsed.spec, settings.pools, sources))
        if _stops(problems):
            return None, problems
        pools = settings.pools or ()
        return service_from_spec(name, parsed.spec, merged["spec"], pools), problems
    if isinstance(parsed, ScalePolicyFile):
        problems = list(policy_problems(parsed.spec, sources))
        return None if _stops(problems) else policy_from_spec(parsed.spec, namespace), problems
    assert isinstance(parsed, BundleFile)
    render = parsed.spec.render
    if (render.manifests is None) == (render.jinja is None):
        given = "neither" if render.manifests is None else "both"
        message = f"needs exactly one of manifests and jinja, {given} given"
        return parsed.spec, [Problem(("spec", "render"), "bundle-render", message)]
    return parsed.spec, []


def _stops(problems: list[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


def _digest(ref: UnitRef | None, path: str, value: dict[str, Any]) -> str:
    text = json.dumps([str(ref), path, value.get("spec")], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _owned(finding: Finding, unit: str) -> Finding:
    return Finding(
        finding.location,
        finding.code,
        finding.message,
        finding.field,
        finding.hint,
        finding.severity,
        unit,
    )
