"""Merge patches that remember where each field came from: defaults, unit file, unitPatches.

RFC 7386 on maps, lists replaced whole, null deletes. Below `podTemplate` and the values of
a Bundle, null is a value: there it means something to what reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker.errors import SourceLocation
from stoker.source.places import Field

__all__ = ["Layer", "cut", "overlay"]

_OPAQUE: tuple[Field, ...] = (
    ("spec", "podTemplate"),
    ("spec", "render", "jinja", "values"),
    ("spec", "defaults", "modelService", "podTemplate"),
)
_RIVALS = {"replicas": "scaling", "scaling": "replicas"}
"""Of two layers that say who decides the count, the later one counts."""
_SCALING: Field = ("spec", "scaling")
_ELSEWHERE = {"mode": "External"}
"""A layer that says so of scaling drops what earlier ones said of it: nothing may stand beside."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A document (or part of one) and where its fields stand. Read-only."""

    value: dict[str, Any] = field(default_factory=dict)
    places: dict[Field, SourceLocation] = field(default_factory=dict)


def overlay(base: Layer, patch: Layer) -> Layer:
    """The patch merged over the base; neither is changed, and parts of them are shared."""
    if not base.value and not base.places and not _has_null(patch.value):
        return patch
    places = dict(base.places)
    value = _merge(base.value, patch.value, (), places, patch.places)
    return Layer(value, places)


def _has_null(value: dict[str, Any]) -> bool:
    return any(
        item is None or (isinstance(item, dict) and _has_null(item)) for item in value.values()
    )


def cut(
    places: dict[Field, SourceLocation], at: Field, below: Field
) -> dict[Field, SourceLocation]:
    """Places below one field, as if it stood at another: cuts a block out of its file."""
    length = len(at)
    return {
        (*below, *field[length:]): place for field, place in places.items() if field[:length] == at
    }


def _merge(
    base: dict[str, Any],
    patch: dict[str, Any],
    at: Field,
    places: dict[Field, SourceLocation],
    patch_places: dict[Field, SourceLocation],
) -> dict[str, Any]:
    merged = dict(base)
    if at == ("spec",):
        for name, rival in _RIVALS.items():
            if patch.get(name) is not None and rival not in patch and rival in merged:
                del merged[rival]
                _forget(places, (*at, rival))
    if at == _SCALING and patch.items() >= _ELSEWHERE.items():
        merged = {}
        _forget(places, at)
    opaque = any(at[: len(each)] == each for each in _OPAQUE)
    for key, new in patch.items():
        here = (*at, key)
        if new is None and not opaque:
            merged.pop(key, None)
            _forget(places, here)
        elif isinstance(new, dict):
            old = merged.get(key)
            if not isinstance(old, dict):
                _forget(places, here)
                old = {}
            merged[key] = _merge(old, new, here, places, patch_places)
            if here in patch_places:
                places[here] = patch_places[here]
        else:
            merged[key] = new
            _forget(places, here)
            places.update(_below(patch_places, here))
    return merged


def _forget(places: dict[Field, SourceLocation], at: Field) -> None:
    for gone in [each for each in places if each[: len(at)] == at]:
        del places[gone]


def _below(places: dict[Field, SourceLocation], at: Field) -> dict[Field, SourceLocation]:
    return {each: place for each, place in places.items() if each[: len(at)] == at}
