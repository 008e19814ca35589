"""Order and waiting: what files and people say about when a unit may be written.

`Flow` and `ChangeWindow` come from the fleet files, `Suspension` and the overrides from
annotations on mirrors, `Standing` from the last report; `Held` is what decide makes of them.
All instants and durations are integer milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stoker.model.limits import WhenFull
from stoker.model.refs import UnitRef

__all__ = [
    "ChangeWindow",
    "Flow",
    "Held",
    "HeldBy",
    "Override",
    "Standing",
    "Suspension",
    "UnreadOverride",
    "WhenFullOverride",
    "WindowKind",
]


@dataclass(frozen=True, slots=True)
class Flow:
    """What every unit may say about order. `depends_on` is sorted, each unit once.

    `ready` has, sorted, what must hold of them: unit and CEL expression, or unit and an empty
    text for Healthy. A unit that it does not name must be Healthy.
    `timeout_ms` is how long it may take from apply to Healthy, None for as long as the
    deadlines of its objects allow. `retry_ms` is the wait before what failed is sent again,
    None for the growing default.
    """

    suspend: bool = False
    depends_on: tuple[UnitRef, ...] = ()
    timeout_ms: int | None = None
    retry_ms: int | None = None
    ready: tuple[tuple[UnitRef, str], ...] = ()

    def asks_of(self, ref: UnitRef) -> tuple[str, ...]:
        """What must hold of one dependency: expressions, an empty one for Healthy."""
        return tuple(text for named, text in self.ready if named == ref) or ("",)

    @property
    def asked_by_expression(self) -> frozenset[UnitRef]:
        """The dependencies of whose objects an expression asks."""
        return frozenset(ref for ref, text in self.ready if text)


class WindowKind(StrEnum):
    """Whether new revisions are applied during the window, or are not."""

    ALLOW = "Allow"
    DENY = "Deny"


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """A time that recurs: it opens whenever `schedule` (cron, five fields) says so."""

    name: str
    kind: WindowKind
    schedule: str
    duration_ms: int
    time_zone: str = "UTC"


class HeldBy(StrEnum):
    """Why nothing new of a unit is written; the words of conditions and holds."""

    SUSPENDED = "Suspended"
    DEPENDENCY = "WaitingForDependency"
    WINDOW = "ChangeWindowClosed"
    FAILED = "UpdateFailed"
    """Its new rev failed: what served before is worked on until Git has another one."""


@dataclass(frozen=True, slots=True)
class Held:
    """One unit that is held. `until_ms` is when it ends by itself, None for an event.

    `whole`: nothing of the unit is written. Otherwise the revision that it had before is
    still worked on, and only the new one waits.
    """

    unit: UnitRef
    by: HeldBy
    message: str
    since_ms: int | None = None
    until_ms: int | None = None
    whole: bool = True

    @property
    def code(self) -> str:
        """The published reason code of what is held back."""
        return _CODES[self.by]


_CODES = {
    HeldBy.SUSPENDED: "suspended",
    HeldBy.DEPENDENCY: "waiting-for-dependency",
    HeldBy.WINDOW: "change-window-closed",
    HeldBy.FAILED: "update-failed",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """How a unit stood at the last report. `digest` is the first part of what stands of it.

    `applied` is the commit that brought it; `depends_on` outlives the unit's file.
    """

    ref: UnitRef
    digest: str = ""
    synced: bool = False
    healthy: bool = False
    suspended: bool = False
    applied: str = ""
    why: str = ""
    """What is missing for Synced and Healthy, for people."""
    depends_on: tuple[UnitRef, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class Suspension:
    """A live suspension, outside Git. Kind Fleet suspends every unit of the fleet.

    `until_ms` is None for one that lasts until `stoker resume`.
    """

    ref: UnitRef
    reason: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    by_hand: bool = True
    """False where nobody asked, but whether somebody did could not be read."""

    def holds(self, now_ms: int) -> bool:
        """Whether it has not lapsed."""
        return self.until_ms is None or now_ms < self.until_ms


@dataclass(frozen=True, slots=True, order=True)
class Override:
    """A live count of replicas, outside Git, that lapses at `until_ms`."""

    ref: UnitRef
    replicas: int
    until_ms: int
    reason: str = ""
    since_ms: int | None = None

    def holds(self, now_ms: int) -> bool:
        """Whether it has not lapsed."""
        return now_ms < self.until_ms


@dataclass(frozen=True, slots=True, order=True)
class UnreadOverride:
    """An override that somebody asked for and nobody can read: which count, is unknown.

    `text` is what stands there: one printable line, cut. `of_when_full`: it asks what happens
    to a replica that fits nowhere, and not for a count.
    """

    ref: UnitRef
    text: str
    of_when_full: bool = False


@dataclass(frozen=True, slots=True, order=True)
class WhenFullOverride:
    """What happens meanwhile to a replica that fits nowhere, outside Git, until `until_ms`."""

    ref: UnitRef
    when_full: WhenFull
    until_ms: int
    reason: str = ""
    since_ms: int | None = None

    def holds(self, now_ms: int) -> bool:
        """Whether it has not lapsed."""
        return now_ms < self.until_ms
