"""What came of a pass, made by apply and derived further by report."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stoker.errors import Finding
from stoker.model.refs import ObjectRef, UnitRef

__all__ = [
    "Condition",
    "Document",
    "Health",
    "ObjectOutcome",
    "PassOutcome",
    "Result",
    "Sync",
    "UnitOutcome",
]


class Result(StrEnum):
    """What happened to one object in this pass."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    KEPT = "kept"
    WAITING = "waiting"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """A write was sent and no answer came; the object is read again before anything else."""
    SKIPPED = "skipped"


class Sync(StrEnum):
    """Argo CD's sync words."""

    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"


class Health(StrEnum):
    """Argo CD's health words, worst last."""

    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
    """One object. `code` and `message` explain everything but success."""

    ref: ObjectRef
    result: Result
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class UnitOutcome:
    """One unit. `applied` is True when everything it renders stands as rendered."""

    unit: UnitRef
    objects: tuple[ObjectOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    applied: bool = False
    wake_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PassOutcome:
    """All of one pass. `failure` is set when it ended early, with the stage's error."""

    units: tuple[UnitOutcome, ...] = ()
    pruned: tuple[ObjectOutcome, ...] = ()
    prune_hold: str = ""
    failure: Finding | None = None
    wake_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A Kubernetes condition. `since` is RFC 3339, the last change of `status`."""

    type: str
    status: str
    reason: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file on the status branch, as plain data to be dumped as YAML."""

    path: str
    data: dict[str, Any] = field(hash=False)
