"""What a pass works on and what it holds: change windows, suspensions, dependencies, retries.

The glue between reconcile's state and decide's pure rules. Called by reconcile: `adopt`
after source, `gate` after observe, `settle` between diff and apply, `opens_at` after report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from stoker.decide.gates import (
    NOT_LOOKED_AT,
    Admitted,
    Judge,
    fleet_suspension,
    gates,
    waits_for,
)
from stoker.decide.hold_back import hold_back
from stoker.decide.jobs import asks_for_jobs, jobs_after, without_done
from stoker.decide.moves import earliest
from stoker.decide.retry import Retry, put_off, retries_after
from stoker.decide.windows import opening
from stoker.errors import StokerError
from stoker.log import get_log
from stoker.model.change import Action, ChangeSet, UnitChanges
from stoker.model.expression import Expressions
from stoker.model.fleet import Desired, FleetMode, Unit
from stoker.model.flow import Held, HeldBy, Standing
from stoker.model.live import LiveView
from stoker.model.outcome import PassOutcome
from stoker.model.ports import Repo
from stoker.model.refs import ObjectRef, SourceRevision, UnitRef
from stoker.model.snapshot import Snapshot
from stoker.objects.readiness import readiness
from stoker.report import Pending, PreviousStatus, is_retryable
from stoker.source import SourceMemo, source

__all__ = [
    "Holding",
    "acting",
    "adopt",
    "earliest",
    "gate",
    "judging",
    "learn",
    "opens_at",
    "past_of",
    "pending_of",
    "settle",
]

_log = get_log("holding")

MOST_PAST = 8
"""Older commits kept in memory: after a restart the units that wait mostly share one."""


@dataclass(slots=True)
class Holding:
    """What one pass leaves for the next. `working` is the revision that is worked on.

    `adopted` is its commit, also from an earlier process; empty when it is not known.
    `handled` is the newest request for a pass that was answered.
    """

    working: Desired | None = None
    adopted: str = ""
    admitted: Mapping[UnitRef, Admitted] = field(default_factory=dict)
    retries: Mapping[UnitRef, Retry] = field(default_factory=dict)
    handled: str = ""
    past: dict[str, Desired | None] = field(default_factory=dict)
    """Older commits that were read again for units that wait; None: not to be had."""
    jobs: Mapping[str, str] | None = None
    """Of Jobs that vanish when they are done what last stood; None until it is read."""
    members: Mapping[UnitRef, tuple[ObjectRef, ...]] = field(default_factory=dict)
    """What units came to in the last pass, of whose objects an expression asks."""
    blocked: dict[UnitRef, tuple[str, str]] = field(default_factory=dict)
    """Digest of a unit whose rev, beside it, was found to be blocked."""
    awaited: frozenset[UnitRef] = frozenset()
    """Units whose objects an expression asks about for a unit that waits now."""


def adopt(
    holding: Holding, head: Desired, previous: PreviousStatus, repo: Repo, path: str, now_ms: int
) -> tuple[Desired, Pending | None]:
    """What this pass works on: the newest revision, or the one before while it may not change.

    The windows of the newest revision count, so a commit can open them. What makes Stoker do
    less is obeyed at once: mode Observe, and every `suspend`.
    """
    found = opening(head.fleet.change_windows, now_ms)
    if found.is_open:
        holding.working, holding.adopted = head, head.revision.commit
        return head, None
    old = holding.working or _recovered(holding, head, previous, repo, path)
    if old is not None and _says_the_same(old, head):
        holding.working, holding.adopted = head, head.revision.commit
        return head, None
    pending = Pending(head.revision, found.closed_by, found.until_ms)
    if old is None:
        held = (
            Held(unit.ref, HeldBy.WINDOW, pending.message, None, found.until_ms)
            for unit in head.units
        )
        return replace(head, held=tuple(held), unit_set_known=False), pending
    holding.working, holding.adopted = old, old.revision.commit
    return _with_less(old, head), pending


def pending_of(head: Desired, now_ms: int) -> Pending | None:
    """When a revision would be applied; None while it would be at once."""
    found = opening(head.fleet.change_windows, now_ms)
    return None if found.is_open else Pending(head.revision, found.closed_by, found.until_ms)


def gate(
    holding: Holding,
    desired: Desired,
    snapshot: Snapshot,
    previous: PreviousStatus,
    repo: Repo,
    path: str,
    now_ms: int,
    *,
    waits: bool,
    judge: Judge,
) -> tuple[Desired, int | None]:
    """Desired with `held`, and when a suspension lapses (None: never).

    Without `waits` nothing is asked about dependencies: a preview shows what comes of a
    revision in the end. `judge` is what `judging` gives.
    """
    standings = previous.standings
    for unit in desired.units:
        known = standings.get(unit.ref)
        if (
            waits
            and unit.flow.depends_on
            and unit.ref not in holding.admitted
            and known is not None
        ):
            before = _as_it_stands(holding, unit, known, repo, path)
            if before is not None:
                holding.admitted = {**holding.admitted, unit.ref: before}
    found = gates(desired, snapshot, standings, holding.admitted, now_ms, waits=waits, judge=judge)
    holding.admitted = found.admitted
    waiting = {held.unit for held in found.desired.held if held.by is HeldBy.DEPENDENCY}
    asked = (unit.flow.asked_by_expression for unit in desired.units if unit.ref in waiting)
    holding.awaited = frozenset().union(*asked)
    return found.desired, found.wake_at_ms


def settle(
    holding: Holding,
    changes: ChangeSet,
    desired: Desired,
    snapshot: Snapshot,
    previous: PreviousStatus,
    now_ms: int,
    read_jobs: Callable[[], Mapping[str, str]],
    *,
    only: Collection[UnitRef] | None = None,
) -> ChangeSet:
    """The changes without what is held, what is done, and what waits for its next try.

    With `only` the changes are of these units alone; of others is true what was.
    """
    fleet = fleet_suspension(desired, snapshot, now_ms)
    why = fleet.message if fleet is not None else ""
    kept = hold_back(changes, desired, previous.standings, why)
    if holding.jobs is None and asks_for_jobs(kept):
        holding.jobs = read_jobs()
    kept = without_done(kept, holding.jobs or {})
    asked = frozenset[UnitRef]().union(*(unit.flow.asked_by_expression for unit in desired.units))
    members = {u.unit: _members(u) for u in kept.units if u.unit in asked and u.complete}
    compared = {unit.unit for unit in kept.units}
    carried = {u: refs for u, refs in holding.members.items() if only is not None and u in asked}
    holding.members = {**{u: r for u, r in carried.items() if u not in compared}, **members}
    return put_off(kept, holding.retries, now_ms)


def acting(desired: Desired, snapshot: Snapshot, now_ms: int) -> Desired:
    """Desired as apply is to see it: of a suspended fleet nothing is written, as in Observe."""
    if fleet_suspension(desired, snapshot, now_ms) is None:
        return desired
    return replace(desired, fleet=replace(desired.fleet, mode=FleetMode.OBSERVE))


def learn(
    holding: Holding,
    changes: ChangeSet,
    outcome: PassOutcome,
    desired: Desired,
    now_ms: int,
    read_jobs: Callable[[], Mapping[str, str]],
    *,
    only: Collection[UnitRef] | None = None,
) -> None:
    """Remember what was refused, when it is tried again, and which Jobs were made.

    With `only` the changes are of these units alone, and every unit with a retry is among them.
    """
    known = read_jobs() if holding.jobs is None else holding.jobs
    holding.jobs = jobs_after(changes, outcome, known, only)
    holding.retries = retries_after(
        changes, outcome, desired, holding.retries, now_ms, is_retryable
    )


def opens_at(
    holding: Holding,
    ungated: Desired,
    gated: Desired,
    after: PreviousStatus,
    now_ms: int,
    judge: Judge,
) -> int | None:
    """Now, when what a held unit waits for has come about in this very pass; else None."""
    standings = after.standings
    for held in gated.held:
        unit = ungated.unit(held.unit) if held.by is HeldBy.DEPENDENCY else None
        if unit is not None and not waits_for(unit, ungated, standings, holding.admitted, judge):
            return now_ms
    return None


def judging(holding: Holding, live: LiveView | None, expressions: Expressions) -> Judge:
    """Judges units by expressions about the objects they came to, as they are in `live`.

    After a restart, and where a pass ended before it compared a unit, nothing is known.
    """

    def judge(ref: UnitRef, expression: str) -> str:
        members = holding.members.get(ref)
        if live is None or members is None:
            return NOT_LOOKED_AT
        return readiness(members, live, expression, expressions).message

    return judge


def _members(unit: UnitChanges) -> tuple[ObjectRef, ...]:
    """The objects that a unit comes to, without Secrets (values do not belong into
    expressions) and Jobs that are done and gone.
    """
    return tuple(
        change.ref
        for change in unit.changes
        if change.action not in {Action.DELETE, Action.KEEP}
        and (change.ref.group, change.ref.kind) != ("", "Secret")
        and (change.action is not Action.UNCHANGED or change.live_uid)
    )


def _recovered(
    holding: Holding, head: Desired, previous: PreviousStatus, repo: Repo, path: str
) -> Desired | None:
    """What an earlier process worked on; None when that is not known or not to be had."""
    commit = holding.adopted or previous.last_applied.rpartition(":")[2]
    if not commit:
        return None
    if commit == head.revision.commit:
        return head
    return _desired_at(repo, path, SourceRevision(head.revision.ref, commit))


def _desired_at(repo: Repo, path: str, revision: SourceRevision) -> Desired | None:
    try:
        return source(repo, path, SourceMemo(), revision=revision)
    except StokerError as error:
        _log.warning("revision.lost", commit=revision.commit, code=error.code)
        return None


def _says_the_same(old: Desired, head: Desired) -> bool:
    """Whether nothing that the fleet reads has changed between two commits."""
    return (
        old.units == head.units
        and old.fleet == head.fleet
        and old.templates == head.templates
        and old.broken == head.broken
        and old.unit_set_known == head.unit_set_known
        and old.allow_delete == head.allow_delete
    )


def _with_less(old: Desired, head: Desired) -> Desired:
    """The older revision with everything of the newest that stops things."""
    mode = FleetMode.OBSERVE if head.fleet.mode is FleetMode.OBSERVE else old.fleet.mode
    suspend = old.fleet.suspend or head.fleet.suspend
    stopped = {unit.ref for unit in head.units if unit.flow.suspend}
    units = tuple(
        replace(unit, flow=replace(unit.flow, suspend=True)) if unit.ref in stopped else unit
        for unit in old.units
    )
    return replace(old, fleet=replace(old.fleet, mode=mode, suspend=suspend), units=units)


def past_of(holding: Holding, repo: Repo, path: str, revision: SourceRevision) -> Desired | None:
    """What an older commit wanted, read once; None where it is not to be had."""
    commit = revision.commit
    if commit not in holding.past:
        if len(holding.past) >= MOST_PAST:
            holding.past.clear()
        holding.past[commit] = _desired_at(repo, path, revision)
    return holding.past[commit]


def _as_it_stands(
    holding: Holding, unit: Unit, known: Standing, repo: Repo, path: str
) -> Admitted | None:
    """The unit as an earlier process applied it, from the commit that brought it."""
    if not known.digest or known.digest == unit.digest[:12]:
        return None
    ref, _, commit = known.applied.partition("@sha1:")
    if not commit:
        return None
    old = past_of(holding, repo, path, SourceRevision(ref, commit))
    found = old.unit(unit.ref) if old is not None else None
    if old is None or found is None or found.digest[:12] != known.digest:
        return None
    return Admitted(found, old.templates)
