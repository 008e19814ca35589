"""The command line's entry point; version and help answer before the parser is imported."""

from __future__ import annotations

import os
import sys

from stoker._version import __version__
from stoker.cli.catalog import root_help

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with a code of the published table (ux.md)."""
    if "_STOKER_COMPLETE" not in os.environ:
        if sys.argv[1:] in (["version"], ["--version"]):
            sys.stdout.write(f"stoker {__version__}\n")
            sys.exit(0)
        if sys.argv[1:] in ([], ["-h"], ["--help"], ["help"]):
            sys.stdout.write(root_help())
            sys.exit(0 if sys.argv[1:] else 2)
    from stoker.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
