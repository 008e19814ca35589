"""The tables of docs/benchmarks.md, written anew by each run of `make bench` at full size.

Flux's figures were measured on 2026-11-29 on the same kind of machine with the same units
(two cores, Kubernetes 1.37.2): kustomize-controller and source-controller together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["MARKS", "PAGE", "kept", "page_with", "tables"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
MARKS = ("<!-- written by make bench -->", "<!-- end -->")

_FLUX = (
    ("install: requests", "W1 install, 1000 units: requests", "34,000"),
    ("install: controller CPU s", "W1 install: controller CPU", "239"),
    ("install: wall, times the floor", "W1 install: wall, times the floor", "14.1"),
    ("install: peak memory, MiB", "W1 install: peak memory of the controller", "205 + 102"),
    ("no-op: requests", "W1 no-op, fresh process: requests", "28,008"),
    ("no-op: writes", "W1 no-op, fresh process: writes", "13,000"),
    ("no-op: controller CPU s", "W1 no-op, fresh process: CPU", "244"),
    ("one unit of 1,000: units rendered", "W1 one unit: units rendered", "1,000"),
    ("one unit: requests", "W1 one unit: requests but the lease", "28,008"),
    ("one unit: controller CPU s", "W1 one unit: controller CPU", "243"),
    ("idle 60 s: controller CPU s", "W1 idle 60 s: controller CPU", "0.2"),
)
"""Words of the table, our measure, and what Flux came to."""


def kept(
    results: dict[str, Any],
    section: str,
    part: str,
    rows: list[dict[str, Any]],
    made: dict[str, Any],
) -> dict[str, Any]:
    """The results with these rows of a section, or of one part of it, in place of older ones.

    `made` says by which command and on which machine; a part that was run alone keeps its own.
    """
    sections = {**results["sections"]}
    others = [row for row in results["rows"] if row["section"] != section]
    mine = [row for row in results["rows"] if row["section"] == section]
    if part:
        run = sections.get(section, {**made, "parts": {}})
        measures = [row["measure"] for row in rows]
        parts = {**run.get("parts", {}), part: {**made, "measures": measures}}
        sections[section] = {**run, "parts": parts}
        newer = {row["measure"]: row for row in rows}
        rows = [newer.pop(row["measure"], row) for row in mine] + list(newer.values())
    else:
        sections[section] = made
    ordered = sorted(others + rows, key=lambda row: str(row["section"]))
    return {"sections": sections, "rows": ordered}


def tables(results: dict[str, Any]) -> str:
    """Each section's results with their bars, and Flux's figures beside those it has."""
    lines = []
    for section, run in sorted(results["sections"].items(), reverse=True):
        rows = [row for row in results["rows"] if row["section"] == section]
        apart = {measure for part in run.get("parts", {}).values() for measure in part["measures"]}
        whole = [row for row in rows if row["measure"] not in apart]
        lines += [f"### {section}", ""]
        if whole:
            lines += [_where(run), "", *_measures(whole), ""]
        for part in run.get("parts", {}).values():
            mine = [row for row in rows if row["measure"] in part["measures"]]
            lines += [_where(part), "", *_measures(mine), ""]
    values = {row["measure"]: row["value"] for row in results["rows"]}
    lines += ["### Beside Flux", "", "| W1, 1,000 units | Stoker | Flux |", "|---|---:|---:|"]
    lines += [f"| {words} | {_figure(values[ours])} | {flux} |" for words, ours, flux in _FLUX]
    return "\n".join(lines)


def _where(run: dict[str, Any]) -> str:
    machine = run["machine"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mib']} MiB, "
        f"Linux {machine['kernel']}, Python {machine['python']}; load average "
        f"{machine['load_average'][0]:g} at the start, "
        f"{machine['load_average_at_end'][0]:g} at the end. `{run['command']}`"
    )


def _measures(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| measure | value | bar | |", "|---|---:|---:|---|"]
    for row in rows:
        bar = "" if row["bar"] is None else f"{row['bar']:,g}"
        mark = "" if row["bar"] is None else "holds" if row["holds"] else "**missed**"
        lines.append(
            f"| {row['measure']}, {row['unit']} | {_figure(row['value'])} | {bar} | {mark} |"
        )
    return lines


def page_with(text: str, results: dict[str, Any]) -> str:
    """The page with these results between its marks."""
    head, _, rest = text.partition(MARKS[0])
    _, _, tail = rest.partition(MARKS[1])
    return f"{head}{MARKS[0]}\n{tables(results)}\n{MARKS[1]}{tail}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"
