"""The Fleet file: bytes in, the Fleet and what it adds to units out; or BadInput with it all.

Without a Fleet that can be trusted nothing else is worth reading: its faults stop source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from stoker.errors import BadInput, Finding, SourceLocation
from stoker.model.fleet import Fleet
from stoker.model.flow import Flow
from stoker.objects.names import API_VERSION
from stoker.source.compile import Patch, UnitSettings
from stoker.source.findings import did_you_mean, findings_of
from stoker.source.include import resolve_path
from stoker.source.layers import Layer, cut, overlay
from stoker.source.places import Field, closest, dotted
from stoker.source.refused import take_out_refused
from stoker.source.schema_fleet import FleetFile, fleet_from_file, fleet_problems
from stoker.source.schema_service import ModelServiceFile
from stoker.source.unit_file import unusable
from stoker.source.yaml_strict import Document, read_yaml

__all__ = ["FleetRead", "Pattern", "fleet_findings", "read_fleet"]

_DEFAULTS: Field = ("spec", "defaults", "modelService")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A path or pattern of the Fleet file, from the repository root, and where it stands."""

    path: str
    written: str
    field: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class FleetRead:
    """Everything the Fleet file says."""

    fleet: Fleet
    settings: UnitSettings
    include: tuple[Pattern, ...]
    templates: tuple[Pattern, ...]


def read_fleet(path: str, data: bytes, tracked_ref: str = "") -> FleetRead:
    """Read and check the Fleet file; raises BadInput with every finding."""
    document = _only_document(path, data)
    file, layer, findings = _checked(document, tracked_ref)
    if findings or file is None:
        raise BadInput(tuple(sorted(findings)))
    include = _patterns(document, path, "include", file.spec.include)
    templates = _patterns(document, path, "templates", file.spec.templates)
    folders = tuple(pattern.path for pattern in templates)
    fleet = fleet_from_file(file, document.location, folders)
    settings = UnitSettings(
        namespace=file.spec.defaults.namespace or "",
        defaults=_defaults(layer),
        patches=_patches(file, layer, document),
        pools=tuple(pool.name for pool in file.spec.pools),
        flow=Flow(timeout_ms=file.spec.timeout, retry_ms=file.spec.retry_interval),
        sources=tuple((source.name, source.type) for source in fleet.metric_sources),
    )
    return FleetRead(fleet, settings, include, templates)


def fleet_findings(path: str, data: bytes) -> tuple[Finding, ...]:
    """Everything wrong with a Fleet file by itself; empty when it is in order."""
    try:
        read_fleet(path, data)
    except BadInput as error:
        return error.findings
    return ()


def _only_document(path: str, data: bytes) -> Document:
    problem = unusable(path, data)
    if problem is not None:
        raise BadInput((problem,))
    file = read_yaml(path, data)
    if file.broken is not None:
        raise BadInput((file.broken,))
    top = SourceLocation(path, 1, 1)
    if not file.documents:
        raise BadInput((Finding(top, "invalid-yaml", "the Fleet file is empty"),))
    first = file.documents[0]
    if len(file.documents) > 1:
        message = "the Fleet file must hold the Fleet and nothing else"
        hint = "move units into files of their own and name them in spec.include"
        where = file.documents[1].location
        raise BadInput((Finding(where, "multiple-documents", message, hint=hint),))
    value = first.value
    if not isinstance(value, dict):
        raise BadInput((Finding(first.location, "invalid-type", "a Fleet is a map"),))
    if value.get("kind") != "Fleet":
        place = closest(first.places, ("kind",), first.location)
        message = f"is {value.get('kind')!r}; the Fleet file must hold kind Fleet"
        raise BadInput(
            (
                *first.findings,
                Finding(
                    place,
                    "wrong-kind",
                    message,
                    "kind",
                    did_you_mean(str(value.get("kind")), ("Fleet",)),
                ),
            )
        )
    return first


def _checked(document: Document, tracked_ref: str) -> tuple[FleetFile | None, Layer, list[Finding]]:
    findings = list(document.findings)
    layer = overlay(Layer(), Layer(document.value, document.places))

    def locate(at: Field) -> SourceLocation:
        return closest(document.places, at, document.location)

    def complain(at: Field, code: str, message: str, hint: str = "") -> None:
        findings.append(Finding(locate(at), code, message, dotted(at), hint))

    value, refusals = take_out_refused("Fleet", layer.value)
    for refusal in refusals:
        complain(refusal.field, "not-implemented-yet", refusal.message)
    quiet: list[Field] = [*document.bad, *(r.field for r in refusals if not r.in_schema)]
    if value.get("apiVersion") != API_VERSION:
        given = value.get("apiVersion")
        message = f"is {given!r}" if isinstance(given, str) else "is required"
        complain(("apiVersion",), "wrong-api-version", message, f"write {API_VERSION}")
        quiet.append(("apiVersion",))
    findings += _default_findings(value, locate, quiet)
    try:
        file = FleetFile.model_validate(value)
    except ValidationError as error:
        findings += findings_of(error, FleetFile, locate, kind="Fleet", quiet=quiet)
        return None, layer, findings
    for at, code, message, hint in fleet_problems(file, tracked_ref):
        complain(at, code, message, hint)
    folder = document.location.path.rpartition("/")[0]
    for name, written in (("include", file.spec.include), ("templates", file.spec.templates)):
        for index, pattern in enumerate(written):
            if resolve_path(pattern, folder) is None:
                message = f"{pattern!r} leads out of the repository"
                complain(("spec", name, index), "path-outside-repository", message)
    return file, layer, findings


def _default_findings(value: dict[str, Any], locate: Any, quiet: list[Field]) -> list[Finding]:
    """What is wrong with defaults.modelService by itself; what it leaves out is no fault."""
    spec = value.get("spec")
    defaults = spec.get("defaults") if isinstance(spec, dict) else None
    block = defaults.get("modelService") if isinstance(defaults, dict) else None
    if not isinstance(block, dict) or not block:
        return []

    def place(at: Field) -> SourceLocation:
        found: SourceLocation = locate((*_DEFAULTS, *at[1:]))
        return found

    whole = {"apiVersion": API_VERSION, "kind": "ModelService", "metadata": {"name": "any"}}
    partial, refusals = take_out_refused("ModelService", {**whole, "spec": block})
    findings = [
        Finding(
            place(r.field), "not-implemented-yet", r.message, dotted((*_DEFAULTS, *r.field[1:]))
        )
        for r in refusals
    ]
    inner = [("spec", *at[len(_DEFAULTS) :]) for at in quiet if at[: len(_DEFAULTS)] == _DEFAULTS]
    inner += [refusal.field for refusal in refusals if not refusal.in_schema]
    try:
        ModelServiceFile.model_validate(partial)
    except ValidationError as error:
        found = findings_of(error, ModelServiceFile, place, kind="ModelService", quiet=inner)
        for each in found:
            if each.code != "field-missing":
                shown = dotted(_DEFAULTS) + each.field.removeprefix("spec")
                findings.append(Finding(each.location, each.code, each.message, shown, each.hint))
    return findings


def _defaults(layer: Layer) -> Layer:
    block = layer.value["spec"].get("defaults", {}).get("modelService") or {}
    if not block:
        return Layer()
    return Layer({"spec": block}, cut(layer.places, _DEFAULTS, ("spec",)))


def _patches(file: FleetFile, layer: Layer, document: Document) -> tuple[Patch, ...]:
    raw = layer.value["spec"].get("unitPatches") or []
    patches = []
    for index, block in enumerate(file.spec.unit_patches):
        at: Field = ("spec", "unitPatches", index)
        inner: Field = (*at, "patch", "spec")
        patches.append(
            Patch(
                block.target.kind,
                block.target.name,
                block.target.namespace or "",
                Layer(
                    {"spec": raw[index]["patch"]["spec"]}, cut(document.places, inner, ("spec",))
                ),
                closest(document.places, (*at, "target"), document.location),
            )
        )
    return tuple(patches)


def _patterns(document: Document, path: str, name: str, written: list[str]) -> tuple[Pattern, ...]:
    folder = path.rpartition("/")[0]
    found = []
    for index, pattern in enumerate(written):
        at: Field = ("spec", name, index)
        resolved = resolve_path(pattern, folder) or ""
        place = closest(document.places, at, document.location)
        found.append(Pattern(resolved, pattern, dotted(at), place))
    return tuple(found)
