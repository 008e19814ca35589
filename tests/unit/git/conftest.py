"""A repository to fetch from and push to, and a clock that only moves when told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stoker.git import GitRepo

START_MS = 1_790_000_000_000


class FakeClock:
    """Waiting moves it; nothing else does."""

    def __init__(self) -> None:
        self.ms = START_MS
        self.waits: list[float] = []

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.ms += round(seconds * 1000)


class Origin:
    """A bare repository and one work tree that pushes to it."""

    def __init__(self, folder: Path) -> None:
        self.bare = folder / "origin.git"
        self.work = folder / "work"
        self.git("init", "-q", "--bare", "-b", "main", str(self.bare), cwd=folder)
        self.git("init", "-q", "-b", "main", str(self.work), cwd=folder)

    @property
    def url(self) -> str:
        return f"file://{self.bare}"

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "Ann",
            "GIT_AUTHOR_EMAIL": "ann@example.invalid",
            "GIT_COMMITTER_NAME": "Ann",
            "GIT_COMMITTER_EMAIL": "ann@example.invalid",
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.work,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(
        self, files: dict[str, str | bytes], message: str = "Change", branch: str = "main"
    ) -> str:
        for name, content in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        self.git("push", "-q", "--force", str(self.bare), f"HEAD:refs/heads/{branch}")
        return self.git("rev-parse", "HEAD")

    def log(self, branch: str, pretty: str = "%H") -> list[str]:
        return self.git("log", f"--format={pretty}", branch, cwd=self.bare).splitlines()

    def hook(self, name: str, script: str) -> None:
        path = self.bare / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


@pytest.fixture
def origin(tmp_path):
    return Origin(tmp_path)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def open_repo(origin, clock, tmp_path):
    """Open GitRepos on the origin (or another URL) that are closed after the test."""
    opened: list[GitRepo] = []

    def make(ref="main", url=None, folder="state", **options):
        options = {"clock": clock, "allow_file": True, **options}
        repo = GitRepo(url or origin.url, ref, tmp_path / folder, **options)
        opened.append(repo)
        return repo

    yield make
    for repo in opened:
        repo.close()
