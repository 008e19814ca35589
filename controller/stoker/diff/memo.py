"""What diff remembers between passes, so that an unchanged fleet costs no request.

Two tables: whole verdicts of objects whose every input is as it was, and what dry runs
have settled. Losing either costs time only. Used by verdict and dryrun; one instance lives
as long as the process and belongs to the reconciler thread.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace

from stoker.diff.ground import Ground
from stoker.model.change import Action, Change
from stoker.model.manifest import Manifest, ManifestSet
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects.known_secrets import KnownSecrets, joined, known_secrets
from stoker.objects.takeover import Rival

__all__ = ["DiffMemo"]

MAX_SETTLED = 20_000
"""Answers of dry runs kept; beyond it the oldest go."""


@dataclass(slots=True)
class DiffMemo:
    """Empty to begin with; see `forget` for when to begin again."""

    verdicts: dict[ObjectRef, tuple[Hashable, Change]] = field(default_factory=dict)
    changing: dict[ObjectRef, tuple[str, bool]] = field(default_factory=dict)
    """Digests of manifests whose last verdict was a change, and whether a dry run said so."""
    secrets: dict[UnitRef, KnownSecrets] = field(default_factory=dict)
    """Values of the Secrets that each unit rendered last: a pass may look at a few units only."""
    known: KnownSecrets = field(default_factory=KnownSecrets)
    """All of them, as `learn` gave them last; the client hides them in errors."""
    settled: dict[Hashable, bool] = field(default_factory=dict)
    """(digest of what is sent, digest of what is ours live, server version) -> unchanged."""
    ground: Ground | None = None
    """What the last diff stood on, for one that looks at a few units of the same fleet."""
    controllers: dict[ObjectRef, tuple[Hashable, tuple[Rival, ...]]] = field(default_factory=dict)
    """GitOps controllers that own fields of an object to adopt, by what the object was."""

    def verdict(self, ref: ObjectRef, key: Hashable, manifest: Manifest) -> Change | None:
        """The verdict reached with exactly these inputs, about this manifest."""
        known = self.verdicts.get(ref)
        if known is None or known[0] != key:
            return None
        return known[1] if known[1].manifest is manifest else replace(known[1], manifest=manifest)

    def keep(self, ref: ObjectRef, key: Hashable, change: Change, *, asked: bool = False) -> None:
        """Remember a verdict; `asked` says that a dry run stands behind it."""
        self.verdicts[ref] = (key, change)
        if change.action is Action.CHANGE and change.manifest is not None:
            self.changing[ref] = (change.manifest.digest, asked)
        else:
            self.changing.pop(ref, None)

    def must_ask(self, manifest: Manifest) -> bool:
        """Whether this very manifest was found to be a change before, and may have been sent.

        If it still differs, somebody between us and the store has written it otherwise.
        """
        return self.changing.get(manifest.ref) == (manifest.digest, False)

    def learn(self, sets: Iterable[ManifestSet], units: Collection[UnitRef]) -> KnownSecrets:
        """The secrets of the whole fleet, those of the rendered sets anew; `units` are left."""
        for found in sets:
            if found.complete:
                self.secrets[found.unit] = known_secrets(m.body for m in found.manifests)
        for gone in [unit for unit in self.secrets if unit not in units]:
            del self.secrets[gone]
        self.known = joined(self.secrets.values())
        return self.known

    def settle(self, key: Hashable, *, unchanged: bool) -> None:
        """Remember what a dry run said."""
        while len(self.settled) >= MAX_SETTLED:
            del self.settled[next(iter(self.settled))]
        self.settled[key] = unchanged

    def only(self, refs: Collection[ObjectRef]) -> None:
        """Drop the verdicts of objects that are rendered no more."""
        for ref in [ref for ref in self.verdicts if ref not in refs]:
            del self.verdicts[ref]
            self.changing.pop(ref, None)
        for ref in [ref for ref in self.controllers if ref not in refs]:
            del self.controllers[ref]

    def forget(self) -> None:
        """Begin again: after a change of the server or of a webhook."""
        self.verdicts.clear()
        self.changing.clear()
        self.controllers.clear()
        self.settled.clear()
