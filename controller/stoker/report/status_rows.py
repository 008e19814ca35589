"""Small pieces of status text: safe words, ages, aligned tables. Called by render_status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stoker.report.unit_report import UnitReport

__all__ = ["ago", "clean", "service_mark", "table"]

LONGEST = 300
"""Characters of one text from a document; a longer one is cut."""

_MARKS = {
    "HorizontalPodAutoscaler": ("H", "H: count owned by HorizontalPodAutoscaler"),
    "Override": ("O", "O: count set by hand for a time (stoker override)"),
    "ScaledObject": ("K", "K: count owned by ScaledObject (KEDA)"),
}
_OTHER = ("E", "E: count owned by another controller")


def clean(value: str) -> str:
    """The text without anything that a terminal would act on."""
    return "".join(c if c.isprintable() else " " for c in value[:LONGEST]).strip()


def ago(milliseconds: int) -> str:
    """An age in one unit, as kubectl writes it: `4s`, `6m`, `2h`, `3d`; the future is `0s`."""
    seconds = max(0, milliseconds) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size * (2 if unit == "m" else 1):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def service_mark(unit: UnitReport) -> tuple[str, str]:
    """The letter behind a count that somebody else owns, and its legend; empty for Git."""
    if unit.service is None or unit.service.count_source == "Git":
        return "", ""
    return _MARKS.get(unit.service.count_source.partition("/")[0], _OTHER)


def table(
    rows: Sequence[Sequence[str]],
    colours: Mapping[int, str],
    paint: Callable[[str, str], str],
) -> list[str]:
    """Left-aligned columns two spaces apart; the HEALTH cell of a row takes its colour."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    health = list(rows[0]).index("HEALTH")
    lines = []
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        if number in colours:
            cells[health] = paint(cells[health], colours[number])
        lines.append("  ".join(cells).rstrip())
    return lines
