"""What changed in the caches since the last pass asked: which objects a pass must look at anew.

Watch threads, lists and answered writes come in under the caches' lock; one `News` a pass
goes out. Used by the observer; read by `narrow`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stoker.model.refs import ObjectRef
from stoker.observe.external import ScaleTarget
from stoker.observe.projection import Entry
from stoker.observe.store import Changed

__all__ = ["News", "NewsDesk"]

MOST = 2_000
"""Objects told one by one; beyond it everything counts as news."""


@dataclass(frozen=True, slots=True)
class News:
    """`refs` changed, appeared or went, each with what it scales. `marked` are those of them
    that bear this fleet's owner mark, or did. `everything`: too much to be told.
    """

    refs: frozenset[ObjectRef] = frozenset()
    marked: frozenset[ObjectRef] = frozenset()
    everything: bool = False


@dataclass(slots=True)
class NewsDesk:
    """Collects until asked. Not locked: its owner calls it under the lock of the caches."""

    _refs: set[ObjectRef] = field(default_factory=set)
    _marked: set[ObjectRef] = field(default_factory=set)
    _everything: bool = False

    def changed(self, changes: Iterable[Changed]) -> None:
        """Take what a cache said; both what stood before and what stands now is news."""
        for change in changes:
            for entry in (change.before, change.after):
                if entry is not None:
                    self._entry(entry)

    def touched(self, ref: ObjectRef) -> None:
        """Take an object of which it is not known what it is now."""
        self._refs.add(ref)
        self._bound()

    def take(self) -> News:
        """Everything since the last call."""
        news = News(frozenset(self._refs), frozenset(self._marked), self._everything)
        self._refs, self._marked, self._everything = set(), set(), False
        return news

    def _entry(self, entry: Entry) -> None:
        self._refs.add(entry.ref)
        if entry.unit is not None:
            self._marked.add(entry.ref)
        if isinstance(entry.facts, ScaleTarget):
            target = entry.facts
            self._refs.add(ObjectRef(target.group, target.kind, target.namespace, target.name))
        self._bound()

    def _bound(self) -> None:
        if len(self._refs) > MOST:
            self._refs.clear()
            self._marked.clear()
            self._everything = True
