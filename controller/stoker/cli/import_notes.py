"""What an import cannot carry of one object, and how it reads that object's blocks.

Used by everything that turns the objects of other tools into files: whatever is in no file is
named with the reason, and what is required and unreadable stops the import of that object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stoker.errors import Stalled

__all__ = ["Notes", "block", "one_of"]


class Notes:
    """What is not carried, of one object."""

    def __init__(self, live: Mapping[str, Any]) -> None:
        self.object = f"{live['kind']}/{live['metadata']['name']}"
        self.lines: list[str] = []

    def add(self, path: str, why: str) -> None:
        """One field and why it is in no file."""
        self.lines.append(f"{self.object} {path} ({why})")

    def others(self, said: Mapping[str, Any], known: Iterable[str], at: str) -> None:
        """Every further field of a block."""
        for name in sorted(set(said) - set(known)):
            self.add(f"{at}.{name}", "a field that is not known here")

    def refuse(self, why: str) -> Stalled:
        """What stops the import of the object."""
        return Stalled(f"{self.object} is not carried: {why}", code="source-not-carried")


def block(outer: Mapping[str, Any], name: str, notes: Notes) -> Mapping[str, Any]:
    """A map inside of another; empty where it is absent."""
    found = outer.get(name) or {}
    if not isinstance(found, Mapping):
        raise notes.refuse(f"{name} is no map")
    return found


def one_of(
    words: Mapping[str, str],
    said: Mapping[str, Any],
    name: str,
    usual: str,
    notes: Notes,
    at: str,
) -> str:
    """The word of ours for a word of theirs; `usual` where they say nothing."""
    value = str(said.get(name) or usual)
    if value not in words:
        raise notes.refuse(f"{at}.{name} {value!r} is none of {', '.join(words)}")
    return words[value]
