"""What `diff` and `plan` compare: files with the cluster, or two revisions under one snapshot.

One path for both commands: they differ only in what they print of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from stoker.cli.base_view import BaseView
from stoker.cli.exits import is_wrong_use
from stoker.cli.field_lines import FieldLine, field_lines
from stoker.cli.field_lines import State as RepoState
from stoker.cli.notes import notes_of
from stoker.cli.offline import Offline, offline
from stoker.cli.print_plan import duration
from stoker.cli.recorded import read_recorded, read_recorded_starts
from stoker.cli.session import (
    ClosableRepo,
    Session,
    Target,
    find_fleets,
    fleet_header,
    local_repo,
    only_fleet,
)
from stoker.clock import SystemClock
from stoker.decide.hold_back import hold_back
from stoker.diff import DiffMemo, diff
from stoker.errors import BadInput, Finding, Stalled, StokerError
from stoker.model.change import ChangeSet
from stoker.model.fleet import Desired
from stoker.model.history import History
from stoker.model.live import LiveView
from stoker.model.plan import Plan
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, SourceRevision, UnitRef
from stoker.model.shape import UnitShape
from stoker.model.snapshot import Snapshot
from stoker.model.times import rfc3339
from stoker.objects import names
from stoker.objects.inventory import Inventory
from stoker.reconcile import Parts, Pass, Reach, State, reconcile

__all__ = ["Compared", "Query", "compare"]


Heads: TypeAlias = Mapping[UnitRef, tuple[FieldLine, ...]]


@dataclass(frozen=True, slots=True)
class Query:
    """What to compare. Empty `base` means the cluster itself; empty `head` the files as they are."""

    path: Path
    target: Target
    base: str = ""
    head: str = ""
    snapshot: str = ""
    all_fleets: bool = False
    reach: Reach = Reach.DIFF
    verify: bool = False
    """Ask the API server by dry run about every create and change."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One fleet's answer. `header` is the narration line; `findings` do not stop the answer."""

    header: str
    desired: Desired
    snapshot: Snapshot
    plan: Plan
    shapes: tuple[UnitShape, ...]
    changes: ChangeSet | None
    live: LiveView
    fleet_id: str
    findings: tuple[Finding, ...]
    fleet_path: str = ""
    heads: Heads = field(default_factory=dict)
    """Fields of the units' files that differ from the base, or from what was applied last."""
    notes: tuple[str, ...] = ()
    """What holds the change up: suspensions, change windows, dependencies, overrides."""


def compare(query: Query) -> Iterator[Compared]:
    """One answer a fleet, in order of their paths; raises the error tree."""
    with _repo(query.path, query.head) as repo:
        at = repo.resolve(query.head) if query.head else repo.fetch()
        wanted = query.target.fleet_path
        paths = (
            find_fleets(repo, at, wanted) if query.all_fleets else (only_fleet(repo, at, wanted),)
        )
    for fleet_path in paths:
        target = replace(query.target, fleet_path=fleet_path)
        if query.base or query.snapshot:
            yield _revisions(query, target)
        else:
            yield _cluster(query, target)


@contextmanager
def _repo(path: Path, revision: str) -> Iterator[ClosableRepo]:
    repo = local_repo(path, revision)
    try:
        yield repo
    finally:
        repo.close()


def _cluster(query: Query, target: Target) -> Compared:
    """The files against what stands."""
    with Session(local_repo(query.path, query.head), target) as session:
        at = session.repo.resolve(query.head) if query.head else session.repo.fetch()
        desired = session.desired(at)
        parts = session.parts(desired)
        parts.verify = query.verify
        state = State(history=parts.history.read_starts())
        done = reconcile(parts, state, revision=at, reach=query.reach)
        if done.failure is not None:
            raise (
                BadInput((done.failure,), code=done.failure.code)
                if is_wrong_use(done.failure.code)
                else Stalled(done.failure.message, code=done.failure.code, hint=done.failure.hint)
            )
        assert done.snapshot is not None
        assert done.plan is not None
        assert done.live is not None
        findings = {*desired.findings, *done.findings, *(f for s in done.sets for f in s.findings)}
        return Compared(
            header=f"{fleet_header(desired, target)}  head {_head(query, at.commit)}  "
            f"live {rfc3339(done.snapshot.taken_at_ms)[11:]}",
            desired=done.desired or desired,
            snapshot=done.snapshot,
            plan=done.plan,
            shapes=done.shapes,
            changes=done.changes,
            live=done.live,
            fleet_id=parts.identity.fleet_id,
            findings=tuple(sorted(findings)),
            fleet_path=target.fleet_path,
            heads=_heads_since_applied(query, session, parts, desired, done),
            notes=notes_of(done.desired or desired, done.snapshot, done.now_ms),
        )


def _head(query: Query, commit: str) -> str:
    return commit[:7] if query.head else "files here"


def _revisions(query: Query, target: Target) -> Compared:
    """Two revisions under one snapshot: a recorded one, or the cluster's as it is now."""
    snapshot, cluster, history = _snapshot(query, target)
    now_ms = snapshot.taken_at_ms
    seen_by = (target, snapshot, history, now_ms)
    before = _offline(query.path, query.base or "HEAD", *seen_by)
    after = _offline(query.path, query.head, *seen_by)
    live = BaseView(before.sets, after.fleet_id)
    changes = diff(
        after.desired,
        after.sets,
        live,
        _inventory_of(before),
        cluster,
        after.fleet_id,
        DiffMemo(),
        plan=after.plan,
    )
    changes = hold_back(changes, after.desired, {})
    head, seen = fleet_header(after.desired, target), f"live {rfc3339(now_ms)[11:]}"
    if query.snapshot:
        old = duration(max(0, SystemClock().now_ms() - now_ms))
        head = f"fleet {after.desired.fleet.name}"
        seen = f"snapshot {rfc3339(now_ms)}, {old} old"
    return Compared(
        header=f"{head}  base {before.desired.revision.short}  "
        f"head {_head(query, after.desired.revision.commit)}  {seen}",
        desired=after.desired,
        snapshot=snapshot,
        plan=after.plan,
        shapes=after.shapes,
        changes=changes,
        live=live,
        fleet_id=after.fleet_id,
        findings=after.findings,
        fleet_path=target.fleet_path,
        heads=_heads_since_base(query, before, after, changes),
        notes=notes_of(after.desired, snapshot, SystemClock().now_ms()),
    )


def _heads_since_base(query: Query, before: Offline, after: Offline, changes: ChangeSet) -> Heads:
    with _repo(query.path, query.base or "HEAD") as old, _repo(query.path, query.head) as new:
        was = RepoState(old, before.desired.revision, before.desired)
        now = RepoState(new, _at(new, query.head), after.desired)
        return field_lines(was, now, after.desired, changes, after.plan)


def _heads_since_applied(
    query: Query, session: Session, parts: Parts, desired: Desired, done: Pass
) -> Heads:
    """Against the revision that the Fleet's mirror names; nothing where there is none."""
    identity = parts.identity
    ref = ObjectRef(names.GROUP, "Fleet", identity.namespace, desired.fleet.name, names.VERSION)
    try:
        status = parts.cluster.get(ref).get("status") or {}
        applied = str(status.get("lastAppliedRevision", "")).rpartition(":")[2]
        if done.changes is None or done.plan is None or not applied:
            return {}
        with _repo(query.path, applied) as old:
            was = RepoState(old, old.resolve(applied))
            now = RepoState(session.repo, desired.revision, desired)
            return field_lines(was, now, desired, done.changes, done.plan)
    except StokerError:
        return {}


def _at(repo: ClosableRepo, revision: str) -> SourceRevision:
    return repo.resolve(revision) if revision else repo.fetch()


def _offline(
    path: Path, revision: str, target: Target, snapshot: Snapshot, history: History, now_ms: int
) -> Offline:
    with _repo(path, revision) as repo:
        at = _at(repo, revision)
        return offline(
            repo, at, target.fleet_path, snapshot=snapshot, now_ms=now_ms, history=history
        )


def _inventory_of(before: Offline) -> Inventory:
    return Inventory(before.fleet_id, before.desired.fleet.name).union(
        (found.unit, manifest.ref, "") for found in before.sets for manifest in found.manifests
    )


def _snapshot(query: Query, target: Target) -> tuple[Snapshot, Cluster, History]:
    """The snapshot to decide by, whom to ask for the rest (with a recorded one, nobody), and
    what is learned of starts.
    """
    if query.snapshot:
        from stoker.kube.client import Client
        from stoker.kube.memory import MemoryServer

        empty = Client(MemoryServer(SystemClock()), user_agent="offline")
        learned = History(starts=read_recorded_starts(query.snapshot, query.path).starts)
        return read_recorded(query.snapshot, query.path), empty, learned
    with Session(local_repo(query.path, query.head), target) as session:
        at = session.repo.resolve(query.head) if query.head else session.repo.fetch()
        desired = session.desired(at)
        parts = session.parts(desired)
        history = parts.history.read_starts()
        done = reconcile(parts, State(history=history), revision=at, reach=Reach.PLAN)
        if done.snapshot is None:
            failure = done.failure
            assert failure is not None
            raise Stalled(failure.message, code=failure.code, hint=failure.hint)
        return done.snapshot, parts.cluster, history
