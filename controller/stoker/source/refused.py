"""Fields of the design that the code does not obey yet: one table, refused, never ignored.

A person who writes `update` and sees it accepted believes it. So each such field is
answered with `not-implemented-yet`, distinct from a misspelt one. Called on the raw values
of every document, before its schema is checked; what is refused is taken out, unless the
schema has it already: then its other faults are told too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stoker.source.places import Field

__all__ = [
    "REFUSED_FIELDS",
    "REFUSED_KINDS",
    "Refusal",
    "refused_names",
    "take_out_refused",
]

REFUSED_KINDS = ("ScalePolicy",)

_METADATA = ("metadata.annotations", "metadata.labels")

UNDECIDED_BUDGETS = ("spec.maxGPUs", "spec.pools[].maxGPUs")
UNDECIDED_SCALING = ("spec.scaling.maxGPUs",)
"""In the schemas, checked and converted, and refused until decide obeys them."""

REFUSED_FIELDS: dict[str, tuple[str, ...]] = {
    "Fleet": (
        *_METADATA,
        "spec.dependsOn",
        *UNDECIDED_BUDGETS,
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

_IN_SCHEMA = ("spec.scaling", *UNDECIDED_BUDGETS)
"""Patterns below these are known to the schemas."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused field. `in_schema`: it is left in, and its own faults are told."""

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
    for pattern in REFUSED_FIELDS.get(kind, ()):
        found: list[Refusal] = []
        left = _without(value, pattern.split("."), (), found)
        in_schema = pattern.startswith(_IN_SCHEMA)
        if in_schema and kind in REFUSED_KINDS:
            continue
        refusals += [replace(refusal, in_schema=in_schema) for refusal in found]
        value = value if in_schema else left
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
    value: dict[str, Any], pattern: list[str], at: Field, refusals: list[Refusal]
) -> dict[str, Any]:
    """The map without the field that the pattern leads to."""
    name = pattern[0].removesuffix("[]")
    if name not in value:
        return value
    inner, here = value[name], (*at, name)
    if len(pattern) == 1:
        refusals.append(Refusal(here, f"{name} is not implemented yet"))
        return {key: item for key, item in value.items() if key != name}
    if pattern[0].endswith("[]"):
        if not isinstance(inner, list):
            return value
        items = [
            _without(item, pattern[1:], (*here, index), refusals)
            if isinstance(item, dict)
            else item
            for index, item in enumerate(inner)
        ]
        return {**value, name: items}
    if not isinstance(inner, dict):
        return value
    left = _without(inner, pattern[1:], here, refusals)
    return value if left is inner else {**value, name: left}
