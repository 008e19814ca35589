"""What a YAML scalar means, as kubectl reads it.

The table is that of the YAML library below kubectl, Flux and Argo CD (sigs.k8s.io/yaml,
goyaml.v2): YAML 1.1 words (`yes`, `on`, `n`) are booleans, a leading zero is octal, `1e3`
is a number, dates and `12:30` and `=` stay text. Numbers come out as JSON spells them,
so that what we send equals what `kubectl apply` would send. Called by documents.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

__all__ = ["key_text", "plain_value", "tagged_value"]

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NOT_FINITE = re.compile(r"[+-]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAY_BE_SPECIAL = frozenset("0123456789+-.yYnNtTfFoO~")
_INTEGER = re.compile(
    r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[oO](?P<oct>[0-7]+)|0[bB](?P<bin>[01]+)"
    r"|0(?P<zero>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_BASES = {"hex": 16, "oct": 8, "bin": 2, "zero": 8, "dec": 10}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

_LEAST_INTEGER = -(2**63)
_MOST_INTEGER = 2**64 - 1
_JSON_INTEGER_LIMIT = 1e21
"""Go prints whole floats below this without fraction or exponent (encoding/json)."""
_MAX_DIGITS = 1000

_TAG_PREFIX = "tag:yaml.org,2002:"


@lru_cache(maxsize=8192)
def plain_value(text: str) -> Scalar:
    """The value of an unquoted scalar; raises ValueError on `.inf` and `.nan` (not JSON)."""
    if text and text[0] not in _MAY_BE_SPECIAL:
        return text
    if text in _WORDS:
        return _WORDS[text]
    return _number(text)


def tagged_value(tag: str, text: str) -> Scalar:
    """The value of a scalar with an explicit tag.

    Raises ValueError when the text is not of that type, and LookupError for a tag that
    has no place in a manifest (`!!binary`, `!!python/...`).
    """
    name = tag.removeprefix(_TAG_PREFIX)
    if name in {"!", "str"}:
        return text
    if name not in {"bool", "float", "int", "null"}:
        raise LookupError(tag)
    value = plain_value(text)
    fits = {
        "bool": isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "null": value is None,
    }
    if not fits[name]:
        raise ValueError(name)
    return value


def key_text(value: Scalar) -> str:
    """A map key as JSON spells it; raises ValueError for null."""
    if isinstance(value, str):
        return value
    if value is None:
        message = "null"
        raise ValueError(message)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _number(text: str) -> Scalar:
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(text)
    digits = text if text[0] == "." else text.replace("_", "")
    if len(digits) > _MAX_DIGITS:
        return text
    match = _INTEGER.fullmatch(digits)
    if match is not None:
        base = str(match.lastgroup)
        value = int(match["sign"] + match[base], _BASES[base])
        if _LEAST_INTEGER <= value <= _MOST_INTEGER:
            return value
    if _FLOAT.fullmatch(digits):
        return _as_json(float(digits), text)
    return text


def _as_json(value: float, text: str) -> Scalar:
    """A whole number loses its fraction, as in `kubectl apply` (`1.0` is sent as 1)."""
    if not math.isfinite(value):
        return text
    if value.is_integer() and abs(value) < _JSON_INTEGER_LIMIT:
        return int(value)
    return value
