"""One unit file: bytes in, drafts of units out, each with its name as far as it is readable.

What cannot be read well enough to say which units the file holds makes the unit set of the
whole fleet unknown, so that nothing is pruned. Results depend on path and content alone,
which is what makes them worth remembering.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker.errors import Finding, SourceLocation
from stoker.model.text_file import is_lfs_pointer
from stoker.source.findings import did_you_mean
from stoker.source.layers import Layer
from stoker.source.places import Field, closest
from stoker.source.refused import REFUSED_KINDS
from stoker.source.text_places import text_lines
from stoker.source.yaml_strict import Document, read_yaml

__all__ = ["MAX_FILE_BYTES", "UNIT_KINDS", "Draft", "UnitFile", "read_unit_file", "too_large"]

UNIT_KINDS = ("Bundle", "ModelService")
MAX_FILE_BYTES = 2**20
"""For fleet and unit files, which people write by hand."""

_EXPRESSION = "ready"
"""The field of a unit file that holds CEL: dependsOn[].ready."""
_ELSEWHERE = {
    "HealthPolicy": "health files stand in policies/health/ of the repository",
    "Fleet": "a Fleet includes units, never another Fleet",
    "NodeState": "a NodeState lives in the cluster only",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """One document that claims to be a unit, before defaults, patches and schema.

    `name` and `namespace` are empty when absent or no text. `bad` are the fields that
    `findings` are about. `trusted` is False when the file broke off somewhere. `texts` has
    where the expressions of dependsOn begin and how they are written, `lines` then the file's.
    """

    kind: str
    name: str
    namespace: str
    layer: Layer
    location: SourceLocation
    findings: tuple[Finding, ...] = ()
    bad: tuple[Field, ...] = ()
    trusted: bool = True
    texts: dict[Field, tuple[SourceLocation, str]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitFile:
    """The drafts of a file. `known` is False when it may hold units that are not listed."""

    drafts: tuple[Draft, ...] = ()
    findings: tuple[Finding, ...] = ()
    known: bool = True


def read_unit_file(path: str, data: bytes) -> UnitFile:
    """Read every document of a unit file. Never raises."""
    problem = unusable(path, data)
    if problem is not None:
        return UnitFile(findings=(problem,), known=False)
    file = read_yaml(path, data, texts=_EXPRESSION.encode() in data)
    lines = tuple(text_lines(data)) if any(document.texts for document in file.documents) else ()
    drafts: list[Draft] = []
    findings: list[Finding] = []
    known = file.broken is None
    if file.broken is not None:
        findings.append(file.broken)
    for document in file.documents:
        problem = _not_a_unit(document)
        if problem is None:
            drafts.append(_draft(document, lines, trusted=file.broken is None))
        else:
            findings += (*document.findings, problem)
            known = False
    return UnitFile(tuple(drafts), tuple(findings), known)


def unusable(path: str, data: bytes) -> Finding | None:
    """Why a file is not even looked at: its size, or that Git LFS keeps the content elsewhere."""
    if len(data) > MAX_FILE_BYTES:
        return too_large(path, f"has {len(data)} bytes, over the limit of {MAX_FILE_BYTES}")
    if is_lfs_pointer(data):
        message = "is a Git LFS pointer, not the file"
        return Finding(SourceLocation(path, 1, 1), "lfs-pointer", message)
    return None


def too_large(path: str, message: str) -> Finding:
    """The finding for a file over its size limit."""
    return Finding(SourceLocation(path), "file-too-large", message)


def _draft(document: Document, lines: tuple[str, ...], *, trusted: bool) -> Draft:
    value: dict[str, Any] = document.value
    metadata = value.get("metadata")
    names = metadata if isinstance(metadata, dict) else {}
    name, namespace = names.get("name"), names.get("namespace")
    return Draft(
        kind=value["kind"],
        name=name if isinstance(name, str) else "",
        namespace=namespace if isinstance(namespace, str) else "",
        layer=Layer(value, document.places),
        location=document.location,
        findings=document.findings,
        bad=document.bad,
        trusted=trusted,
        texts={at: text for at, text in document.texts.items() if at[-1:] == (_EXPRESSION,)},
        lines=lines,
    )


def _not_a_unit(document: Document) -> Finding | None:
    """Why a document is no unit; None when its kind says that it is one."""
    value = document.value
    if not isinstance(value, dict):
        return Finding(
            document.location, "invalid-type", "a unit is a map with apiVersion and kind"
        )
    kind = value.get("kind")
    place = closest(document.places, ("kind",), document.location)
    if not isinstance(kind, str) or not kind:
        return Finding(place, "field-missing", "is required", "kind", "ModelService or Bundle")
    if kind in UNIT_KINDS or kind in REFUSED_KINDS:
        return None
    hint = _ELSEWHERE.get(kind) or did_you_mean(kind, UNIT_KINDS)
    if not hint:
        hint = "put manifests of other kinds into a Bundle"
    return Finding(place, "wrong-kind", f"{kind[:60]!r} is no kind of unit", "kind", hint)
