"""`stoker doctor`: what this machine and cluster give, and what is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

from stoker.cli.exits import Exit
from stoker.cli.options import Context, Kubeconfig
from stoker.cli.style import Style
from stoker.errors import StokerError

__all__ = ["doctor"]

_PROGRAMS = (
    ("git", ("git", "--version"), True, "the fleet repository is read with it"),
    ("ssh", ("ssh", "-V"), False, "needed for ssh URLs"),
    ("helm", ("helm", "version", "--short"), False, "needed for Helm charts (not yet rendered)"),
    ("kubectl", ("kubectl", "version", "--client"), False, "needed for Kustomize (not yet)"),
)

Line = tuple[str, bool, str]
"""Name, whether it is fine, and what was found."""


def doctor(*, kubeconfig: Kubeconfig = None, context: Context = "") -> int:
    """Check programs, the render jail and the cluster; exit 2 when something needed is missing."""
    style = Style()
    missing = False
    for required, (name, fine, text) in _all(kubeconfig, context):
        mark = style.paint("ok     ", "green") if fine else style.paint("missing", "yellow")
        missing |= required and not fine
        sys.stdout.write(f"{mark}  {name:18} {text}\n")
    return Exit.USAGE if missing else Exit.OK


def _all(kubeconfig: object, context: str) -> Iterator[tuple[bool, Line]]:
    for name, command, required, why in _PROGRAMS:
        yield required, _program(name, command, why)
    yield from ((False, line) for line in _jail())
    yield False, _cluster(kubeconfig, context)


def _program(name: str, command: tuple[str, ...], why: str) -> Line:
    if shutil.which(name) is None:
        return name, False, why
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    text = (done.stdout or done.stderr).strip().splitlines()
    return name, done.returncode == 0, text[0] if text else "no version printed"


def _jail() -> Iterator[Line]:
    from stoker.render.jail import jail_support

    for part, supported in sorted(jail_support().items()):
        yield f"jail {part}", supported == "on", "" if supported == "on" else supported


def _cluster(kubeconfig: object, context: str) -> Line:
    from pathlib import Path

    from stoker.cli.connect import connect

    path = kubeconfig if isinstance(kubeconfig, Path) else None
    try:
        server = connect(path, context, timeout_seconds=5.0).server()
    except StokerError as error:
        return "cluster", False, error.message
    return "cluster", True, f"{server.version} at {server.url}, UID {server.cluster_uid}"
