"""Polls that cost nothing while the branch stands where it stood: stories make thousands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stoker.model.refs import SourceRevision


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
