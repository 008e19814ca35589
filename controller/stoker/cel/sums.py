"""Finds every + of an expression that may join texts or lists, in what the compiler made of it.

Nothing bounds how large a value grows by +, least of all in a loop: one line took 2 GB
(measured). Numbers, durations and instants may be added. In: the compiled expression
as protocol buffer (cel.expr.CheckedExpr). Called by evaluator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from stoker.model.expression import Fault

__all__ = ["joining_sums"]

Value: TypeAlias = int | bytes

_REFERENCES, _SOURCE, _POSITIONS = 2, 5, 4
"""Fields of CheckedExpr and SourceInfo: which overloads each call has, and where it stands."""

_JOINING = {b"add_string", b"add_list", b"add_bytes"}
_MESSAGE = "+ adds numbers; join texts with ['a', b].join(), and say int(a) + int(b) of fields"


def joining_sums(expression: str, compiled: bytes) -> tuple[Fault, ...]:
    """A fault at each such +, in the order of the text.

    The macros map and filter join lists too, where no + stands.
    """
    checked = dict(_fields(compiled)).get(2, b"")
    assert isinstance(checked, bytes), "an Any holds its message in field 2"
    calls: set[int] = set()
    places: dict[int, int] = {}
    for number, value in _fields(checked):
        if number == _REFERENCES and isinstance(value, bytes):
            calls |= _joining_call(value)
        if number == _SOURCE and isinstance(value, bytes):
            places = dict(_positions(value))
    offsets = sorted(
        at for call in calls if expression[(at := places.get(call, -1)) : at + 1] == "+"
    )
    return tuple(_fault(expression, offset) for offset in offsets)


def _joining_call(entry: bytes) -> set[int]:
    """The call of an entry of the reference map, if one of its overloads joins."""
    fields = dict(_fields(entry))
    call, reference = fields.get(1, 0), fields.get(2, b"")
    assert isinstance(call, int)
    assert isinstance(reference, bytes)
    overloads = {value for number, value in _fields(reference) if number == 3}
    return {call} if overloads & _JOINING else set()


def _positions(source: bytes) -> Iterator[tuple[int, int]]:
    """Expression to offset in characters."""
    for number, value in _fields(source):
        if number == _POSITIONS and isinstance(value, bytes):
            entry = dict(_fields(value))
            call, offset = entry.get(1, 0), entry.get(2, 0)
            if isinstance(call, int) and isinstance(offset, int):
                yield call, offset


def _fault(expression: str, offset: int) -> Fault:
    line = expression.count("\n", 0, offset) + 1
    return Fault(_MESSAGE, line, offset - expression.rfind("\n", 0, offset))


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field of a message; only the two wire types that are used."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 0:
            whole, at = _varint(message, at)
            yield key >> 3, whole
        elif key & 7 == 2:
            length, at = _varint(message, at)
            yield key >> 3, message[at : at + length]
            at += length
        else:
            at += {1: 8, 5: 4}[key & 7]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
