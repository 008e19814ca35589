"""Everything report says about one unit, as data. Made by unit_state, laid out by units."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from stoker.model.outcome import Condition, Health, Sync
from stoker.model.refs import UnitRef
from stoker.model.workload import node_names
from stoker.report.conditions import Reason

__all__ = [
    "Attempt",
    "Cause",
    "ErrorLine",
    "HoldLine",
    "NodeLine",
    "ObjectLine",
    "PlacementLine",
    "PrefetchLine",
    "ReplicaCounts",
    "RetirementLine",
    "ServiceReport",
    "UnitReport",
]


@dataclass(frozen=True, slots=True)
class ReplicaCounts:
    """Replicas of a service. `desired` is None when the wanted count is unknown.

    `ready` leaves surge copies out; `warming` are on their way.
    """

    desired: int | None
    ready: int
    warming: int
    floor: int = 0
    stuck: int = 0
    pods_each: int = 1
    """Pods of one replica; above 1 replicas are groups."""

    def told(self) -> str:
        """`2/2`, or `2/2 groups (8 pods)`."""
        want = "?" if self.desired is None else str(self.desired)
        if self.pods_each == 1:
            return f"{self.ready}/{want}"
        pods = "?" if self.desired is None else str(self.desired * self.pods_each)
        return f"{self.ready}/{want} groups ({pods} pods)"


@dataclass(frozen=True, slots=True)
class PlacementLine:
    """Replicas of one rev on one node; `node` is empty in mode Scheduler, `n1+n2` of a group.

    `ready_in` is how many seconds the start was expected to take when it was decided, None
    where nothing was estimated and once all are Ready.
    """

    name: str
    node: str
    pool: str
    rev: str
    replicas: int
    ready: int = 0
    warming: int = 0
    ready_in: int | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Its nodes one by one."""
        return node_names(self.node)


@dataclass(frozen=True, slots=True)
class RetirementLine:
    """A Deployment that leaves, and what happens to it next."""

    name: str
    stage: str
    reason: str
    keep: int = 0


@dataclass(frozen=True, slots=True)
class PrefetchLine:
    """A node to which image and weights are fetched ahead: Running, Done, Failed, or Wanted."""

    node: str
    state: str


@dataclass(frozen=True, slots=True)
class HoldLine:
    """Something wanted that does not happen now; `new_node` is what one would take, if it may be
    asked for.
    """

    reason: str
    message: str
    remedy: str = ""
    new_node: str = ""


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A node that was looked at. `ready_in` is seconds, None where nothing is estimated;
    `estimate` says what from: `prior`, or `12 starts`.
    """

    node: str
    pool: str
    verdict: str
    rule: str = ""
    warmth: str = ""
    ready_in: int | None = None
    estimate: str = ""


@dataclass(frozen=True, slots=True)
class ObjectLine:
    """An object that is not as rendered or not well, `object` as `Kind namespace/name`."""

    object: str
    state: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One error with its place in Git; line and column are 0 when unknown."""

    code: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Cause:
    """What happened to a node or replica, when; `at` is RFC 3339 or empty."""

    node: str
    kind: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which revision of a unit is being tried (first 12 digits of its digest), since when."""

    digest: str
    since: str


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """What only a ModelService has. `count_source` is `Git` or the owner by name.

    `count_refused` is an override that is not obeyed, with the reason; `when_full` an override of
    whenFull, obeyed or not, in words.
    """

    counts: ReplicaCounts
    count_source: str = "Git"
    count_detail: str = ""
    count_refused: str = ""
    count_line: int = 0
    model_uri: str = ""
    model_revision: str = ""
    rev: str = ""
    placements: tuple[PlacementLine, ...] = ()
    retirements: tuple[RetirementLine, ...] = ()
    holds: tuple[HoldLine, ...] = ()
    prefetches: tuple[PrefetchLine, ...] = ()
    nodes: tuple[NodeLine, ...] = ()
    rejected: tuple[tuple[str, int], ...] = ()
    cause: Cause | None = None
    when_full: str = ""


@dataclass(frozen=True)
class UnitReport:
    """One unit. `applied_revision` is the commit that brought what stands of it.

    `digest` (first 12 digits) tells whether Git says something else than last time.
    `objects` counts what it renders, `synced` those that stand as rendered. `notes` and
    `errors` are cut at 20, then `truncated` is True. A unit of which there is no news keeps
    its very report from pass to pass, and with it what was read from its conditions once.
    """

    ref: UnitRef
    sync: Sync
    health: Health
    conditions: tuple[Condition, ...] = ()
    digest: str = ""
    path: str = ""
    line: int = 0
    applied_revision: str = ""
    objects: int = 0
    synced: int = 0
    service: ServiceReport | None = None
    notes: tuple[ObjectLine, ...] = ()
    errors: tuple[ErrorLine, ...] = field(default=())
    truncated: bool = False
    depends_on: tuple[str, ...] = ()
    attempt: Attempt | None = None
    """None while the unit is held."""
    due_ms: int | None = None
    """When spec.timeout is over; not written anywhere, made anew in each pass."""

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type."""
        return next((entry for entry in self.conditions if entry.type == kind), None)

    @cached_property
    def ready(self) -> bool:
        """Whether it stands as Git wants it and can serve."""
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    @cached_property
    def retrying(self) -> bool:
        """Whether it is tried again, or waits for something else."""
        condition = self.condition("Reconciling")
        if condition is None or condition.status != "True":
            return False
        return condition.reason == Reason.RETRYING

    @cached_property
    def suspended(self) -> bool:
        """Whether nothing of it is written, because somebody said so."""
        condition = self.condition("Suspended")
        return condition is not None and condition.status == "True"

    @cached_property
    def stalled(self) -> bool:
        """Whether a person must act on it."""
        condition = self.condition("Stalled")
        return condition is not None and condition.status == "True"
