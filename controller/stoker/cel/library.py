"""The functions that Kubernetes' CEL has beyond the standard, within bounds of ours.

The runtime's own string extension can grow a text a thousandfold with one call, so these
stand in for it. Called once by evaluator, when the first expression is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from stoker.cel.addresses import address_functions
from stoker.cel.declare import Overloads, declared, global_, member
from stoker.cel.quantities import quantity_functions
from stoker.cel.urls import url_functions

__all__ = ["LEFT_OUT", "MAX_TEXT", "declarations"]

MAX_TEXT = 16_384
"""Characters of a text that a function gives: 160 MB when a loop makes as many as it may."""


LEFT_OUT = frozenset(
    {"distinct", "find", "findAll", "flatten", "format", "range", "reverse", "semver", "isSemver"}
    | {"slice", "sort", "sortBy", "authorizer", "jsonpatch"}
)
"""Names that Kubernetes' CEL has and this one has not, on purpose (decision note 17)."""


def declarations(cel: Any) -> list[Any]:
    """Every function with its overloads, for the runtime's module `cel`."""
    return [
        *declared(cel, _of_texts_and_lists(cel.Type)),
        *declared(cel, _of_sets(cel.Type)),
        *quantity_functions(cel),
        *url_functions(cel),
        *address_functions(cel),
    ]


def _of_texts_and_lists(kind: Any) -> dict[str, Overloads]:
    text, whole, truth, anything = kind.STRING, kind.INT, kind.BOOL, kind.DYN
    texts, things = kind.List(text), kind.List(anything)
    plain = (text, whole, truth, kind.DOUBLE)
    return {
        "charAt": [member(text, [text, whole], _char_at)],
        "indexOf": [
            member(whole, [text, text], str.find),
            *(member(whole, [things, wanted], _first_position) for wanted in plain),
        ],
        "isSorted": [member(truth, [things], _is_sorted)],
        "join": [
            member(text, [texts], lambda items: _join(items, "")),
            member(text, [texts, text], _join),
        ],
        "lastIndexOf": [
            member(whole, [text, text], str.rfind),
            *(member(whole, [things, wanted], _last_position) for wanted in plain),
        ],
        "lowerAscii": [member(text, [text], _lower)],
        "max": [member(anything, [things], _greatest)],
        "min": [member(anything, [things], _least)],
        "replace": [member(text, [text, text, text], _replace)],
        "split": [member(texts, [text, text], _split)],
        "substring": [
            member(text, [text, whole], lambda value, start: _substring(value, start, len(value))),
            member(text, [text, whole, whole], _substring),
        ],
        "sum": [member(anything, [things], _sum)],
        "trim": [member(text, [text], lambda value: _bounded(value.strip()))],
        "upperAscii": [member(text, [text], _upper)],
    }


def _of_sets(kind: Any) -> dict[str, Overloads]:
    things = kind.List(kind.DYN)
    return {
        f"sets.{name}": [global_(kind.BOOL, [things, things], call)] for name, call in _SETS.items()
    }


def _plain(items: list[Any]) -> frozenset[tuple[bool, Any]]:
    """A set of plain values, in which true is not 1."""
    if any(isinstance(item, list | dict) for item in items):
        raise ValueError("sets of texts, numbers and truths only")
    return frozenset((isinstance(item, bool), item) for item in items)


_SETS: dict[str, Callable[[list[Any], list[Any]], bool]] = {
    "contains": lambda items, wanted: _plain(wanted) <= _plain(items),
    "equivalent": lambda items, others: _plain(items) == _plain(others),
    "intersects": lambda items, others: not _plain(items).isdisjoint(_plain(others)),
}


def _bounded(value: str) -> str:
    if len(value) > MAX_TEXT:
        raise ValueError(f"a text of more than {MAX_TEXT} characters")
    return value


def _join(items: list[Any], separator: str) -> str:
    if not all(isinstance(item, str) for item in items):
        raise ValueError("join() takes a list of strings")
    if sum(map(len, items)) + len(separator) * len(items) > MAX_TEXT:
        raise ValueError(f"a text of more than {MAX_TEXT} characters")
    return separator.join(items)


def _replace(value: str, old: str, new: str) -> str:
    if len(value) + value.count(old) * max(0, len(new) - len(old)) > MAX_TEXT:
        raise ValueError(f"a text of more than {MAX_TEXT} characters")
    return value.replace(old, new)


def _split(value: str, separator: str) -> list[str]:
    return _bounded(value).split(separator) if separator else list(_bounded(value))


def _substring(value: str, start: int, end: int) -> str:
    if not 0 <= start <= end <= len(value):
        raise ValueError(f"substring({start}, {end}) of {len(value)} characters")
    return _bounded(value[start:end])


def _char_at(value: str, at: int) -> str:
    if not 0 <= at <= len(value):
        raise ValueError(f"charAt({at}) of {len(value)} characters")
    return value[at : at + 1]


def _lower(value: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in _bounded(value))


def _upper(value: str) -> str:
    return "".join(c.upper() if c.isascii() else c for c in _bounded(value))


def _numbers(items: list[Any], name: str) -> list[int | float]:
    if not all(isinstance(i, int | float) and not isinstance(i, bool) for i in items):
        raise ValueError(f"{name}() takes a list of numbers")
    return items


def _sum(items: list[Any]) -> int | float:
    return sum(_numbers(items, "sum"))


def _greatest(items: list[Any]) -> int | float:
    if not items:
        raise ValueError("max() of an empty list")
    return max(_numbers(items, "max"))


def _least(items: list[Any]) -> int | float:
    if not items:
        raise ValueError("min() of an empty list")
    return min(_numbers(items, "min"))


def _first_position(items: list[Any], wanted: Any) -> int:
    found = (at for at, item in enumerate(items) if _is_same(item, wanted))
    return next(found, -1)


def _last_position(items: list[Any], wanted: Any) -> int:
    found = (at for at in range(len(items) - 1, -1, -1) if _is_same(items[at], wanted))
    return next(found, -1)


def _is_same(one: Any, other: Any) -> bool:
    """Equality in which true is not 1."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _is_sorted(items: list[Any]) -> bool:
    if not all(isinstance(item, str) for item in items):
        _numbers(items, "isSorted")
    return all(a <= b for a, b in pairwise(items))
