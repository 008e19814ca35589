"""Kubernetes quantities (`500m`, `1.5Gi`, `2e3`) as exact numbers.

Text from manifests and live objects comes in, Decimal or whole numbers go out. Used by
shape (requests of a replica), observe (nodes and pods) and diff (`1000m` equals `1`).
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Context, Decimal

__all__ = ["bytes_of", "cpu_millis", "parse_quantity", "quantities_equal"]

_MAX_CHARACTERS = 64
_MAX_EXPONENT = 999
_LARGEST = Decimal(2**63 - 1)
"""The API server caps quantities at int64 and rounds them up to whole billionths."""
_SMALLEST_STEP = Decimal("1e-9")
_EXACT = Context(prec=128)
"""64 characters times 2^60 need 83 digits: nothing is ever rounded by the context."""

_FACTORS = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)


def parse_quantity(text: str | float) -> Decimal:
    """Give the exact value, as the API server reads it.

    Values beyond int64 are capped and parts below a billionth rounded away from zero,
    both as the server does. Raises ValueError on anything that is not a quantity,
    booleans, NaN and infinities included.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        message = f"{text!r} is not a quantity"
        raise ValueError(message)  # noqa: TRY004 - one error for all bad input
    spelled = text if isinstance(text, str) else repr(text)
    match = _QUANTITY.fullmatch(spelled) if len(spelled) <= _MAX_CHARACTERS else None
    exponent = int(match["exponent"] or "0") if match else 0
    if match is None or abs(exponent) > _MAX_EXPONENT:
        message = f"{spelled[:_MAX_CHARACTERS]!r} is not a quantity"
        raise ValueError(message)
    number = Decimal(match["number"]).scaleb(exponent, _EXACT)
    return _bounded(_EXACT.multiply(number, _FACTORS[match["suffix"] or ""]))


def cpu_millis(text: str | float) -> int:
    """CPU as whole thousandths of a core, rounded away from zero; raises ValueError."""
    return _whole(_EXACT.multiply(parse_quantity(text), Decimal(1000)))


def bytes_of(text: str | float) -> int:
    """Bytes (or any other count) as a whole number, rounded away from zero; raises ValueError."""
    return _whole(parse_quantity(text))


def quantities_equal(a: str | float, b: str | float) -> bool:
    """Whether both spell the same value: `1000m` and `1`, `1Gi` and `1024Mi`; raises ValueError."""
    return parse_quantity(a) == parse_quantity(b)


def _bounded(value: Decimal) -> Decimal:
    if abs(value) > _LARGEST:
        return _LARGEST.copy_sign(value)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -9:
        return value.quantize(_SMALLEST_STEP, rounding=ROUND_UP, context=_EXACT)
    return value


def _whole(value: Decimal) -> int:
    return int(value.to_integral_value(rounding=ROUND_UP, context=_EXACT))
