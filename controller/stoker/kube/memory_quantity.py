"""Quantities as the API server prints them back: `1000m` is `1`, `1024Mi` is `1Gi`.

In: text or a number from a manifest. Out: canonical text. Used by memory_codec.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from stoker.objects.quantity import parse_quantity

__all__ = ["canonical_quantity"]

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def canonical_quantity(text: str | float) -> str:
    """The canonical text; raises ValueError where it is no quantity.

    The notation stays (decimal, binary, exponent), except that binary below 1024 and
    fractions become decimal.
    """
    return _canonical(text if isinstance(text, str) else repr(text))


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    value = parse_quantity(text)
    if text.endswith("i") and abs(value) >= 1024 and value == value.to_integral_value():
        return _binary(int(value))
    exponent_form = "e" in text.lower() and not text.endswith("E")
    return _decimal(value, exponent_form=exponent_form)


def _binary(value: int) -> str:
    steps = 0
    while value and value % 1024 == 0 and steps < len(_BINARY) - 1:
        value //= 1024
        steps += 1
    return f"{value}{_BINARY[steps]}"


def _decimal(value: Decimal, *, exponent_form: bool) -> str:
    if not value:
        return "0"
    scaled = value.scaleb(9).to_integral_value()
    steps = 0
    number = int(scaled)
    while number % 1000 == 0 and steps < len(_DECIMAL) - 1:
        number //= 1000
        steps += 1
    if exponent_form:
        power = 3 * steps - 9
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL[steps]}"
