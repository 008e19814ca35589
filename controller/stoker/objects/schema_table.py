"""Which lists and maps of a kind merge, and by which keys: what ownership is counted by.

In: a group and kind. Out: its ListSchema, read once from list_types.json (generated from a
real API server's OpenAPI) or, for kinds not in it, the rules of a custom resource without
list types. Used by field sets, server-side apply, diff and the in-memory API server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Final

__all__ = [
    "ANY",
    "ATOMIC_ANY",
    "LIST",
    "MAP",
    "SCALAR",
    "FieldType",
    "ListSchema",
    "known_kinds",
    "metadata_type",
    "object_type",
    "schema_for",
]

SCALAR: Final = "scalar"
LIST: Final = "list"
MAP: Final = "map"
DEDUCED: Final = "deduced"


@dataclass(slots=True, eq=False)
class FieldType:
    """The type of one field. Read-only once built (types may contain themselves).

    `shape` is SCALAR, LIST, MAP or DEDUCED (by the value: maps by `atomic`, lists atomic).
    `code` of a scalar: s S p text, i I z whole number, f number, b B y boolean, q quantity,
    o int-or-string, t T u U time, d bytes; a capital is always printed, `z` and `y` are left
    out when zero, `s` when empty (as Go prints them). `element` is the type of list items and
    of map values under undeclared keys; None refuses such keys. `keys` are the key fields of
    a keyed list, `is_set` a list of distinct scalars, `merge_key` what strategic merge uses.
    `assumed` maps have undeclared keys that most likely are declared (the schema is unknown).
    `by_value` names struct fields that are printed even when absent, `required` the
    declared-required ones, `replaced` those that a strategic patch replaces whole,
    `null_when_empty` lists printed as null.
    """

    shape: str
    code: str = ""
    atomic: bool = False
    fields: dict[str, FieldType] = field(default_factory=dict)
    element: FieldType | None = None
    keys: tuple[str, ...] = ()
    is_set: bool = False
    merge_key: str = ""
    key_defaults: dict[str, Any] = field(default_factory=dict)
    by_value: tuple[str, ...] = ()
    null_when_empty: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    name: str = ""
    nullable: bool = False
    assumed: bool = False

    def member(self, key: str) -> FieldType | None:
        """The type of a map's value under that key; None where it isn't declared."""
        return self.fields.get(key) or self.element

    def resolved(self, value: object) -> FieldType:
        """This type, or for a deduced one the type that the value gives it."""
        if self.shape != DEDUCED:
            return self
        if isinstance(value, dict) or value is None:
            return _ASSUMED_MAP if self.assumed else _DEDUCED_MAPS[self.atomic]
        if isinstance(value, list):
            return _ATOMIC_LIST
        return _UNTYPED_SCALAR


_UNTYPED_SCALAR: Final = FieldType(SCALAR, "o")
ANY: Final = FieldType(DEDUCED, name="any")
"""Anything: maps key by key, lists as a whole (preserve-unknown-fields)."""
ATOMIC_ANY: Final = FieldType(DEDUCED, atomic=True, name="raw")
"""Anything, as one field."""
_DEDUCED_MAPS: Final = {
    False: FieldType(MAP, element=ANY),
    True: FieldType(MAP, atomic=True, element=ATOMIC_ANY),
}
_ASSUMED_MAP: Final = FieldType(MAP, element=FieldType(DEDUCED, assumed=True), assumed=True)
_ATOMIC_LIST: Final = FieldType(LIST, atomic=True, element=ATOMIC_ANY)


@dataclass(frozen=True, slots=True, eq=False)
class ListSchema:
    """The types of one kind.

    `root` is the whole object's type; `resets_status` says that `status` sent to the main
    resource is dropped and never owned (true for every kind with a status subresource, and
    assumed for unknown kinds). `exact` is False where the rules are only assumed.
    """

    group: str
    kind: str
    root: FieldType
    resets_status: bool = True
    exact: bool = True


def schema_for(group: str, kind: str, version: str = "") -> ListSchema:
    """The schema of a kind; without version the one in the table.

    Kinds not in the table: maps key by key, lists atomic, metadata as everywhere, every key
    declared (`exact=False`; `objects.ssa_structural.schema_from_crd` reads a CRD's own).
    """
    return _schema_for(group, kind, version)


@cache
def _schema_for(group: str, kind: str, version: str) -> ListSchema:
    table = _table()
    index = (
        table.kinds.get((group, version, kind))
        if version
        else next((i for (g, _, k), i in table.kinds.items() if (g, k) == (group, kind)), None)
    )
    if index is not None:
        root = table.types[index]
        return ListSchema(group, kind, root, resets_status="status" in root.fields)
    return ListSchema(group, kind, object_type(_ASSUMED_MAP), exact=False)


def known_kinds() -> tuple[tuple[str, str, str], ...]:
    """Every (group, version, kind) of the table, sorted."""
    return tuple(sorted(_table().kinds))


def metadata_type() -> FieldType:
    """The type of `metadata`, the same for every kind."""
    return _table().metadata


def object_type(base: FieldType) -> FieldType:
    """A custom resource's root: `base` with apiVersion, kind and metadata as everywhere."""
    text = FieldType(SCALAR, "s")
    return FieldType(
        MAP,
        fields={
            **base.fields,
            "apiVersion": text,
            "kind": text,
            "metadata": metadata_type(),
        },
        element=base.element,
        by_value=("metadata",),
        required=base.required,
        name=base.name,
        assumed=base.assumed,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    kinds: dict[tuple[str, str, str], int]
    types: list[FieldType]
    metadata: FieldType


@cache
def _table() -> _Table:
    text = (resources.files("stoker.objects") / "list_types.json").read_text("utf-8")
    raw = json.loads(text)
    types = [FieldType(MAP) for _ in raw["types"]]
    for target, entry in zip(types, raw["types"], strict=True):
        _fill(target, entry, types)
    for target in types:
        for member in target.fields.values():
            if member.shape == LIST and member.keys and member.element is not None:
                member.key_defaults = _key_defaults(member.keys, member.element)
    kinds: dict[tuple[str, str, str], int] = {}
    for key, index in raw["kinds"].items():
        group, version, kind = key.split("/")
        kinds[group, version, kind] = index
    return _Table(kinds, types, types[raw["meta"]])


def _fill(target: FieldType, entry: dict[str, Any], types: list[FieldType]) -> None:
    target.name = entry["n"]
    target.atomic = bool(entry.get("a"))
    target.null_when_empty = tuple(entry.get("e", ()))
    target.required = tuple(entry.get("r", ()))
    target.replaced = tuple(entry.get("p", ()))
    target.fields = {name: _type(code, types) for name, code in entry["f"].items()}
    target.by_value = tuple(
        name for name, code in entry["f"].items() if isinstance(code, list) and code[0] == "v"
    )
    target.key_defaults = dict(entry.get("d", {}))


def _type(code: Any, types: list[FieldType]) -> FieldType:
    if isinstance(code, int):
        return types[code]
    if isinstance(code, str):
        if code == "x":
            return FieldType(MAP, element=ANY, name="object")
        named = {"r": ATOMIC_ANY, "j": ANY}
        return named.get(code) or FieldType(SCALAR, code)
    match code:
        case ["v", index]:
            return types[int(index)]
        case ["m" | "M" as kind, element]:
            return FieldType(MAP, atomic=kind == "M", element=_type(element, types))
        case ["S", element]:
            return FieldType(LIST, is_set=True, element=_type(element, types))
        case ["L", element, keys, merge_key]:
            return FieldType(
                LIST, element=_type(element, types), keys=tuple(keys), merge_key=merge_key
            )
        case _:
            merge_key = code[2] if len(code) > 2 else ""
            return FieldType(LIST, atomic=True, element=_type(code[1], types), merge_key=merge_key)


def _key_defaults(keys: tuple[str, ...], element: FieldType) -> dict[str, Any]:
    """What an item that leaves a key out counts as: declared defaults, then Go's zeros."""
    defaults: dict[str, Any] = {}
    for key in keys:
        if key in element.key_defaults:
            defaults[key] = element.key_defaults[key]
        elif element.fields[key].code == "S":
            defaults[key] = ""
        elif element.fields[key].code == "I":
            defaults[key] = 0
    return defaults
