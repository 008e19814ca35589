"""Parts of a ChangeSet that a person asked for, and what of a change all outputs show; pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stoker.model.change import Change, ChangeSet
from stoker.model.live import LiveView
from stoker.model.refs import ObjectRef
from stoker.objects.selectors import Selector

__all__ = ["body_of", "replaced_name", "selected", "within"]


def within(changes: ChangeSet, namespace: str) -> ChangeSet:
    """Only the units of one namespace; all of them when it is empty."""
    if not namespace:
        return changes
    return replace(changes, units=tuple(u for u in changes.units if u.unit.namespace == namespace))


def selected(changes: ChangeSet, selector: Selector, live: LiveView) -> ChangeSet:
    """Only objects with these labels, in Git or, for what left it, in the cluster."""

    def chosen(ref: ObjectRef, body: dict[str, Any]) -> bool:
        if not body and live.known(ref) and (standing := live.get(ref)) is not None:
            body = standing.body
        return selector.matches((body.get("metadata") or {}).get("labels"))

    units = []
    for unit in changes.units:
        kept = tuple(c for c in unit.changes if chosen(c.ref, body_of(c)))
        space = unit.unit.namespace
        leaving = tuple(r for r in unit.retirements if chosen(r.ref_in(space), {}))
        if kept or leaving:
            units.append(replace(unit, changes=kept, retirements=leaving))
    return replace(changes, units=tuple(units))


def replaced_name(change: Change) -> str:
    """Name of the Deployment that it takes over from; empty without one."""
    return change.replaces.name if change.replaces is not None else ""


def body_of(change: Change) -> dict[str, Any]:
    """What is sent or rendered; empty for what left Git."""
    return change.payload or (change.manifest.body if change.manifest else {})
