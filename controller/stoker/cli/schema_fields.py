"""Building blocks of the published JSON schemas of machine outputs; see output_schemas.py."""

from __future__ import annotations

from typing import Any

from stoker.objects.names import API_VERSION

__all__ = [
    "DIALECT",
    "Schema",
    "count_field",
    "count_or_null",
    "document",
    "list_field",
    "object_field",
    "text_field",
    "words_field",
]

DIALECT = "http://json-schema.org/draft-07/schema#"

Schema = dict[str, Any]


def object_field(
    about: str, fields: dict[str, Schema], *, optional: tuple[str, ...] = ()
) -> Schema:
    """An object with these fields, all of them there unless `optional` names them."""
    return {
        "type": "object",
        "description": about,
        "properties": fields,
        "required": [name for name in fields if name not in optional],
    }


def document(kind: str, about: str, fields: dict[str, Schema]) -> Schema:
    """A whole output: its kind and version, then these fields."""
    head = {
        "apiVersion": {"const": API_VERSION, "description": f"Always {API_VERSION}."},
        "kind": {"const": kind, "description": f"Always {kind}."},
    }
    return {"$schema": DIALECT, "title": kind, **object_field(about, {**head, **fields})}


def text_field(about: str) -> Schema:
    """A string."""
    return {"type": "string", "description": about}


def words_field(about: str, words: list[str]) -> Schema:
    """One of a closed set of words."""
    return {"type": "string", "enum": words, "description": about}


def count_field(about: str) -> Schema:
    """A whole number, at least 0."""
    return {"type": "integer", "minimum": 0, "description": about}


def count_or_null(about: str) -> Schema:
    """The same, or null for unknown."""
    return {"type": ["integer", "null"], "minimum": 0, "description": about}


def list_field(about: str, items: Schema) -> Schema:
    """A list of items that are alike."""
    return {"type": "array", "description": about, "items": items}
