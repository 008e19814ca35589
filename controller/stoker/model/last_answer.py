"""What a stage answered last, given again while it is asked the same. A cache only.

Kept in the memos of source, render and check: a pass over an unchanged fleet asks each of them
what it asked in the pass before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["LastAnswer"]

T = TypeVar("T")


@dataclass(slots=True)
class LastAnswer(Generic[T]):
    """One answer and its question: the objects in `same` must be the very ones, what is `equal`
    need only be equal. An answer is never None.
    """

    _same: tuple[object, ...] = ()
    _equal: object = None
    _answer: T | None = None

    def to(self, *same: object, equal: object = None) -> T | None:
        """The answer; None where something else was asked."""
        known = len(same) == len(self._same) and all(
            a is b for a, b in zip(same, self._same, strict=True)
        )
        return self._answer if known and equal == self._equal else None

    def keep(self, answer: T | None, *same: object, equal: object = None) -> None:
        """Remember it in place of the one before; None forgets that, too."""
        self._same, self._equal, self._answer = same, equal, answer
