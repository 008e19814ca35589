"""A fresh interpreter on this tree, with nothing of the caller's environment but its path."""

from __future__ import annotations

import os
import subprocess
import sys

from shape.docs_console import ROOT


def run_python(
    script: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, within a minute, whatever its exit code."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "controller"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
