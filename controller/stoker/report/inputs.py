"""What report is given and what it answers: the data of this stage, without behaviour."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from stoker.errors import Finding
from stoker.model.change import ChangeSet
from stoker.model.fleet import Desired
from stoker.model.live import LiveView
from stoker.model.outcome import Condition, Document, PassOutcome
from stoker.model.plan import Plan
from stoker.model.refs import SourceRevision, UnitRef
from stoker.model.snapshot import Snapshot
from stoker.model.times import rfc3339
from stoker.objects.health_rules import HealthRules
from stoker.objects.known_secrets import KnownSecrets
from stoker.report.mirror import Mirror
from stoker.report.previous import PreviousStatus

__all__ = ["Event", "EventType", "Identity", "Pending", "Report", "ReportInputs", "StatusWritten"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who reports on what. `source_ref` and `source_path` name the Fleet file in Git."""

    version: str
    fleet_id: str
    cluster_uid: str
    source_ref: str
    source_path: str
    namespace: str = "stoker-system"
    """Where the Fleet mirror stands: the controller's own namespace."""
    fleet_name: str = ""
    """Name to report under while no Fleet file could be read."""


@dataclass(frozen=True, slots=True)
class StatusWritten:
    """How the status branch stands: the last push that worked and what is wrong since.

    `code` is empty while pushes work. `commit` is empty before the first one.
    """

    branch: str = ""
    commit: str = ""
    pushed_at_ms: int | None = None
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """A revision that change windows keep from being applied, until when (None: not foreseen)."""

    revision: SourceRevision
    windows: tuple[str, ...] = ()
    until_ms: int | None = None

    @property
    def message(self) -> str:
        """`9be0a17 is applied from 2026-11-30T08:00:00Z on (change windows: office)`."""
        when = f"from {rfc3339(self.until_ms)} on" if self.until_ms is not None else "later"
        return (
            f"{self.revision.short} is applied {when} (change windows: {', '.join(self.windows)})"
        )


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """Everything one pass found out. None means that the pass did not get that far.

    `desired` is the last good one; `attempted` the revision this pass looked at, when it
    is another. `failure` is the error that ended source or the pass. `outcome` is None in
    mode Observe and in previews. `scope` names the units this pass looked at (None =
    all); the others are reported as they were. `findings` are those of shape, render and
    check that no unit's changes carry; `warnings` concern the controller itself (a
    missing CRD, a jail with holes). `health` are the health files in force.
    """

    identity: Identity
    now_ms: int
    desired: Desired | None = None
    attempted: SourceRevision | None = None
    failure: Finding | None = None
    pending: Pending | None = None
    handled: str = ""
    """The request for a pass that this one answered, as it stands on the Fleet's mirror."""
    snapshot: Snapshot | None = None
    plan: Plan | None = None
    changes: ChangeSet | None = None
    outcome: PassOutcome | None = None
    live: LiveView | None = None
    health: HealthRules | None = None
    secrets: KnownSecrets = field(default_factory=KnownSecrets)
    """Values that are told nowhere; conditions of live objects may cite them."""
    previous: PreviousStatus = field(default_factory=PreviousStatus)
    scope: Collection[UnitRef] | None = None
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    written: StatusWritten = field(default_factory=StatusWritten)


class EventType(StrEnum):
    """Kubernetes' two types of events."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """A condition that changed in this pass; none when nothing changed (cases.md row 99)."""

    unit: str
    type: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a pass, in every form it is shown in.

    `conditions` are the fleet's, with StatusWritten, which the documents leave out.
    `documents` are status.yaml and one file a unit, sorted by unit. `complete` says that
    these and `mirrors` are all there should be: only then may others be removed. `substance` changes only with a revision,
    condition, placement or count. `urgent` says that the fleet's Ready or Stalled, or a
    unit's Stalled changed. `memory` is `previous` of the next pass.
    """

    conditions: tuple[Condition, ...]
    documents: tuple[Document, ...]
    complete: bool
    substance: str
    urgent: bool
    mirrors: tuple[Mirror, ...]
    events: tuple[Event, ...]
    memory: PreviousStatus
    wake_at_ms: int | None = None
    """When a unit's timeout is over."""
