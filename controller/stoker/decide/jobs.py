"""Jobs that the cluster removes when they are done: run once for each change, never again. Pure.

A Job with `ttlSecondsAfterFinished` vanishes after its end; made again it would run again, for
ever. So what was applied of it is remembered by digest: an absent Job whose manifest is that
one counts as done (cases.md row 85). Called by holding, before and after apply.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from stoker.model.change import Action, Change, ChangeSet
from stoker.model.outcome import PassOutcome, Result
from stoker.model.refs import UnitRef

__all__ = ["asks_for_jobs", "jobs_after", "without_done"]

DONE = "it is done; its ttlSecondsAfterFinished removed it"
_DIGITS = 16
_STANDS = frozenset({Result.CREATED, Result.CHANGED, Result.UNCHANGED})


def asks_for_jobs(changes: ChangeSet) -> bool:
    """Whether anything hangs on what is known of Jobs: one that would vanish is to be made."""
    return any(
        change.action is Action.CREATE and _vanishes(change)
        for unit in changes.units
        for change in unit.changes
    )


def without_done(changes: ChangeSet, known: Mapping[str, str]) -> ChangeSet:
    """The same, with Jobs that ran already as unchanged. `known` is digest by unit and object."""
    if not known:
        return changes
    return replace(
        changes,
        units=tuple(
            replace(unit, changes=tuple(_done(unit.unit, c, known) for c in unit.changes))
            for unit in changes.units
        ),
    )


def jobs_after(
    changes: ChangeSet,
    outcome: PassOutcome,
    known: Mapping[str, str],
    only: Collection[UnitRef] | None = None,
) -> dict[str, str]:
    """What is to be remembered after a pass: of every Job that vanishes what last stood.

    With `only` the pass compared these units alone; of others nothing is forgotten.
    """
    found: dict[str, str] = {}
    if only is not None:
        compared = {str(unit) for unit in only}
        found = {k: digest for k, digest in known.items() if k.partition(" ")[0] not in compared}
    results = {unit.unit: {o.ref: o.result for o in unit.objects} for unit in outcome.units}
    for unit in changes.units:
        for change in unit.changes:
            if change.manifest is None or not _vanishes(change):
                continue
            key = _key(unit.unit, change)
            if results.get(unit.unit, {}).get(change.ref) in _STANDS:
                found[key] = change.manifest.digest[:_DIGITS]
            elif key in known:
                found[key] = known[key]
        if not unit.complete:  # what it renders is not known: forget nothing of it
            prefix = f"{unit.unit} "
            found |= {k: digest for k, digest in known.items() if k.startswith(prefix)}
    return found


def _vanishes(change: Change) -> bool:
    if change.manifest is None or (change.ref.group, change.ref.kind) != ("batch", "Job"):
        return False
    spec = change.manifest.body.get("spec") or {}
    return isinstance(spec, dict) and spec.get("ttlSecondsAfterFinished") is not None


def _done(unit: UnitRef, change: Change, known: Mapping[str, str]) -> Change:
    if change.action is not Action.CREATE or change.manifest is None or not _vanishes(change):
        return change
    if known.get(_key(unit, change)) != change.manifest.digest[:_DIGITS]:
        return change
    return replace(change, action=Action.UNCHANGED, payload=None, note=DONE)


def _key(unit: UnitRef, change: Change) -> str:
    return f"{unit} {change.ref.namespace}/{change.ref.name}"
