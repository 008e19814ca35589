"""Start-up cost of the command line, as a ratio to an empty Python in the same run."""

from __future__ import annotations

import sys

from measure import row, run_seconds


def run() -> list[dict]:
    """The ratio of `stoker --help` to `python -c pass`, medians of 9."""
    floor = run_seconds([sys.executable, "-c", "pass"], times=9)
    help_ = run_seconds([sys.executable, "-m", "stoker", "--help"], times=9)
    return [row("stoker --help, times python -c pass", help_[4] / floor[4], "ratio", 15)]
