"""What `stoker status` shows: a report made now from the cluster, or the status branch's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from stoker.cli.session import Session, Target, local_repo, only_fleet
from stoker.clock import SystemClock
from stoker.errors import Stalled, StokerError
from stoker.git import LocalRepo, open_local
from stoker.kube.errors import NotFound
from stoker.model.fleet import Blob, Desired
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef, UnitRef
from stoker.model.times import to_milliseconds
from stoker.objects.health_fields import items
from stoker.objects.selectors import Selector
from stoker.reconcile import Reach, State, reconcile, reported
from stoker.report import StatusReader, StatusView, previous_from_files, view_documents

__all__ = ["branch_files", "find_view", "is_ready", "only_namespace"]

_STATUS = "status.yaml"


def find_view(
    path: Path,
    target: Target,
    *,
    git_only: bool,
    show_all: bool,
    verify: bool = False,
    selector: Selector | None = None,
) -> StatusView:
    """The newest that can be had; raises Stalled when neither cluster nor branch answers.

    With `verify` the API server is asked by dry run about what differs, so that a refusal
    shows as one. With a selector only units that render an object with such labels, for
    which the cluster must be there: the branch knows no labels.
    """
    with Session(local_repo(path), target) as session:
        at = session.repo.fetch()
        fleet_path = only_fleet(session.repo, at, target.fleet_path)
        session.target = replace(target, fleet_path=fleet_path)
        desired = session.desired(at)
        files, origin = branch_files(path, desired.fleet.status_branch)
        why = ""
        if not git_only:
            try:
                return _from_cluster(
                    session, desired, files, show_all=show_all, verify=verify, selector=selector
                )
            except StokerError as error:
                why = error.message
    if selector is not None:
        raise Stalled(
            f"labels can only be asked of the cluster{': ' + why if why else ''}",
            code="no-status",
            hint="leave out -l, or --git",
        )
    if not files:
        raise Stalled(
            f"no status to show: {why + '; and ' if why else ''}"
            f"no branch {desired.fleet.status_branch} here",
            code="no-status",
            hint="git fetch origin, or name a cluster with --kubeconfig",
        )
    origin += f" ({why})" if why else ""
    return _from_branch(files, origin, show_all=show_all)


def _from_branch(files: Mapping[str, bytes], origin: str, *, show_all: bool) -> StatusView:
    """What the files say; those that cannot be read are named, and are never taken for empty."""
    reader = StatusReader()
    read = {name: reader.read(data) for name, data in sorted(files.items())}
    documents = {name: found.data for name, found in read.items() if found is not None}
    unread = tuple(name for name, found in read.items() if found is None)
    now_ms = SystemClock().now_ms()
    return StatusView(documents, now_ms, origin=origin, show_all=show_all, unread=unread)


def _from_cluster(
    session: Session,
    desired: Desired,
    files: dict[str, bytes],
    *,
    show_all: bool,
    verify: bool,
    selector: Selector | None,
) -> StatusView:
    parts = session.parts(desired)
    parts.verify = verify
    history = parts.history.read_starts()
    state = State(desired=desired, history=history, previous=previous_from_files(files))
    done = reconcile(parts, state, revision=desired.revision, reach=Reach.DIFF)
    if done.failure is not None:
        raise Stalled(done.failure.message, code=done.failure.code, hint=done.failure.hint)
    told = reported(parts, state, done).report
    assert told is not None
    documents = view_documents(told.documents)
    seen_ms = _last_seen(parts.cluster, session.target.namespace, parts.identity.fleet_id)
    if seen_ms is None:
        seen_ms = previous_from_files(files).observed_at_ms
    if seen_ms is None:
        documents[_STATUS] = _without_controller(documents[_STATUS])
    view = StatusView(documents, done.now_ms, origin="cluster", seen_ms=seen_ms, show_all=show_all)
    if selector is None:
        return view
    chosen = {
        found.unit
        for found in done.sets
        if any(
            selector.matches((m.body.get("metadata") or {}).get("labels")) for m in found.manifests
        )
    }
    return _only(view, chosen.__contains__)


def _without_controller(status: Mapping[str, Any]) -> dict[str, Any]:
    """The fleet's document without our own instant, which is no sign of a controller."""
    return {**status, "controller": {**status["controller"], "observedAt": ""}}


def _last_seen(cluster: Cluster, namespace: str, fleet_id: str) -> int | None:
    """When the controller renewed its lease; None when it holds none."""
    ref = ObjectRef("coordination.k8s.io", "Lease", namespace, f"stoker-{fleet_id}")
    try:
        renewed = (cluster.get(ref).get("spec") or {}).get("renewTime")
    except NotFound:
        return None
    return to_milliseconds(str(renewed)) if renewed else None


def branch_files(path: Path, branch: str) -> tuple[dict[str, bytes], str]:
    """Our files of the status branch as this clone knows it, and which commit that is.

    One that is too large to be read comes as empty bytes, which no reader takes for a document.
    """
    for ref in (f"refs/remotes/origin/{branch}", f"refs/heads/{branch}"):
        try:
            repo = open_local(path, ref)
        except StokerError:
            continue
        try:
            at = repo.resolve(ref)
            blobs = [blob for blob in repo.tree(at.commit) if _is_ours(blob.path)]
            found = {blob.path: _content(repo, blob) for blob in blobs}
        except StokerError:
            continue
        finally:
            repo.close()
        return found, f"git {branch}@{at.commit[:7]}"
    return {}, ""


def _is_ours(path: str) -> bool:
    return path == _STATUS or path.startswith("units/")


def _content(repo: LocalRepo, blob: Blob) -> bytes:
    try:
        return repo.read((blob,))[0]
    except Stalled:
        return b""


def only_namespace(view: StatusView, namespace: str) -> StatusView:
    """Only the units of one namespace, and the fleet's own trouble; all when it is empty."""
    if not namespace:
        return view
    return _only(view, lambda unit: unit.namespace == namespace)


def _only(view: StatusView, chosen: Callable[[UnitRef], bool]) -> StatusView:
    """The fleet's own trouble, and of the units the chosen ones."""
    kept: dict[str, Mapping[str, Any]] = {}
    dropped: list[dict[str, Any]] = []
    for path, data in view.documents.items():
        if path == _STATUS or chosen(_unit_of(data)):
            kept[path] = data
        else:
            dropped += items(dict(data), "errors")
    status = dict(kept.get(_STATUS, {}))
    attention = [entry for entry in items(status, "attention") if chosen(_unit_of(entry))]
    errors = [error for error in items(status, "errors") if error not in dropped]
    kept[_STATUS] = {**status, "attention": attention, "errors": errors}
    return replace(view, documents=kept)


def _unit_of(data: Mapping[str, Any]) -> UnitRef:
    kind, _, place = str(data.get("unit", "")).partition("/")
    namespace, _, name = place.partition("/")
    return UnitRef(kind, namespace, name)


def is_ready(view: StatusView) -> bool:
    """Whether the fleet's condition Ready is True."""
    conditions = items(dict(view.documents.get(_STATUS, {})), "conditions")
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
