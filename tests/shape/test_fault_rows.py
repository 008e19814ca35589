"""Every scenario of the fault plan that code of today can meet is named by a test or a fault.

The plan is part c of the research on reliability: rows 1, 2 and 6 to 16 of c.1 (processes), 17 to
55 of c.2 (API server and etcd), 56 to 69 and 71 of c.3 (Git). A test or a fault of
tests/faults/plan.py names its row in its docstring, as `c.2 row 31` or `c.1 rows 1 to 4 and 8`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
WANTED = {
    "c.1": {1, 2, *range(6, 17)},
    "c.2": set(range(17, 56)),
    "c.3": {*range(56, 70), 71},
}
NAMED = re.compile(r"(c\.[123])\s+rows?\s+(\d+(?:(?:,\s+|\s+and\s+|\s+to\s+)\d+)*)")


def rows_in(text: str) -> set[tuple[str, int]]:
    """The rows that a text names, ranges written out."""
    found = set()
    for part, numbers in NAMED.findall(text):
        for piece in re.split(r",\s+|\s+and\s+", numbers):
            first, _, last = re.sub(r"\s+", " ", piece).partition(" to ")
            found |= {(part, n) for n in range(int(first), int(last or first) + 1)}
    return found


def test_every_row_is_named_by_a_test_or_a_fault():
    """Who adds a row to the plan, or drops a test, is told here."""
    named = set()
    for path in TESTS.rglob("*.py"):
        if path.name != Path(__file__).name:
            named |= rows_in(path.read_text(encoding="utf-8"))

    missing = {(part, row) for part, rows in WANTED.items() for row in rows} - named
    assert [] == sorted(f"{part} row {row}" for part, row in missing)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("security.md c.2 row 31: it says why", {("c.2", 31)}),
        ("c.1 rows 1 to 4 and 8", {("c.1", n) for n in (1, 2, 3, 4, 8)}),
        ("c.3 rows 56, 58 and 60", {("c.3", 56), ("c.3", 58), ("c.3", 60)}),
        ("c.1 rows 10\n    and 11, c.2 row 20", {("c.1", 10), ("c.1", 11), ("c.2", 20)}),
        ("cases.md row 7", set()),
    ],
)
def test_rows_are_read_out_of_words(text, rows):
    assert rows == rows_in(text)
