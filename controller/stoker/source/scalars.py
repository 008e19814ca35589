"""What a plain YAML scalar means, and which ones are refused because readers disagree.

`no` is a boolean to one parser and a word to the next; `010`, `1e3`, `12:30` and `1_000` are
numbers to some and texts to others; a commit id like `12e4567` becomes infinity. In fleet
files all of these must be quoted. Called for every unquoted scalar by yaml_strict.
"""

from __future__ import annotations

import re

__all__ = ["AMBIGUOUS", "Ambiguous", "plain_value"]


class Ambiguous:
    """The type of AMBIGUOUS."""


AMBIGUOUS = Ambiguous()
"""Given instead of a value."""

_WORDS: dict[str, bool | Ambiguous | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
} | dict.fromkeys(
    (
        *("y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO"),
        *("on", "On", "ON", "off", "Off", "OFF"),
        *(".inf", ".Inf", ".INF", "-.inf", "-.Inf", "-.INF", "+.inf", "+.Inf", "+.INF"),
        *(".nan", ".NaN", ".NAN"),
    ),
    AMBIGUOUS,
)

_NUMBER_START = frozenset("0123456789+-.")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""At most 18 digits, so that it fits every reader's 64 bits."""
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_DISPUTED = re.compile(
    r"[-+]?[0-9][0-9_]*"  # leading zeros, underscores, a plus sign, too many digits
    r"|[-+]?(?:[0-9][0-9_]*)?\.[0-9_]*(?:[eE][-+]?[0-9]+)?"  # .5, 5., 1.5e3
    r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"  # 1e3
    r"|[-+]?0[xX][0-9a-fA-F_]+|[-+]?0[oO][0-7_]+|[-+]?0[bB][01_]+"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"  # 12:30, base 60 in YAML 1.1
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"  # dates
)


def plain_value(text: str) -> str | int | float | bool | Ambiguous | None:
    """The value that every reader gives this unquoted text, AMBIGUOUS when they differ."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    if _DISPUTED.fullmatch(text) and text not in {".", "-", "+", "-.", "+."}:
        return AMBIGUOUS
    return text
