"""`stoker doctor`: what this machine and cluster give, and what is missing."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from stoker.cli.exits import Exit
from stoker.cli.options import Context, Kubeconfig
from stoker.cli.style import Style
from stoker.errors import StokerError

__all__ = ["Check", "Verdict", "doctor", "verdict_text"]

OLDEST_GIT = (2, 32)
"""GIT_CONFIG_GLOBAL, which keeps a user's own settings out, came with 2.32 (its release notes)."""
PROGRAM_SECONDS = 20


class Verdict(StrEnum):
    """What a check came to; only MISSING makes `doctor` fail."""

    OK = "ok"
    WITHOUT = "without"
    """Not there, and some things do not work: the text says which."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked at, what it came to, and what was found or does not work."""

    name: str
    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class _Program:
    name: str
    command: tuple[str, ...]
    without: str
    required: bool = False
    speaks: bool = True
    """Whether its first line says which version it is."""


_PROGRAMS = (
    _Program("git", ("git", "--version"), "fleet repositories cannot be read", required=True),
    _Program("ssh", ("ssh", "-V"), "repositories with ssh URLs cannot be read"),
    _Program(
        "ssh-keygen", ("ssh-keygen", "-?"), "`stoker install` makes no deploy key", speaks=False
    ),
)

_COLOURS = {Verdict.OK: "green", Verdict.WITHOUT: "yellow", Verdict.MISSING: "red"}


def doctor(*, kubeconfig: Kubeconfig = None, context: Context = "") -> int:
    """Check programs, health files, the render jail and the cluster; exit 2 when something needed is missing."""
    checks = list(_all(kubeconfig, context))
    sys.stdout.write(verdict_text(checks, Style()))
    missing = any(check.verdict is Verdict.MISSING for check in checks)
    return Exit.USAGE if missing else Exit.OK


def verdict_text(checks: list[Check], style: Style) -> str:
    """The checks as aligned lines."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        mark = style.paint(f"{check.verdict:8}", _COLOURS[check.verdict])
        lines.append(f"{mark} {check.name:{width}}  {check.text}".rstrip())
    return "\n".join(lines) + "\n"


def _all(kubeconfig: Path | None, context: str) -> Iterator[Check]:
    yield Check("python", Verdict.OK, platform.python_version())
    for program in _PROGRAMS:
        yield _program(program)
    yield _expressions()
    yield _jail()
    yield _cluster(kubeconfig, context)


def _program(program: _Program) -> Check:
    bad = Verdict.MISSING if program.required else Verdict.WITHOUT
    if shutil.which(program.name) is None:
        return Check(program.name, bad, f"not installed: {program.without}")
    try:
        done = subprocess.run(
            program.command, capture_output=True, text=True, check=False, timeout=PROGRAM_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(program.name, bad, f"{type(error).__name__}: {program.without}")
    first = ((done.stdout or done.stderr).strip().splitlines() or [""])[0]
    if program.name == "git" and _version(first) < OLDEST_GIT:
        oldest = ".".join(str(part) for part in OLDEST_GIT)
        return Check("git", bad, f"{first}; at least {oldest} is needed")
    return Check(program.name, Verdict.OK, first if program.speaks else "installed")


def _version(text: str) -> tuple[int, int]:
    """Major and minor of `git version 2.39.5`; zeros for anything else."""
    words = [word for word in text.split() if word[:1].isdigit()]
    parts = words[0].split(".") if words else []
    numbers = [int(part) for part in parts[:2] if part.isdigit()]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def _expressions() -> Check:
    from importlib.metadata import version

    from stoker.cel import PACKAGE, Cel

    if Cel().missing:
        text = f"{PACKAGE} is not installed: kinds that health files describe are Unknown"
        return Check("health files", Verdict.WITHOUT, text)
    return Check("health files", Verdict.OK, f"{PACKAGE} {version(PACKAGE)}")


def _jail() -> Check:
    from stoker.render.jail import ON, jail_support

    parts = jail_support()
    lacking = {name: why for name, why in parts.items() if why != ON}
    if not lacking:
        return Check("render jail", Verdict.OK, ", ".join(sorted(parts)))
    reasons = ", ".join(f"{name} ({why})" for name, why in sorted(lacking.items()))
    return Check("render jail", Verdict.WITHOUT, f"{reasons}; templates run less confined")


def _cluster(kubeconfig: Path | None, context: str) -> Check:
    from stoker.cli.connect import connect, context_name

    try:
        client = connect(kubeconfig, context, timeout_seconds=5.0)
    except StokerError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return Check("cluster", Verdict.WITHOUT, f"none to ask: {error.message}{hint}")
    try:
        server = client.server()
    except StokerError as error:
        return Check("cluster", Verdict.WITHOUT, f"no answer: {error.message}")
    finally:
        client.close()
    name = context_name(kubeconfig, context)
    return Check(
        "cluster",
        Verdict.OK,
        f"{server.version} at {server.url}, context {name}, UID {server.cluster_uid}",
    )
