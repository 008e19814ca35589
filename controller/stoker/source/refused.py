"""Fields of the design that the code does not obey yet: one table, refused, never ignored.

A person who writes `update` and sees it accepted believes it. So each such field is
answered with `not-implemented-yet`, distinct from a misspelt one. Called on the raw values
of every document, before its schema is checked; what is refused is taken out, unless the
schema has it already: then its other faults are told too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from stoker.source.places import Field

__all__ = [
    "REFUSED_FIELDS",
    "REFUSED_KINDS",
    "REFUSED_VALUES",
    "Refusal",
    "refused_names",
    "take_out_refused",
]

REFUSED_KINDS = ("ScalePolicy",)

_METADATA = ("metadata.annotations", "metadata.labels")

UNDECIDED_SOURCES: tuple[str, ...] = ()
UNDECIDED_BUDGETS = ("spec.maxGPUs", "spec.pools[].maxGPUs")
UNDECIDED_SCALING: tuple[str, ...] = ("spec.scaling.maxGPUs",)
UNDECIDED_MODES: tuple[str, ...] = ()
"""The switch of counts that follow load: all of it is in the schemas, checked and converted, and
refused until decide obeys it. A name that is taken out of these four is accepted at once; with
no mode left here `scaling` without a mode is accepted too."""

REFUSED_FIELDS: dict[str, tuple[str, ...]] = {
    "Fleet": (
        *_METADATA,
        "spec.dependsOn",
        *UNDECIDED_BUDGETS,
        *UNDECIDED_SOURCES,
        "spec.policies",
    ),
    "ModelService": (
        *_METADATA,
        "spec.render.helm",
        "spec.render.kustomize",
        "spec.render.manifests",
        "spec.render.overlays",
        "spec.render.patches",
        *UNDECIDED_SCALING,
    ),
    "Bundle": (
        *_METADATA,
        "spec.render.helm",
        "spec.render.kustomize",
        "spec.render.overlays",
        "spec.render.patches",
    ),
    "ScalePolicy": (*_METADATA, *UNDECIDED_SCALING),
}
"""By kind; `[]` stands for every item of a list."""

REFUSED_VALUES: dict[str, dict[str, tuple[str, ...]]] = {
    "ModelService": {
        "spec.scaling.mode": UNDECIDED_MODES,
    },
    "ScalePolicy": {
        "spec.scaling.mode": UNDECIDED_MODES,
    },
}
"""Values of fields that are obeyed otherwise."""

_IN_SCHEMA = ("spec.scaling", *UNDECIDED_SOURCES, *UNDECIDED_BUDGETS)
"""Patterns below these are known to the schemas."""

Rule: TypeAlias = Callable[[str, Any], str]
"""Name and value of a field to why it is refused; empty when it is not."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused field or value. `in_schema`: it is left in, and its own faults are told."""

    field: Field
    message: str
    in_schema: bool = False


def take_out_refused(kind: str, value: dict[str, Any]) -> tuple[dict[str, Any], list[Refusal]]:
    """The document without what is refused, and each refusal, in the order of the table.

    The given value is left as it is; unchanged parts are shared.
    """
    refusals: list[Refusal] = []
    if kind in REFUSED_KINDS:
        refusals.append(Refusal(("kind",), f"{kind} is not implemented yet", in_schema=True))
    rules: list[tuple[str, Rule]] = [(pattern, _always) for pattern in REFUSED_FIELDS.get(kind, ())]
    rules += [(p, partial(_named, names)) for p, names in REFUSED_VALUES.get(kind, {}).items()]
    for pattern, why in rules:
        found: list[Refusal] = []
        left = _without(value, pattern.split("."), (), found, why)
        in_schema = pattern.startswith(_IN_SCHEMA)
        if in_schema and kind in REFUSED_KINDS:
            continue
        refusals += [replace(refusal, in_schema=in_schema) for refusal in found]
        value = value if in_schema else left
    if kind not in REFUSED_KINDS:
        refusals += _unsaid_mode(kind, value, refusals)
    return value, refusals


def refused_names(kind: str, parent: Field) -> tuple[str, ...]:
    """Names of refused fields directly below a field, for suggestions."""
    prefix = ".".join(part for part in parent if isinstance(part, str))
    found = []
    for pattern in REFUSED_FIELDS.get(kind, ()):
        above, _, name = pattern.replace("[]", "").rpartition(".")
        if above == prefix:
            found.append(name)
    return tuple(found)


def _without(
    value: dict[str, Any], pattern: list[str], at: Field, refusals: list[Refusal], why: Rule
) -> dict[str, Any]:
    """The map without the field that the pattern leads to, where the rule refuses it."""
    name = pattern[0].removesuffix("[]")
    if name not in value:
        return value
    inner, here = value[name], (*at, name)
    if len(pattern) == 1:
        message = why(name, inner)
        if not message:
            return value
        refusals.append(Refusal(here, message))
        return {key: item for key, item in value.items() if key != name}
    if pattern[0].endswith("[]"):
        if not isinstance(inner, list):
            return value
        items = [
            _without(item, pattern[1:], (*here, index), refusals, why)
            if isinstance(item, dict)
            else item
            for index, item in enumerate(inner)
        ]
        return {**value, name: items}
    if not isinstance(inner, dict):
        return value
    left = _without(inner, pattern[1:], here, refusals, why)
    return value if left is inner else {**value, name: left}


def _always(name: str, value: Any) -> str:
    del value
    return f"{name} is not implemented yet"


def _named(names: tuple[str, ...], name: str, value: Any) -> str:
    return f"{name} {value} is not implemented yet" if value in names else ""


def _unsaid_mode(kind: str, value: dict[str, Any], refusals: list[Refusal]) -> list[Refusal]:
    """Refuse a scaling block that names no mode while its default is refused."""
    spec = value.get("spec")
    scaling = spec.get("scaling") if isinstance(spec, dict) else None
    default = REFUSED_VALUES.get(kind, {}).get("spec.scaling.mode")
    if not isinstance(scaling, dict) or scaling.get("mode") is not None or not default:
        return []
    if any(refusal.field[:2] == ("spec", "scaling") for refusal in refusals):
        return []
    message = f"scaling.mode {default[0]} (the default) is not implemented yet; External is"
    return [Refusal(("spec", "scaling"), message, in_schema=True)]
