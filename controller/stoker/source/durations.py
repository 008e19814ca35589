"""Durations as Gateway API spells them (GEP-2257): `1h30m`, `500ms`; text in, milliseconds out.

Go's own format also has fractions, signs and microseconds; GEP-2257 leaves them out so that
every language reads the same, and so do we.
"""

from __future__ import annotations

import re

__all__ = ["DURATION_PATTERN", "duration_ms", "duration_text"]

DURATION_PATTERN = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
"""The pattern of GEP-2257, letter for letter."""

_DURATION = re.compile(DURATION_PATTERN)
_PART = re.compile(r"([0-9]{1,5})(ms|h|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def duration_ms(text: str) -> int:
    """Milliseconds, never negative; units may come in any order and repeat. ValueError else."""
    if not _DURATION.fullmatch(text) or text.endswith("\n"):
        message = f"{text[:40]!r} is not a duration"
        raise ValueError(message)
    return sum(int(count) * _MILLISECONDS[unit] for count, unit in _PART.findall(text))


def duration_text(milliseconds: int) -> str:
    """The shortest spelling: `1h30m`, `250ms`, `0s`."""
    if milliseconds == 0:
        return "0s"
    parts = []
    rest = milliseconds
    for unit, size in _MILLISECONDS.items():
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
