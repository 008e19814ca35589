"""Declares functions of ours to the CEL runtime. Used by the parts of the library.

`Typed` are values of types that CEL has not (a quantity, an address): the runtime cannot take
objects of ours, so each is a map of one entry, from the name of its type to its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["Overloads", "Typed", "declared", "global_", "member", "reads", "text_of", "typed"]

Overloads: TypeAlias = Sequence[tuple[bool, Any, Sequence[Any], Callable[..., Any]]]
"""Whether it is a member, what it gives, its parameters (the receiver first), what it does."""

Typed: TypeAlias = dict[str, str]


def member(
    result: Any, parameters: Sequence[Any], call: Callable[..., Any]
) -> tuple[bool, Any, Sequence[Any], Callable[..., Any]]:
    """An overload that is called on its first parameter: `a.f(b)`."""
    return True, result, parameters, call


def global_(
    result: Any, parameters: Sequence[Any], call: Callable[..., Any]
) -> tuple[bool, Any, Sequence[Any], Callable[..., Any]]:
    """An overload that stands by itself: `f(a, b)`."""
    return False, result, parameters, call


def declared(cel: Any, table: Mapping[str, Overloads]) -> list[Any]:
    """The functions of a table by name, for the runtime's module `cel`."""
    return [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(f"stoker_{name}_{number}", result, list(parameters), is_member, call)
                for number, (is_member, result, parameters, call) in enumerate(overloads)
            ],
        )
        for name, overloads in table.items()
    ]


def typed(kind: str, text: str) -> Typed:
    """A value of a type of ours."""
    return {kind: text}


def text_of(kind: str, value: Mapping[str, Any]) -> str:
    """The text of such a value; raises ValueError where it is of another type."""
    text = value.get(kind)
    if len(value) != 1 or not isinstance(text, str):
        raise ValueError(f"no {kind}")
    return text


def reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether a text can be read, for `isURL` and its like: `read` raises ValueError where not."""

    def call(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return call
