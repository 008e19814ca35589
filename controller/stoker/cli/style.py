"""Colour and terminal facts: NO_COLOR, FORCE_COLOR, and plain text where nobody looks."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

__all__ = ["Style", "columns", "narrate", "one_line"]

_CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "cyan": 36, "bold": 1, "dim": 2}


class Style:
    """Paints text when the stream is a terminal that wants colour."""

    def __init__(self, stream: TextIO | None = None, *, no_color: bool = False) -> None:
        out = stream or sys.stdout
        wanted = out.isatty() or bool(os.environ.get("FORCE_COLOR"))
        refused = no_color or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        self.on = wanted and not refused

    def paint(self, text: str, colour: str) -> str:
        """The text in a colour of _CODES, or as it is."""
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if self.on else text


def one_line(text: str) -> str:
    """Foreign text as one line that steers no terminal: control characters become blanks."""
    return "".join(c if c.isprintable() else " " for c in text)


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows of equally many cells as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def narrate(text: str) -> None:
    """One line of narration, on stderr: stdout is for data."""
    sys.stderr.write(one_line(text) + "\n")
