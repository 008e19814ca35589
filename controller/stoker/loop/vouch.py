"""Whether what was read a moment ago still stands, because nobody else may have written it.

In: the lease's term and the clock. Out: yes or no. The inventory store asks before it looks
whether somebody wrote its ConfigMaps; made by the long-running controller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stoker.model.ports import Clock

__all__ = ["Vouch"]

SECONDS = 600.0
"""How long the lease is taken for an answer: a person may delete a ConfigMap all the same. Until
then only a write would notice, by the version it names."""


@dataclass(slots=True)
class Vouch:
    """Says no once a term and every ten minutes: then look, and it stands from there on."""

    term: Callable[[], int]
    clock: Clock
    _looked: tuple[int, float] = field(default=(0, 0.0), init=False)

    def __call__(self) -> bool:
        """Whether the lease was held without a gap since the last no, not long ago."""
        term, now = self.term(), self.clock.monotonic()
        before, since = self._looked
        if term == before != 0 and now < since + SECONDS:
            return True
        self._looked = (term, now)
        return False
