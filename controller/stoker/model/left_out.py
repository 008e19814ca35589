"""What a commit holds at a path but no reader of it gives: named, so that it never looks absent."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["LeftOut", "WhyLeftOut", "shortened"]

END_SHOWN = 100
"""Characters of either end of a path that is too long to be shown whole."""


class WhyLeftOut(Enum):
    """Why there is no file to read at a path."""

    LINK = "link"
    """A symbolic link or a submodule; neither is ever followed."""
    LONG_PATH = "long path"
    """The path has more bytes than is taken."""
    UNREADABLE = "unreadable"
    """Neither file nor link (a pipe, a device), or its state cannot be read."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A path from the repository root, whole however long it is, and why it holds no file."""

    path: str
    why: WhyLeftOut


def shortened(path: str) -> str:
    """A path as people read it: both ends where it is long."""
    if len(path) <= 2 * END_SHOWN:
        return path
    return f"{path[:END_SHOWN]}…{path[-END_SHOWN:]}"
