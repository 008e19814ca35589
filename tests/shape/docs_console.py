"""The fenced blocks of the docs as commands that can be run, and what they must print.

A `console` block holds `$ command` lines with the lines that some of them print; `…` in such
a line stands for anything. A comment `# exit N` behind a command is the code it must give.
A `sh` block holds commands only.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer.main

from stoker.cli.app import build

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"^```(\w*)$(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"\s+# exit (\d+)$")
_MARK = "@@@"


@dataclass
class Step:
    """One command, the code it must give, and patterns of lines it must print."""

    command: str
    code: int = 0
    expected: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ran:
    """What a step came to. `missing` are the promised lines that were not printed."""

    step: Step
    code: int
    output: str
    missing: tuple[str, ...]

    @property
    def as_promised(self) -> bool:
        return self.code == self.step.code and not self.missing


def fences(page: Path) -> Iterator[tuple[str, str]]:
    """Language and text of each fenced block, in order."""
    for language, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        yield language, text.strip("\n")


def steps(page: Path, language: str) -> list[Step]:
    """The commands of all blocks of that language; those of make are checked elsewhere."""
    found: list[Step] = []
    for name, text in fences(page):
        if name != language:
            continue
        for line in text.splitlines():
            if language == "sh" or line.startswith("$ "):
                command = line.removeprefix("$ ")
                told = _EXIT.search(command)
                command = _EXIT.sub("", command).split("  #")[0].strip()
                if command and not command.startswith(("#", "make ")):
                    found.append(Step(command, int(told[1]) if told else 0))
            elif line.strip() not in {"", "…"}:
                found[-1].expected.append(line)
    return found


def run_steps(wanted: list[Step], folder: Path) -> list[Ran]:
    """Run them one after another in one shell, so that cd and export last."""
    lines = []
    for number, step in enumerate(wanted):
        lines += [f"printf '{_MARK} {number}\\n'", f"{{ {step.command}\n}} 2>&1", "code=$?"]
        lines.append(f"printf '\\n{_MARK} exit %s\\n' $code")
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    parts = re.split(rf"^{_MARK} \d+$", done.stdout, flags=re.MULTILINE)[1:]
    assert len(parts) == len(wanted), done.stdout + done.stderr
    return [_ran(step, part) for step, part in zip(wanted, parts, strict=True)]


def _ran(step: Step, part: str) -> Ran:
    output, _, code = part.rpartition(f"\n{_MARK} exit ")
    printed = output.splitlines()
    missing = tuple(
        line for line in step.expected if not any(_matches(line, actual) for actual in printed)
    )
    return Ran(step, int(code), output.strip("\n"), missing)


def _matches(expected: str, actual: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, actual) is not None


def environment(folder: Path) -> dict[str, str]:
    """A stranger's: this checkout's commands, a home of its own, no cluster."""
    home = Path.home()
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "controller"),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(home / ".cache")),
        **{
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", "A stranger"), ("EMAIL", "stranger@example.invalid"))
        },
    }


def script(name: str) -> Any:
    """A file of scripts/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command_tree() -> Any:
    """The whole command line as the parser's objects: `.commands`, and `.params` of each."""
    return typer.main.get_command(build())


def told(ran: list[Ran]) -> str:
    """What to print of steps that did not do what the page says."""
    return "\n".join(
        f"$ {one.step.command}\nexit {one.code}, promised {one.step.code}\n{one.output}\n"
        + "".join(f"not printed: {line}\n" for line in one.missing)
        for one in ran
        if not one.as_promised
    )
