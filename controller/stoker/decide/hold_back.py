"""Takes out of a ChangeSet what may not be sent in this pass, and says why. Pure.

The changes of diff come in; creates and changes of held units become WAIT, their deletes
KEEP, and units that left Git go only after those that depend on them. Called by reconcile
between diff and apply, so that diff, plan and status show the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.fleet import Desired
from stoker.model.flow import Held, HeldBy, Standing
from stoker.model.refs import UnitRef

__all__ = ["hold_back"]

_WRITES = frozenset({Action.CREATE, Action.CHANGE})


def hold_back(
    changes: ChangeSet, desired: Desired, standings: Mapping[UnitRef, Standing], fleet: str = ""
) -> ChangeSet:
    """The same with everything held taken out. `fleet` says why the whole fleet is suspended."""
    held = {each.unit: each for each in desired.held}
    wanted = {unit.ref for unit in desired.units} | set(desired.broken)
    going = {u.unit for u in changes.units if u.unit not in wanted and _has_deletes(u)}
    waiting = _dependents(going, changes, standings)
    units = []
    for unit in changes.units:
        why = held.get(unit.unit)
        if why is not None and why.whole:
            units.append(_held(unit, why))
        elif unit.unit not in wanted:
            units.append(_leaving(unit, desired, standings.get(unit.unit), waiting, fleet))
        else:
            units.append(unit)
    return replace(changes, units=tuple(units))


def _has_deletes(unit: UnitChanges) -> bool:
    return any(change.action in {Action.DELETE, Action.WAIT} for change in unit.changes)


def _held(unit: UnitChanges, why: Held) -> UnitChanges:
    note = f"{why.by}: {why.message}"
    return replace(
        unit,
        changes=tuple(_stopped(change, why.code, note) for change in unit.changes),
        retirements=(),
    )


def _stopped(change: Change, code: str, note: str) -> Change:
    if change.action in _WRITES:
        return replace(change, action=Action.WAIT, payload=None, code=code, note=note)
    if change.action is Action.DELETE:
        return replace(change, action=Action.KEEP, code=code, note=note)
    return change


def _leaving(
    unit: UnitChanges,
    desired: Desired,
    standing: Standing | None,
    waiting: Mapping[UnitRef, UnitRef],
    fleet: str,
) -> UnitChanges:
    """A unit that left Git: kept while it or the fleet is suspended, after its dependents else."""
    note = f"{HeldBy.SUSPENDED}: {fleet}" if fleet else ""
    if not note and standing is not None and standing.suspended:
        named = {str(unit.unit), unit.unit.short, "all"} & set(desired.allow_delete)
        if not named:
            trailer = f"Stoker-Allow-Delete: {unit.unit}"
            note = f"it was suspended when it left Git; to delete it: {trailer}"
    if note:
        return replace(
            unit, changes=tuple(_stopped(change, "suspended", note) for change in unit.changes)
        )
    first = waiting.get(unit.unit)
    if first is None:
        return unit
    note = f"after {first}, which depends on it"
    return replace(unit, changes=tuple(_after(change, note) for change in unit.changes))


def _after(change: Change, note: str) -> Change:
    if change.action is not Action.DELETE:
        return change
    return replace(change, action=Action.WAIT, code="dependents-first", note=note)


def _dependents(
    going: set[UnitRef], changes: ChangeSet, standings: Mapping[UnitRef, Standing]
) -> dict[UnitRef, UnitRef]:
    """For each leaving unit the first leaving unit that depends on it and still has objects.

    Units that wait for each other (files were wrong when they were written) wait for nobody.
    """
    found: dict[UnitRef, UnitRef] = {}
    for unit in changes.units:
        standing = standings.get(unit.unit)
        if unit.unit not in going or standing is None:
            continue
        for ref in standing.depends_on:
            if ref in going and not _reaches(ref, unit.unit, standings):
                found.setdefault(ref, unit.unit)
    return found


def _reaches(start: UnitRef, goal: UnitRef, standings: Mapping[UnitRef, Standing]) -> bool:
    seen: set[UnitRef] = set()
    border = [start]
    while border:
        here = border.pop()
        if here == goal:
            return True
        if here not in seen:
            seen.add(here)
            border += standings[here].depends_on if here in standings else ()
    return False
