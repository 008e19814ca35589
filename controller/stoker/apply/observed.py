"""The outcome of a pass that writes nothing at all: mode Observe.

A ChangeSet comes in, a PassOutcome goes out that says what stands already and that the rest
was not sent. Used by apply, and by the command line for dry runs.
"""

from __future__ import annotations

from stoker.apply.tally import rendered
from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.outcome import ObjectOutcome, PassOutcome, Result, UnitOutcome

__all__ = ["observed", "unsent"]

_RESULTS = {
    Action.UNCHANGED: Result.UNCHANGED,
    Action.KEEP: Result.KEPT,
    Action.WAIT: Result.WAITING,
    Action.ERROR: Result.FAILED,
}


def observed(changes: ChangeSet) -> PassOutcome:
    """What a pass found, with every write left out."""
    return PassOutcome(
        units=tuple(_unit(unit) for unit in changes.units),
        pruned=tuple(
            unsent(change)
            for unit in changes.units
            for change in unit.changes
            if change.manifest is None
        ),
        prune_hold=changes.prune_hold,
    )


def unsent(change: Change) -> ObjectOutcome:
    """The outcome of a change for which no request is made."""
    result = _RESULTS.get(change.action, Result.SKIPPED)
    code = change.code or ("observe-only" if result is Result.SKIPPED else "")
    return ObjectOutcome(change.ref, result, code, change.note)


def _unit(unit: UnitChanges) -> UnitOutcome:
    objects = tuple(unsent(change) for change in rendered(unit.changes))
    return UnitOutcome(
        unit=unit.unit,
        objects=objects,
        findings=unit.findings,
        applied=unit.complete and all(o.result is Result.UNCHANGED for o in objects),
    )
