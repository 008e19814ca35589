"""Which classes of consequences a ChangeSet has: what `diff --fail-on` asks for.

A ChangeSet comes in, the classes that occur in it go out. Every change is of the worst class
that its `Impact` names; a replace restarts a replica on another place.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from stoker.model.change import Action, Change, ChangeSet, Impact, UnitChanges
from stoker.model.plan import Plan

__all__ = ["ChangeClass", "classes_of", "is_updating"]


class ChangeClass(StrEnum):
    """What people may want to stop a merge for."""

    RESTART = "restart"
    """A pod that runs is ended and made anew, in place or elsewhere."""
    DELETE = "delete"
    """An object goes and nothing takes over from it."""
    RECREATE = "recreate"
    """A field that the API server does not change: only delete and create would."""
    SCALE = "scale"
    """The count of a workload changes."""
    PLACEMENT = "placement"
    """Where pods may run changes."""


_OF_IMPACT = {
    Impact.NONE: (),
    Impact.SCALE: (ChangeClass.SCALE,),
    # Node affinity and tolerations stand in the pod template: a new one makes new pods.
    Impact.PLACEMENT: (ChangeClass.PLACEMENT, ChangeClass.RESTART),
    Impact.RESTART: (ChangeClass.RESTART,),
    Impact.RECREATE: (ChangeClass.RECREATE,),
}


def classes_of(changes: ChangeSet, plan: Plan | None = None) -> frozenset[ChangeClass]:
    """Every class that occurs.

    By the plan a replica that leaves for a newer one is told from one that leaves for good,
    and an update that starts with an addition is still a restart.
    """
    return frozenset(found for unit in changes.units for found in _of_unit(unit, plan))


def is_updating(unit: UnitChanges, plan: Plan | None) -> bool:
    """Whether replicas of the unit make room for others of a newer rev."""
    decision = plan.decision(unit.unit) if plan is not None else None
    return decision is not None and decision.updating and decision.replicas != 0


def _of_unit(unit: UnitChanges, plan: Plan | None) -> Iterator[ChangeClass]:
    for change in unit.changes:
        yield from _of_change(change)
    updating = is_updating(unit, plan)
    written = any(c.action in {Action.CREATE, Action.CHANGE} for c in unit.changes)
    if updating and (unit.retirements or written):
        yield ChangeClass.RESTART
    taken_over = {c.replaces.name for c in unit.changes if c.replaces is not None}
    for retirement in unit.retirements:
        if retirement.name not in taken_over and not updating:
            yield ChangeClass.SCALE if retirement.keep else ChangeClass.DELETE


def _of_change(change: Change) -> tuple[ChangeClass, ...]:
    if change.action is Action.DELETE:
        return (ChangeClass.DELETE,)
    if change.action is Action.CREATE and change.replaces is not None:
        return (ChangeClass.RESTART, ChangeClass.PLACEMENT)
    if change.action in {Action.CHANGE, Action.ERROR}:
        return _OF_IMPACT[change.impact]
    return ()
