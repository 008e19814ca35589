"""The command line's entry point: exit codes and errors are decided here, once.

`stoker version` answers before anything heavy is imported.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with a code of the published table (ux.md)."""
    if sys.argv[1:] in (["version"], ["--version"]):
        from stoker._version import __version__

        sys.stdout.write(f"stoker {__version__}\n")
        sys.exit(0)
    from stoker.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
