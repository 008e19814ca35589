"""`stoker demo --keep`: after its scenes it goes on, acts on what is pushed, and ends when told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "You"), ("EMAIL", "you@example.invalid"))
}


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The command as a person starts it; killed if the test did not end it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "stoker", "demo", "--keep", "--folder", str(tmp_path / "demo")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with process:
        yield process
        process.kill()


@pytest.mark.full
@pytest.mark.timeout(180)
def test_a_kept_demo_acts_on_a_push_and_ends_with_ctrl_c(demo, tmp_path):
    work_tree = tmp_path / "demo" / "world" / "fleet"
    assert str(work_tree) in told(demo, lambda line: "Commit and push in" in line)
    file = work_tree / "models" / "rerank-m3.yaml"
    assert "replicas: 1" in file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace("replicas: 1", "replicas: 2"))
    git(work_tree, "commit", "-qam", "Two of them")
    git(work_tree, "push", "-q", "origin", "HEAD:main")
    commit = git(work_tree, "rev-parse", "--short=7", "HEAD")

    told(demo, lambda line: f"{commit} ready: rerank-m3 on gpu-2, gpu-3" in line)

    demo.send_signal(signal.SIGINT)
    assert demo.wait(timeout=60) == 130
    assert git(work_tree, "log", "--oneline", "-1").endswith("Two of them"), "the folder is kept"


def told(process: subprocess.Popen[str], check: Callable[[str], bool]) -> str:
    """The next line that it prints of which `check` holds."""
    assert process.stdout is not None
    found = next((line for line in process.stdout if check(line)), "")
    assert found, f"ended with {process.wait()} before it said that"
    return found


def git(work_tree: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(work_tree), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **AUTHOR},
    )
    return done.stdout.strip()
