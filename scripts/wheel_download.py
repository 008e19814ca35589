"""Download one pinned wheel, with its hash checked, into a folder; shared by the set-up scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def download(lock: str, folder: str) -> Path | None:
    """The wheel of a lock file, without its dependencies; None when it can't be had."""
    command = [sys.executable, "-m", "pip"]
    if subprocess.run([*command, "--version"], capture_output=True, check=False).returncode:
        command = ["python3", "-m", "pip"]  # an environment made by uv has no pip
    done = subprocess.run(
        [
            *command,
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "-r",
            lock,
            "-d",
            folder,
        ],
        check=False,
    )
    return next(Path(folder).glob("*.whl")) if done.returncode == 0 else None
