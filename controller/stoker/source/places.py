"""Paths of fields and where they stand: `("spec", "pools", 0)` is shown as `spec.pools[0]`.

Shared by everything that turns YAML into units and reports findings about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from stoker.errors import SourceLocation

__all__ = ["Field", "Places", "closest", "dotted"]

Field: TypeAlias = tuple[str | int, ...]
"""A field by the keys and list positions that lead to it."""

Places: TypeAlias = Mapping[Field, SourceLocation]
"""Where fields stand. Layers of one unit may stand in different files."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@lru_cache(maxsize=4096)
def dotted(field: Field) -> str:
    """Spell a field as kubectl does; keys with other characters stand in brackets."""
    text = ""
    for part in field:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part}]"
    return text


def closest(places: Places, field: Field, otherwise: SourceLocation) -> SourceLocation:
    """Where the field stands, or its closest parent that has a place."""
    for length in range(len(field), 0, -1):
        found = places.get(field[:length])
        if found is not None:
            return found
    return otherwise
