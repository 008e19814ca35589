"""The command line's entry point; version and help answer before the parser is imported."""

from __future__ import annotations

import gc
import os
import sys

from stoker._version import __version__
from stoker.cli.catalog import root_help

__all__ = ["main"]


COLLECT_EVERY = (50_000, 10, 10)
"""Python's 700 is for small heaps: imports, lists and passes make hundreds of thousands of
objects that stay and hold no cycles, and were scanned for a sixth of all CPU time."""


def main() -> None:
    """Run the command line and exit with a code of the published table (ux.md)."""
    if "_STOKER_COMPLETE" not in os.environ:
        if sys.argv[1:] in (["version"], ["--version"]):
            sys.stdout.write(f"stoker {__version__}\n")
            sys.exit(0)
        if sys.argv[1:] in ([], ["-h"], ["--help"], ["help"]):
            sys.stdout.write(root_help())
            sys.exit(0 if sys.argv[1:] else 2)
    gc.set_threshold(*COLLECT_EVERY)
    from stoker.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
