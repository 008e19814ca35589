"""A manifest as the server's Go types would read and print it.

In: a value and its FieldType. Out: the value without what Go drops (unknown fields, nulls,
empty maps and lists), with what it always prints, quantities canonical; the same object where
nothing changes. Used for every write to a built-in kind.
"""

from __future__ import annotations

from typing import Any, Final

from stoker.kube.memory_quantity import canonical_quantity
from stoker.objects.schema_table import DEDUCED, LIST, MAP, FieldType

__all__ = ["DecodeError", "stored_form", "typed_copy", "unknown_fields"]

_GONE: Final = object()


class DecodeError(ValueError):
    """A value of the wrong type, in the words of Go's JSON decoder."""


def typed_copy(manifest: dict[str, Any], kind: FieldType) -> dict[str, Any]:
    """The manifest as Go types hold it; raises DecodeError where a type doesn't fit."""
    return _struct(manifest, kind, "")


def stored_form(manifest: dict[str, Any], kind: FieldType) -> dict[str, Any]:
    """The manifest as it is read back: empty lists that are always printed become null."""
    empty = [key for key in kind.null_when_empty if manifest.get(key) == []]
    return {**manifest, **dict.fromkeys(empty)} if empty else manifest


def unknown_fields(value: Any, kind: FieldType, path: str = "") -> list[str]:
    """Paths of fields the type doesn't have (`spec.containers[0].imge`), in order."""
    found: list[str] = []
    if kind.shape == MAP and isinstance(value, dict):
        for key, item in value.items():
            member = kind.member(key)
            below = f"{path}.{key}" if path else key
            if member is None:
                found.append(below)
            else:
                found += unknown_fields(item, member, below)
    elif kind.shape == LIST and isinstance(value, list) and kind.element is not None:
        for index, item in enumerate(value):
            found += unknown_fields(item, kind.element, f"{path}[{index}]")
    return found


def _struct(value: dict[str, Any], kind: FieldType, path: str) -> dict[str, Any]:
    fields = kind.fields
    out: dict[str, Any] = {}
    changed = False
    for key, item in value.items():
        member = fields.get(key)
        if member is None:
            changed = True
            continue
        if item == [] and key in kind.null_when_empty:
            out[key] = item  # an empty list isn't null until it is stored
            continue
        copied = _field(item, member, key, path, kind.name)
        if copied is _GONE:
            changed = True
            continue
        if copied is not item:
            changed = True
        out[key] = copied
    for key, zero in _always(kind):
        if key not in out:
            changed = True
            out[key] = _struct({}, fields[key], path) if zero is _GONE else zero
    return out if changed else value


_ALWAYS: dict[int, tuple[FieldType, tuple[tuple[str, Any], ...]]] = {}
"""By identity of the type, which is kept so that no other type can take its identity."""
_ZEROS: Final = {"S": "", "I": 0, "B": False, "T": None, "U": None}


def _always(kind: FieldType) -> tuple[tuple[str, Any], ...]:
    """Fields that are printed even when absent, with their zero (_GONE: an empty struct)."""
    found = _ALWAYS.get(id(kind))
    if found is None:
        by_value = tuple((name, _GONE) for name in kind.by_value)
        scalars = tuple((n, _ZEROS[m.code]) for n, m in kind.fields.items() if m.code in _ZEROS)
        lists = tuple((name, None) for name in kind.null_when_empty)
        found = _ALWAYS[id(kind)] = (kind, by_value + scalars + lists)
    return found[1]


def _field(item: Any, kind: FieldType, key: str, path: str, struct: str) -> Any:
    """One struct field's value; _GONE where Go leaves it out."""
    if kind.shape == MAP:
        if item is None:
            return _GONE
        if not isinstance(item, dict):
            raise _mismatch(item, struct, f"{path}{key}", "map[string]interface {}")
        if kind.fields:
            return _struct(item, kind, f"{path}{key}.")
        return _map(item, kind, key, path, struct) if item or kind.name else _GONE
    if kind.shape == LIST:
        if not item:
            return _GONE
        if not isinstance(item, list):
            raise _mismatch(item, struct, f"{path}{key}", "[]interface {}")
        return _list(item, kind, key, path, struct)
    if kind.shape == DEDUCED:
        return _GONE if item is None else item
    return _scalar(item, kind.code, key, path, struct)


def _map(item: dict[str, Any], kind: FieldType, key: str, path: str, struct: str) -> Any:
    element = kind.element
    assert element is not None
    if element.shape == DEDUCED:
        return item
    out = {name: _element(one, element, key, path, struct) for name, one in item.items()}
    same = all(out[name] is one for name, one in item.items())
    return item if same else out


def _list(item: list[Any], kind: FieldType, key: str, path: str, struct: str) -> Any:
    element = kind.element
    assert element is not None
    out = [_element(one, element, key, path, struct) for one in item]
    same = all(a is b for a, b in zip(out, item, strict=True))
    return item if same else out


def _element(item: Any, kind: FieldType, key: str, path: str, struct: str) -> Any:
    """A map's or list's element: null and empty become the type's zero."""
    if kind.shape == MAP and kind.fields:
        if item is None:
            return _struct({}, kind, f"{path}{key}.")
        if not isinstance(item, dict):
            raise _mismatch(item, struct, f"{path}{key}", kind.name)
        return _struct(item, kind, f"{path}{key}.")
    copied = _field(item, kind, key, path, struct)
    if copied is not _GONE:
        return copied
    if kind.shape in {MAP, LIST}:
        return item if item is not None else None
    return (
        "0"
        if kind.code == "q"
        else 0
        if kind.code in "iIz"
        else ""
        if kind.code in "sSpd"
        else item
    )


_INTEGER: Final = frozenset("iIz")
_TEXT: Final = frozenset("sSp")


def _scalar(item: Any, code: str, key: str, path: str, struct: str) -> Any:
    if item is None:
        return _ZEROS.get(code, _GONE)
    if code in _TEXT:
        if not isinstance(item, str):
            raise _mismatch(item, struct, f"{path}{key}", "string")
        return _GONE if code == "s" and not item else item
    if code in _INTEGER:
        if isinstance(item, float) and item.is_integer():
            item = int(item)
        if isinstance(item, bool) or not isinstance(item, int):
            raise _mismatch(item, struct, f"{path}{key}", "int32")
        return _GONE if code == "z" and not item else item
    if code in {"b", "B", "y"}:
        if not isinstance(item, bool):
            raise _mismatch(item, struct, f"{path}{key}", "bool")
        return _GONE if code == "y" and not item else item
    if code == "q":
        return _quantity(item)
    if code == "o" and not isinstance(item, int | str):
        raise _mismatch(item, struct, f"{path}{key}", "intstr.IntOrString")
    if code in {"t", "T", "u", "U", "d"} and not isinstance(item, str):
        raise _mismatch(item, struct, f"{path}{key}", "string")
    return item


def _quantity(item: Any) -> Any:
    if isinstance(item, bool) or not isinstance(item, str | int | float):
        raise DecodeError(
            "quantities must match the regular expression"
            " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    try:
        text = canonical_quantity(item)
    except ValueError as error:
        raise DecodeError(
            "quantities must match the regular expression"
            " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from error
    return item if text == item else text


def _mismatch(item: Any, struct: str, path: str, go_type: str) -> DecodeError:
    match item:
        case bool():
            seen = "bool"
        case int():
            seen = "number"
        case float():
            seen = f"number {item}"
        case str():
            seen = "string"
        case list():
            seen = "array"
        case _:
            seen = "object"
    return DecodeError(
        f"json: cannot unmarshal {seen} into Go struct field {struct}.{path} of type {go_type}"
    )
