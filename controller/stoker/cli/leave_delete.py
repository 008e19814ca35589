"""What `deletionPolicy: Delete` adds to leaving: what is provably the fleet's is deleted first.

The committed fleet comes in; the same diff and apply as in a pass work on it as if it had no
units left and its commit allowed that: inventory, owner mark and UID prove, kinds that need
consent stay, replicas drain, dependents go first. Used by `stoker uninstall`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from stoker.apply import InventoryStore, apply
from stoker.cli import session
from stoker.cli.session import Target, find_fleets
from stoker.diff import DiffMemo, diff
from stoker.errors import Stalled, StokerError
from stoker.git import open_local
from stoker.holding import acting
from stoker.model.change import Action, ChangeSet
from stoker.model.fleet import DeletionPolicy, Desired, FleetMode
from stoker.model.outcome import PassOutcome, Result
from stoker.model.ports import Clock, Cluster
from stoker.model.refs import ObjectRef
from stoker.observe import Observer, listed, observe
from stoker.source import SourceMemo, source

__all__ = ["Emptying", "fleet_that_deletes"]

LOOK_SECONDS = 2.0
PATIENCE_SECONDS = 900.0
"""How long nothing may go before we give up: longer than the default drain.max."""
_KEEP_HINT = "--keep leaves everything as it is; so does `deletionPolicy: Orphan`"


def fleet_that_deletes(path: Path, target: Target, cluster_uid: str) -> Desired | None:
    """The fleet of HEAD when its file says Delete; None when it does not, or nobody can tell.

    What only stands in the folder has not been reviewed by anybody, so it deletes nothing.
    """
    try:
        with open_local(path, "HEAD") as repo:
            at = repo.fetch()
            found = find_fleets(repo, at, target.fleet_path)
            if len(found) != 1:
                return None
            desired = source(repo, found[0], SourceMemo(), revision=at)
    except StokerError:
        return None
    fleet = desired.fleet
    deletes = fleet.deletion_policy is DeletionPolicy.DELETE
    return desired if deletes and fleet.cluster_uid == cluster_uid else None


@dataclass(frozen=True, slots=True)
class _Round:
    """What one look found, and with what the next writes are made."""

    changes: ChangeSet
    observer: Observer
    store: InventoryStore
    left: tuple[ObjectRef, ...]
    """What is to go or is going."""


class Emptying:
    """One fleet that is deleted. `look`, then `go`; every look asks the cluster anew."""

    def __init__(
        self, cluster: Cluster, clock: Clock, desired: Desired, fleet_id: str, namespace: str
    ) -> None:
        self.desired = replace(
            desired,
            units=(),
            broken=(),
            unit_set_known=True,
            allow_delete=("all", *desired.allow_delete),
        )
        """The fleet as it is worked on: without units, with consent to what follows from that."""
        self._cluster = cluster
        self._clock = clock
        self._fleet_id = fleet_id
        self._namespace = namespace

    def look(self) -> tuple[ChangeSet, tuple[ObjectRef, ...]]:
        """What stays and why, and what goes; raises Stalled where nothing may be deleted."""
        found = self._round()
        return found.changes, found.left

    def go(self, tell: Callable[[str], None], checkpoint: Callable[[], None]) -> tuple[str, ...]:
        """Delete until nothing is left to go; gives what stands in the way, mostly nothing."""
        before: tuple[ObjectRef, ...] | None = None
        due = self._clock.monotonic() + PATIENCE_SECONDS
        while True:
            checkpoint()
            found = self._round()
            if not found.left:
                return ()
            if found.left != before:
                before, due = found.left, self._clock.monotonic() + PATIENCE_SECONDS
                tell(f"{len(found.left)} objects to go: {found.left[0]}, …")
            if self._clock.monotonic() > due:
                return tuple(f"{ref}: still there" for ref in found.left)
            outcome = apply(
                found.changes,
                self.desired,
                self._cluster,
                found.store,
                found.observer,
                self._clock,
                self._fleet_id,
                checkpoint=checkpoint,
            )
            if problems := _problems(outcome):
                return problems
            self._clock.wait(LOOK_SECONDS)

    def _round(self) -> _Round:
        """Stages observe and diff, from nothing: no cache outlives its round."""
        store = InventoryStore(self._cluster, self._fleet_id, namespace=self._namespace)
        observer = Observer(
            self._cluster, self._clock, fleet_id=self._fleet_id, load_probe=session.probe_load
        )
        stored = store.stored()
        if stored is None:
            raise Stalled(
                "the inventory is lost, and nothing else proves what is the fleet's",
                code="prune-held",
                hint=f"a controller that runs once writes it anew; {_KEEP_HINT}",
            )
        listed(observer, (), stored)
        now_ms = self._clock.now_ms()
        seen = observe(observer, self.desired, now_ms)
        if acting(self.desired, seen.snapshot, now_ms).fleet.mode is FleetMode.OBSERVE:
            observing = self.desired.fleet.mode is FleetMode.OBSERVE
            raise Stalled(
                f"the fleet is {'in mode Observe' if observing else 'suspended'}, "
                "so its `deletionPolicy: Delete` deletes nothing",
                code="prune-held",
                hint=_KEEP_HINT,
            )
        changes = diff(
            self.desired,
            (),
            seen.live,
            store.read(self.desired.fleet.name, seen.live),
            self._cluster,
            self._fleet_id,
            DiffMemo(),
            snapshot=seen.snapshot,
            now_ms=now_ms,
        )
        if changes.prune_hold:
            raise Stalled(changes.prune_hold, code="prune-held", hint=_KEEP_HINT)
        going = {Action.DELETE, Action.WAIT}
        left = tuple(
            sorted(c.ref for unit in changes.units for c in unit.changes if c.action in going)
        )
        return _Round(changes, observer, store, left)


def _problems(outcome: PassOutcome) -> tuple[str, ...]:
    """What was refused, or got no answer: a person looks, and runs the command again."""
    found = [outcome.failure.message] if outcome.failure is not None else []
    objects = (*(item for unit in outcome.units for item in unit.objects), *outcome.pruned)
    bad = {Result.FAILED, Result.UNKNOWN}
    found += [f"{item.ref}: {item.message} [{item.code}]" for item in objects if item.result in bad]
    return tuple(dict.fromkeys(found))
