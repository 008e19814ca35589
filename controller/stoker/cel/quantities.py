"""CEL's quantities as Kubernetes has them: `quantity('1Gi').isGreaterThan(quantity('500Mi'))`.

Exact: a sum of a thousand `100m` is 100. Names and rules are those of k8s.io/apiserver's
cel/library (quantity). Called once by library, when the first expression is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Context, Decimal, Inexact
from typing import Any

from stoker.cel.declare import Typed, declared, global_, member, reads, text_of, typed
from stoker.objects.quantity import parse_quantity

__all__ = ["quantity_functions"]

KIND = "quantity"
_INT64 = 2**63
_EXACT = Context(prec=128, traps=[Inexact])
"""A value has 19 digits before the point and 9 behind it: sums of 10^100 of them still fit."""

_Value = Mapping[str, Any]


def quantity_functions(cel: Any) -> list[Any]:
    """quantity, isQuantity and the members of a quantity, for the runtime's module `cel`."""
    kind = cel.Type
    text, whole, truth = kind.STRING, kind.INT, kind.BOOL
    amount = kind.Map(text, text)
    return declared(
        cel,
        {
            "quantity": [global_(amount, [text], lambda value: _made(parse_quantity(value)))],
            "isQuantity": [global_(truth, [text], reads(parse_quantity))],
            "isInteger": [member(truth, [amount], lambda one: _whole(one) is not None)],
            "asInteger": [member(whole, [amount], _as_integer)],
            "asApproximateFloat": [member(kind.DOUBLE, [amount], lambda one: float(_of(one)))],
            "sign": [member(whole, [amount], lambda one: _sign(_of(one)))],
            "add": [
                member(amount, [amount, amount], _sum(_EXACT.add)),
                member(amount, [amount, whole], _sum(_EXACT.add)),
            ],
            "sub": [
                member(amount, [amount, amount], _sum(_EXACT.subtract)),
                member(amount, [amount, whole], _sum(_EXACT.subtract)),
            ],
            "compareTo": [member(whole, [amount, amount], _compared)],
            "isLessThan": [
                member(truth, [amount, amount], lambda one, other: _compared(one, other) < 0)
            ],
            "isGreaterThan": [
                member(truth, [amount, amount], lambda one, other: _compared(one, other) > 0)
            ],
        },
    )


def _of(value: _Value) -> Decimal:
    return Decimal(text_of(KIND, value))


def _made(value: Decimal) -> Typed:
    """Equal amounts have equal texts, so that == compares amounts."""
    plain = f"{value:f}"
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return typed(KIND, "0" if plain in {"-0", ""} else plain)


def _whole(value: _Value) -> int | None:
    amount = _of(value)
    whole = int(amount)
    return whole if whole == amount and -_INT64 <= whole < _INT64 else None


def _as_integer(value: _Value) -> int:
    whole = _whole(value)
    if whole is None:
        raise ValueError(f"{text_of(KIND, value)} is no whole number")
    return whole


def _sum(join: Callable[[Decimal, Decimal], Decimal]) -> Callable[[_Value, _Value | int], Typed]:
    def call(one: _Value, other: _Value | int) -> Typed:
        return _made(join(_of(one), Decimal(other) if isinstance(other, int) else _of(other)))

    return call


def _compared(one: _Value, other: _Value) -> int:
    return _sign(_of(one) - _of(other))


def _sign(value: Decimal) -> int:
    return (value > 0) - (value < 0)
