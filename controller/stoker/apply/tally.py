"""Collects what came of each request, on the reconciler thread, and folds it into the caches.

`Sent` comes in from the pool, one at a time; unit outcomes and the facts for the inventory
go out. Also stops a pass whose API server does not answer any more. Used by apply.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from stoker.apply.answers import Sent
from stoker.model.change import Change, ChangeSet, UnitChanges
from stoker.model.outcome import ObjectOutcome, PassOutcome, Result, UnitOutcome
from stoker.model.ports import Clock
from stoker.model.refs import ObjectRef, UnitRef

__all__ = ["Folding", "Tally"]

MAX_UNANSWERED = 12
"""Requests of one pass without an answer after which the rest of it is not sent."""

_STANDING = frozenset({Result.CREATED, Result.CHANGED, Result.UNCHANGED})


class Folding(Protocol):
    """What apply tells the caches; the Observer does it."""

    def fold(self, obj: dict[str, Any]) -> None:
        """Take an answered write; an older resourceVersion never replaces a newer one."""
        ...

    def fold_deleted(self, ref: ObjectRef, uid: str) -> None:
        """Take a delete that is known to be complete."""
        ...

    def mark_unknown(self, ref: ObjectRef) -> None:
        """Read the object again before it is decided on."""
        ...


@dataclass(slots=True)
class Tally:
    """The outcomes of one pass so far, by unit and object."""

    observer: Folding
    clock: Clock
    objects: dict[UnitRef, dict[ObjectRef, ObjectOutcome]] = field(default_factory=dict)
    pruned: dict[ObjectRef, ObjectOutcome] = field(default_factory=dict)
    uids: dict[tuple[UnitRef, ObjectRef], str] = field(default_factory=dict)
    gone: set[tuple[UnitRef, ObjectRef]] = field(default_factory=set)
    wakes: dict[UnitRef, int] = field(default_factory=dict)
    unanswered: int = 0
    unanswered_in_a_row: int = 0
    stopped: bool = False
    """Nothing more is sent in this pass."""

    def code(self, unit: UnitRef, ref: ObjectRef) -> str:
        """The code of an object's outcome so far, empty without one."""
        outcome = self.objects.get(unit, {}).get(ref)
        return outcome.code if outcome is not None else ""

    def take(self, unit: UnitRef, sent: Sent) -> None:
        """Record one answer about an object that the unit renders or retires."""
        outcome = sent.outcome
        self.objects.setdefault(unit, {})[outcome.ref] = outcome
        self._fold(unit, sent)
        if sent.uid and outcome.result in _STANDING:
            self.uids[unit, outcome.ref] = sent.uid

    def take_pruned(self, unit: UnitRef, sent: Sent) -> None:
        """Record one answer about an object that left Git."""
        self.pruned[sent.outcome.ref] = sent.outcome
        self._fold(unit, sent)

    def note(self, unit: UnitRef, outcome: ObjectOutcome) -> None:
        """Record what needed no request."""
        self.objects.setdefault(unit, {}).setdefault(outcome.ref, outcome)

    def _fold(self, unit: UnitRef, sent: Sent) -> None:
        ref = sent.outcome.ref
        self.unanswered += sent.unanswered
        self.unanswered_in_a_row = self.unanswered_in_a_row + 1 if sent.unanswered else 0
        self.stopped = self.stopped or self.unanswered >= MAX_UNANSWERED
        if sent.body is not None:
            self.observer.fold(sent.body)
        if sent.gone:
            self.gone.add((unit, ref))
            self.observer.fold_deleted(ref, sent.uid)
        if sent.uncertain:
            self.observer.mark_unknown(ref)
        if sent.after_ms is not None:
            wake_ms = self.clock.now_ms() + sent.after_ms
            self.wakes[unit] = min(wake_ms, self.wakes.get(unit, wake_ms))

    def has_applied(self, unit: UnitChanges) -> bool:
        """Whether everything the unit renders stands as rendered."""
        results = self.objects.get(unit.unit, {})
        return unit.complete and all(
            change.ref in results and results[change.ref].result in _STANDING
            for change in rendered(unit.changes)
        )

    def outcome(self, changes: ChangeSet) -> PassOutcome:
        """Everything of the pass; what was never sent is skipped."""
        units = tuple(self._unit(unit) for unit in changes.units)
        return PassOutcome(
            units=units,
            pruned=tuple(self.pruned[ref] for ref in sorted(self.pruned)),
            prune_hold=changes.prune_hold,
            wake_at_ms=min(_instants(changes.wake_at_ms, self.wakes.values()), default=None),
        )

    def _unit(self, unit: UnitChanges) -> UnitOutcome:
        results = dict(self.objects.get(unit.unit, {}))
        ordered = []
        for change in rendered(unit.changes):
            missed = ObjectOutcome(change.ref, Result.SKIPPED, "not-sent", "the pass ended before")
            ordered.append(results.pop(change.ref, missed))
        return UnitOutcome(
            unit=unit.unit,
            objects=(*ordered, *(results[ref] for ref in sorted(results))),
            findings=unit.findings,
            applied=self.has_applied(unit),
            wake_at_ms=self.wakes.get(unit.unit),
        )


def _instants(one: int | None, others: Iterable[int]) -> list[int]:
    return [*others, *([] if one is None else [one])]


def rendered(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Changes of objects that Git renders, as against those that left it."""
    return tuple(change for change in changes if change.manifest is not None)
