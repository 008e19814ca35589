"""Tells at the end of a session what each seed met, and how to run a failing one again."""

from __future__ import annotations

import pytest

__all__ = ["pytest_terminal_summary"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a seed in order; under them the failing ones with the command that replays each."""
    lines = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "seed" and getattr(report, "when", "") == "call"
    ]
    failing = [line for line in lines if "\n" in line]
    if not lines:
        return
    terminalreporter.section("seeds")
    for line in sorted(lines, key=lambda line: int(line.split()[1].rstrip(":"))):
        terminalreporter.write_line(line.partition("\n")[0])
    for line in failing:
        terminalreporter.write_line(line, red=True)
    told = f"{len(lines)} seeds, {len(failing)} with violations"
    terminalreporter.write_line(told)
