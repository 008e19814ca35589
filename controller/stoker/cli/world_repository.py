"""The Git repository of a World: a work tree to commit in, and the bare one it is pushed to.

Real git, on this machine, with a configuration of its own. Used by cli.world; `Polled` by
whoever makes thousands of passes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from stoker.model.refs import SourceRevision

__all__ = ["Polled", "WorldRepository"]

_AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "You"), ("EMAIL", "you@example.invalid"))
}


_PLAIN = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "gc.auto",
    "GIT_CONFIG_VALUE_0": "0",
    "GIT_CONFIG_KEY_1": "maintenance.auto",
    "GIT_CONFIG_VALUE_1": "false",
}
"""It lives for a demo or a test: nothing is worth packing."""


@dataclass(frozen=True, slots=True)
class WorldRepository:
    """Both below `folder`; made by `made`, or by `copied` from another."""

    folder: Path
    _told: dict[tuple[str, ...], tuple[str, str]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """By question the tip that it was answered at, and the answer."""

    @classmethod
    def made(cls, folder: Path) -> Self:
        """An empty one, on branch main."""
        found = cls(folder)
        found._git("init", "-q", "--bare", "-b", "main", str(found.bare), at=folder)
        found._git("config", "receive.autogc", "false", at=found.bare)
        found._git("clone", "-q", str(found.bare), str(found.work_tree), at=folder)
        found._git("checkout", "-q", "-B", "main")
        return found

    @property
    def work_tree(self) -> Path:
        """The folder that people edit and commit in."""
        return self.folder / "fleet"

    @property
    def bare(self) -> Path:
        """The repository that is pushed to."""
        return self.folder / "fleet.git"

    def copied(self, folder: Path) -> WorldRepository:
        """The same once more, in another folder; from now on each goes its own way."""
        twin = WorldRepository(folder)
        shutil.copytree(self.work_tree, twin.work_tree, symlinks=True)
        shutil.copytree(self.bare, twin.bare, symlinks=True)
        twin._git("remote", "set-url", "origin", str(twin.bare))
        return twin

    def commit(self, message: str, files: Mapping[str, str | None]) -> str:
        """Write (None deletes), commit whatever stands there, and push; gives the commit id."""
        for path, text in files.items():
            target = self.work_tree / path
            if text is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", message)
        self._git("push", "-q", "origin", "HEAD:refs/heads/main")
        return (self.bare / "refs" / "heads" / "main").read_text(encoding="ascii").strip()

    def show(self, what: str) -> str:
        """A file of the bare repository as `REF:PATH`, the ref in full; empty when there is none."""
        return self._answer(what.partition(":")[0], "show", what)

    def count(self, ref: str) -> int:
        """How many commits lead to a full ref; 0 where there is none."""
        return int(self._answer(ref, "rev-list", "--count", ref) or 0)

    def _answer(self, ref: str, *question: str) -> str:
        """Git is asked again only once the ref has moved: who waits for a word asks each second."""
        try:
            tip = (self.bare / ref).read_text(encoding="ascii")
        except OSError:  # no such ref, or a packed one
            return self._asked(*question)
        told = self._told.get(question)
        if told is None or told[0] != tip:
            told = self._told[question] = (tip, self._asked(*question))
        return told[1]

    def _asked(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.bare), *arguments], capture_output=True, text=True, check=False
        )
        return done.stdout

    def _git(self, *arguments: str, at: Path | None = None) -> str:
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **_PLAIN,
            **_AUTHOR,
        }
        done = subprocess.run(
            ["git", "-C", str(at or self.work_tree), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env=environment,
        )
        return done.stdout.strip()


class Polled:
    """A Repo that follows main of a bare repository on this machine.

    A poll that finds the branch where it was is answered without starting git: what git says
    then is known. Everything else goes to the real one.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._head = Path(inner.url.removeprefix("file://")) / "refs" / "heads" / "main"
        self._polled: tuple[str, SourceRevision] | None = None

    def fetch(self) -> SourceRevision:
        """The revision at the tip."""
        tip = self._head.read_text(encoding="ascii") if self._head.exists() else ""
        if self._polled is None or not tip or tip != self._polled[0]:
            self._polled = None
            self._polled = (tip, self._inner.fetch())
        return self._polled[1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
