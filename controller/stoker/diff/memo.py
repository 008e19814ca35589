"""What diff remembers between passes, so that an unchanged fleet costs no request.

Two tables: whole verdicts of objects whose every input is as it was, and what dry runs
have settled. Losing either costs time only. Used by verdict and dryrun; one instance lives
as long as the process and belongs to the reconciler thread.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace

from stoker.model.change import Change
from stoker.model.manifest import Manifest
from stoker.model.refs import ObjectRef
from stoker.objects.takeover import Rival

__all__ = ["DiffMemo"]

MAX_SETTLED = 20_000
"""Answers of dry runs kept; beyond it the oldest go."""


@dataclass(slots=True)
class DiffMemo:
    """Empty to begin with; see `forget` for when to begin again."""

    verdicts: dict[ObjectRef, tuple[Hashable, Change]] = field(default_factory=dict)
    settled: dict[Hashable, bool] = field(default_factory=dict)
    controllers: dict[ObjectRef, tuple[Hashable, tuple[Rival, ...]]] = field(default_factory=dict)
    """GitOps controllers that own fields of an object to adopt, by what the object was."""
    """(digest of what is sent, digest of what is ours live, server version) -> unchanged."""

    def verdict(self, ref: ObjectRef, key: Hashable, manifest: Manifest) -> Change | None:
        """The verdict reached with exactly these inputs, about this manifest."""
        known = self.verdicts.get(ref)
        if known is None or known[0] != key:
            return None
        return known[1] if known[1].manifest is manifest else replace(known[1], manifest=manifest)

    def keep(self, ref: ObjectRef, key: Hashable, change: Change) -> None:
        """Remember a verdict."""
        self.verdicts[ref] = (key, change)

    def settle(self, key: Hashable, *, unchanged: bool) -> None:
        """Remember what a dry run said."""
        while len(self.settled) >= MAX_SETTLED:
            del self.settled[next(iter(self.settled))]
        self.settled[key] = unchanged

    def only(self, refs: Collection[ObjectRef]) -> None:
        """Drop the verdicts of objects that are rendered no more."""
        for table in (self.verdicts, self.controllers):
            for ref in [ref for ref in table if ref not in refs]:
                del table[ref]

    def forget(self) -> None:
        """Begin again: after a change of the server or of a webhook."""
        self.verdicts.clear()
        self.controllers.clear()
        self.settled.clear()
