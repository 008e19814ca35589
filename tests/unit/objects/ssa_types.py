"""A small kind with every list and map type, for the tests of server-side apply."""

from __future__ import annotations

from stoker.objects.schema_table import (
    ANY,
    LIST,
    MAP,
    SCALAR,
    FieldType,
    ListSchema,
    object_type,
)

TEXT = FieldType(SCALAR, "s")
ITEM = FieldType(MAP, fields={"name": TEXT, "v": TEXT, "kind": TEXT})
KEYED = FieldType(LIST, element=ITEM, keys=("name",))
TWO_KEYS = FieldType(LIST, element=ITEM, keys=("name", "kind"), key_defaults={"kind": "K"})
SPEC = FieldType(
    MAP,
    fields={
        "n": FieldType(SCALAR, "i"),
        "text": TEXT,
        "map": FieldType(MAP, element=TEXT),
        "deep": FieldType(MAP, element=FieldType(MAP, element=TEXT)),
        "whole": FieldType(MAP, atomic=True, element=TEXT),
        "set": FieldType(LIST, is_set=True, element=TEXT),
        "keyed": KEYED,
        "two": TWO_KEYS,
        "plain": FieldType(LIST, atomic=True, element=TEXT),
        "any": ANY,
    },
)
ROOT = object_type(FieldType(MAP, fields={"spec": SPEC}))
SCHEMA = ListSchema("a.dev", "A", ROOT)
