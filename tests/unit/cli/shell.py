"""Runs commands as a shell does, in this process; nothing of a person's own cluster is in reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from stoker.cli.app import run

UID = "00000000-0000-4000-8000-000000000001"


@dataclass(frozen=True)
class Answer:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


class Shell:
    """`shell("validate", folder)` gives an Answer. KUBECONFIG names a file that is not there."""

    def __init__(self, capture: pytest.CaptureFixture[str], folder: Path) -> None:
        self._capture = capture
        self.folder = folder

    def __call__(self, *arguments: object) -> Answer:
        self._capture.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = self._capture.readouterr()
        return Answer(int(code), printed.out, printed.err)

    def fleet(self, name: str = "local") -> Path:
        """A new repository as `stoker init` writes it."""
        folder = self.folder / f"fleet-{name}"
        answer = self("init", folder, "--fleet", name, "--cluster-uid", UID)
        assert answer.code == 0, answer.err
        return folder


@contextmanager
def shell_in(folder: Path, capture: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """A shell whose home and kubeconfig are empty."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FORCE_COLOR", "STOKER_DEBUG", "STOKER_ALLOW_EXEC"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(folder))
        patch.setenv("KUBECONFIG", str(folder / "no-kubeconfig"))
        patch.setenv("COLUMNS", "200")
        yield Shell(capture, folder)
