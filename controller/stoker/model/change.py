"""Differences between rendered and live objects, made by diff, carried out by apply."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stoker.errors import Finding
from stoker.model.manifest import Manifest
from stoker.model.plan import Retirement
from stoker.model.refs import ObjectRef, UnitRef

__all__ = ["Action", "Change", "ChangeSet", "FieldChange", "Impact", "UnitChanges"]


class Action(StrEnum):
    """What will happen to one object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    UNCHANGED = "unchanged"
    RECREATE = "recreate"
    """A fixed field changes and Git consents: delete, then create once the old one is gone."""
    KEEP = "keep"
    """Left Git but kept by policy or lack of proof; `note` says why."""
    WAIT = "wait"
    """Cannot be sent yet (kind or namespace absent or terminating, unknown live state)."""
    ERROR = "error"
    """Must not be sent: adoption required, refused dry run, immutable field."""


class Impact(StrEnum):
    """What a change does to running pods, worst last."""

    NONE = "no restart"
    SCALE = "scale"
    PLACEMENT = "placement"
    RESTART = "restart"
    RECREATE = "recreate needed"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field. `path` is dotted with list keys (`spec.template.spec.containers[name=c].image`).

    None means absent on that side; secrets are already masked.
    """

    path: str
    before: Any = field(hash=False)
    after: Any = field(hash=False)


@dataclass(frozen=True, slots=True)
class Change:
    """One object of one unit. `payload` is what apply sends; None for deletes and no-ops.

    `left_to_others` lists fields that another manager owns and that are therefore not in
    `payload` (not drift). `held_back` lists template changes that wait for the next rev.
    `replaces_node` is where the replaced placement was put; empty when that is not known.
    """

    ref: ObjectRef
    action: Action
    manifest: Manifest | None = None
    payload: dict[str, Any] | None = field(default=None, hash=False)
    live_uid: str = ""
    live_resource_version: str = ""
    fields: tuple[FieldChange, ...] = ()
    left_to_others: tuple[tuple[str, str], ...] = ()
    held_back: tuple[str, ...] = ()
    impact: Impact = Impact.NONE
    code: str = ""
    note: str = ""
    replaces: ObjectRef | None = None
    replaces_node: str = ""
    adopted: bool = False
    """Somebody else made the object: this change takes it over, or an earlier one did."""

    @property
    def takes_over(self) -> bool:
        """Whether this very change adopts the object: nothing proves it ours before."""
        return self.code == "adopt-consented"


@dataclass(frozen=True, slots=True)
class UnitChanges:
    """All changes of one unit in apply order; deletes last, dependents first.

    `in_sync` is True when nothing of the unit would be written.
    """

    unit: UnitRef
    changes: tuple[Change, ...] = ()
    retirements: tuple[Retirement, ...] = ()
    coldest: tuple[str, ...] = ()
    """Pods to mark before the count of their workload is lowered, the coldest first."""
    findings: tuple[Finding, ...] = ()
    complete: bool = True

    @property
    def in_sync(self) -> bool:
        """Whether nothing of the unit would be written and nothing is in the way."""
        settled = {Action.UNCHANGED, Action.KEEP}
        return (
            self.complete
            and not self.retirements
            and all(change.action in settled for change in self.changes)
        )


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """All units sorted by ref, and `orphans`: owned objects of units that left Git."""

    units: tuple[UnitChanges, ...] = ()
    prune_hold: str = ""
    """Why nothing is pruned in this pass; empty when pruning is allowed."""
    forgotten: tuple[tuple[UnitRef, ObjectRef], ...] = ()
    """Inventory entries that no longer stand for anything: absent for certain, or moved."""
    proven: tuple[tuple[UnitRef, ObjectRef, str], ...] = ()
    """Objects whose UID the inventory lacks and that bear our mark and our manager."""
    wake_at_ms: int | None = None
    """When to look again at replicas of services that left Git and drain."""
