"""`stoker version`."""

from __future__ import annotations

import sys

from stoker._version import __version__

__all__ = ["version"]


def version() -> None:
    """Print the version."""
    sys.stdout.write(f"stoker {__version__}\n")
