"""Where a place inside a text stands in its YAML file: an expression's line and column.

In: the lines of the file, where the text begins and how it is written (of yaml_strict).
Out: a place in the file, the beginning of the text where folding leaves no other answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.errors import SourceLocation

__all__ = ["place_in_text", "text_lines"]


def text_lines(data: bytes) -> list[str]:
    """The lines of a YAML file, as `place_in_text` wants them."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()


def place_in_text(
    lines: Sequence[str], start: SourceLocation, style: str, text: str, line: int, column: int
) -> SourceLocation:
    """The place of a line and column (both from 1) of a text, which YAML read as `text`."""
    if style == "|":
        return _of_literal(lines, start, line, column)
    if style == ">":
        rows = [(start.line + 1 + n, raw) for n, raw in enumerate(lines[start.line :])]
    else:
        first = " " * (start.column - 1) + lines[start.line - 1][start.column - 1 :]
        rows = [(start.line, first)]
        rows += [(start.line + 1 + n, raw) for n, raw in enumerate(lines[start.line :])]
    quote = style if style in {"'", '"'} else ""
    return _of_folded(rows, start, quote, text, _offset(text, line, column))


def _offset(text: str, line: int, column: int) -> int:
    """Characters before that line and column."""
    rows = text.split("\n")
    return sum(len(row) + 1 for row in rows[: line - 1]) + column - 1


def _of_literal(
    lines: Sequence[str], start: SourceLocation, line: int, column: int
) -> SourceLocation:
    """Below `|` every line stands as it is, further in."""
    below = lines[start.line :]
    filled = next((row for row in below if row.strip()), "")
    indent = len(filled) - len(filled.lstrip(" "))
    return SourceLocation(start.path, start.line + line, indent + column)


def _of_folded(
    rows: Sequence[tuple[int, str]], start: SourceLocation, quote: str, text: str, offset: int
) -> SourceLocation:
    """Lines that YAML joins with one blank each; other foldings point to the beginning."""
    passed = 0
    was_empty = False
    end = len(text.rstrip("\n"))
    for number, raw in rows:
        part = raw.strip()
        indent = len(raw) - len(raw.lstrip(" "))
        if number == start.line and quote:
            part, indent = part.removeprefix(quote), indent + 1
        if not part:
            passed += was_empty  # the first of several empty lines takes the place of the blank
            was_empty = True
            continue
        was_empty = False
        here = text[passed : passed + len(part)]
        last = passed + len(part) >= end
        if not last and here != part:
            return _beginning(start, quote)
        if offset <= passed + len(part) or last:
            inside = _written(part, quote, max(0, offset - passed))
            return SourceLocation(start.path, number, indent + 1 + inside)
        passed += len(part) + 1
    return _beginning(start, quote)


def _written(part: str, quote: str, characters: int) -> int:
    """How many characters of the file make that many of the text: quotes escape some."""
    pairs = {"'": "''", '"': "\\"}.get(quote)
    if pairs is None:
        return characters
    at = 0
    for _ in range(characters):
        at += 2 if part.startswith(pairs, at) else 1
    return at


def _beginning(start: SourceLocation, quote: str) -> SourceLocation:
    return SourceLocation(start.path, start.line, start.column + len(quote))
