"""What a pass works with, what it leaves for the next, and what it found: data only.

Made once per process by the command line; used by reconcile and by everybody who calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from stoker.apply import HistoryStore, InventoryStore
from stoker.check import CheckMemo
from stoker.diff import Audit, DiffMemo
from stoker.errors import Finding
from stoker.holding import Holding
from stoker.model.change import ChangeSet
from stoker.model.fleet import Desired
from stoker.model.history import History
from stoker.model.live import LiveView
from stoker.model.manifest import ManifestSet
from stoker.model.outcome import PassOutcome
from stoker.model.plan import Plan
from stoker.model.ports import Clock, Cluster, Repo
from stoker.model.refs import SourceRevision, UnitRef
from stoker.model.shape import UnitShape
from stoker.model.snapshot import Snapshot
from stoker.narrow import Looked
from stoker.observe import Observer
from stoker.render import Renderer
from stoker.report import Identity, Pending, PreviousStatus, Report, StatusWritten
from stoker.source import SourceMemo

__all__ = ["Parts", "Pass", "Reach", "State"]


class Reach(IntEnum):
    """How far a pass goes."""

    PLAN = 1
    """Decisions and manifests (`plan`, `render`, `explain`)."""
    DIFF = 2
    """Up to the differences; nothing is written (`diff`)."""
    APPLY = 3
    """All of it."""


@dataclass(slots=True)
class Parts:
    """Everything a pass works with; made once per process by the command line."""

    cluster: Cluster
    repo: Repo
    clock: Clock
    observer: Observer
    renderer: Renderer
    store: InventoryStore
    history: HistoryStore
    identity: Identity
    source_memo: SourceMemo = field(default_factory=SourceMemo)
    check_memo: CheckMemo = field(default_factory=CheckMemo)
    diff_memo: DiffMemo = field(default_factory=DiffMemo)
    verify: bool = False
    """Ask the API server by dry run what creates and changes come to (`stoker diff`)."""
    audit: Audit | None = None
    """Which Synced objects are dry-run all the same; None outside the long-running controller."""
    checkpoint: Callable[[], None] = lambda: None
    prepare: Callable[[], None] = lambda: None
    """Makes what our own state needs in the cluster, once that is known to be the right one."""
    written: Callable[[], StatusWritten] = StatusWritten
    warnings: Callable[[], tuple[Finding, ...]] = tuple


@dataclass(slots=True)
class State:
    """What one pass leaves for the next; only the reconciler thread touches it."""

    desired: Desired | None = None
    history: History = field(default_factory=History)
    previous: PreviousStatus = field(default_factory=PreviousStatus)
    holding: Holding = field(default_factory=Holding)
    looked: Looked | None = None
    """What the last pass looked at, when it ended well; None: the next one looks at all."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass found. Fields after an early stop are None; `failure` says why it stopped.

    A `failure` of source alone stops nothing: the last good revision is worked on.
    """

    now_ms: int
    attempted: SourceRevision | None = None
    desired: Desired | None = None
    pending: Pending | None = None
    """A newer revision that the change windows keep from being applied."""
    ungated: Desired | None = None
    """Desired before units that wait were put back to what they were."""
    wake_at_ms: int | None = None
    """When what is held may go on; the plan's and the outcome's instants stand beside."""
    snapshot: Snapshot | None = None
    live: LiveView | None = None
    """As it stands after the pass: what was written is judged as it was answered."""
    shapes: tuple[UnitShape, ...] = ()
    findings: tuple[Finding, ...] = ()
    only: frozenset[UnitRef] | None = None
    """The units that were compared and are reported on; None: all. Others are at rest."""
    looked: Looked | None = None
    """What the pass before had looked at, until the end of this one."""
    plan: Plan | None = None
    sets: tuple[ManifestSet, ...] = ()
    changes: ChangeSet | None = None
    outcome: PassOutcome | None = None
    failure: Finding | None = None
    report: Report | None = None
