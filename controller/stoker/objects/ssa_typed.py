"""Whether a manifest fits its kind's types, in the words of the server.

In: a manifest and its schema. Out: the problems a server-side apply would be refused for
("failed to create typed patch object"): unknown fields, duplicates, wrong types. Used by
objects.ssa and check.
"""

from __future__ import annotations

from typing import Any

from stoker.objects.fieldset import element_text
from stoker.objects.fieldset_walk import KeyProblem, item_element
from stoker.objects.schema_table import MAP, SCALAR, FieldType

__all__ = ["problem_text", "typed_problems"]


def typed_problems(
    value: Any, kind: FieldType, *, allow_duplicates: bool = False
) -> tuple[str, ...]:
    """Every problem as `path: text`, in the order of the fields; empty when it fits."""
    found: list[str] = []
    _check(value, kind, "", found, allow_duplicates=allow_duplicates)
    return tuple(found)


def problem_text(problems: tuple[str, ...]) -> str:
    """One problem as it is, several as the server lists them."""
    if len(problems) == 1:
        return problems[0]
    return "\n  ".join(["errors:", *problems])


def _check(
    value: Any, kind: FieldType, path: str, found: list[str], *, allow_duplicates: bool
) -> None:
    kind = kind.resolved(value)
    if value is None:
        return
    if kind.shape == SCALAR:
        problem = _scalar_problem(value, kind.code)
        if problem:
            found.append(f"{path}: {problem}")
    elif kind.shape == MAP:
        if not isinstance(value, dict):
            found.append(f"{path}: expected map, got &{{{_go(value)}}}")
            return
        for key, item in value.items():
            member = kind.fields.get(key) or kind.element
            if member is None:
                found.append(f"{path}.{key}: field not declared in schema")
                return
            if item is not None:
                _check(item, member, f"{path}.{key}", found, allow_duplicates=allow_duplicates)
    elif isinstance(value, list):
        _check_list(value, kind, path, found, allow_duplicates=allow_duplicates)
    else:
        found.append(f"{path}: expected list, got &{{{_go(value)}}}")


def _check_list(
    value: list[Any], kind: FieldType, path: str, found: list[str], *, allow_duplicates: bool
) -> None:
    assert kind.element is not None
    seen: set[str] = set()
    for index, item in enumerate(value):
        if kind.atomic:
            element = f"i:{index}"
        else:
            try:
                element = item_element(item, kind)
            except KeyProblem as problem:
                found.append(f"{path}: element {index}: {problem}")
                return
            if element in seen and not allow_duplicates:
                found.append(f"{path}: duplicate entries for key {element_text(element)}")
            seen.add(element)
        _check(
            item,
            kind.element,
            path + element_text(element),
            found,
            allow_duplicates=allow_duplicates,
        )


_TEXT = frozenset("sSpdtTuU")
_BOOLEAN = frozenset("bBy")
_NUMBER = frozenset("iIzf")


def _scalar_problem(value: Any, code: str) -> str:
    if code in _TEXT:
        if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_go(value)}}}"
    elif code in _BOOLEAN:
        if not isinstance(value, bool):
            return f"expected boolean, got &{{{_go(value)}}}"
    elif code in _NUMBER:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {_go_type(value)}"
    elif not isinstance(value, str | int | float):
        return f"expected any scalar, got &{{{_go(value)}}}"
    return ""


def _go(value: Any) -> str:
    """A value as Go's %v prints it."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "map[" + " ".join(f"{k}:{_go(value[k])}" for k in sorted(value)) + "]"
        case list():
            return "[" + " ".join(_go(item) for item in value) + "]"
        case None:
            return "<nil>"
        case _:
            return str(value)


def _go_type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "bool"
        case dict():
            return "map[string]interface {}"
        case _:
            return "[]interface {}"
