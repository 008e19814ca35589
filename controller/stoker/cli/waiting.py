"""What `stoker wait` looks at: the mirror of a service or fleet, or a Bundle as it stands.

A goal and a name come in, `Seen` comes out at each look. A revision counts as reached when the
controller says that what it says of the unit stands: mirrors carry the digest of the unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stoker.cli.mirror_asks import Asked, find_fleet, find_mirror
from stoker.cli.session import Session, Target, local_repo, only_fleet, usage
from stoker.cli.status_view import find_view
from stoker.cli.wait_progress import NOTHING, Progress, seen_by
from stoker.errors import StokerError
from stoker.git import open_local
from stoker.kube.errors import NotFound
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.ports import Clock, Cluster
from stoker.objects.health_fields import integer, items, mapping, text

__all__ = ["Goal", "Seen", "Subject", "goal_of", "subject_of"]

CONDITIONS = ("Ready", "Healthy")
DEFAULT_DEADLINE_MS = 1_200_000
"""coldStart.deadline of services whose file is not at hand (the schema's default)."""


@dataclass(frozen=True, slots=True)
class Goal:
    """`word` is Synced, Ready or Healthy; `revision` only with Synced, empty for any."""

    word: str
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. `stalled` says why waiting is of no use, empty while it is."""

    reached: bool
    text: str
    stalled: str = ""
    progress: Progress = NOTHING


@dataclass(frozen=True, slots=True)
class Subject:
    """What is waited for."""

    name: str
    header: str
    look: Callable[[], Seen]


def goal_of(text_: str) -> Goal:
    """Read --for; raises BadInput for anything else."""
    word, equals, revision = text_.partition("=")
    if word == "Synced" and (revision or not equals):
        return Goal(word, revision)
    if word in CONDITIONS and not equals:
        return Goal(word)
    raise usage(f"--for: no {text_!r}", "Synced, Synced=HEAD, Ready or Healthy")


def subject_of(
    cluster: Cluster,
    path: Path,
    target: Target,
    name: str,
    namespace: str,
    goal: Goal,
    clock: Clock,
) -> Subject:
    """Find what a person means: in the repository if there is one, else among the mirrors."""
    if name.startswith("fleet/"):
        return _of_fleet(cluster, path, find_fleet(cluster, name.removeprefix("fleet/")), goal)
    desired = _desired(path, target, goal)
    unit = _unit(desired, name, namespace) if desired is not None else None
    if unit is None or unit.ref.kind == "ModelService":
        place = unit.ref.namespace if unit is not None else namespace
        short = unit.ref.name if unit is not None else name
        asked = find_mirror(cluster, short, place, fleets=False)
        if goal.revision and unit is None:
            raise usage(f"--for: {goal.revision} needs the repository", "--path FOLDER")
        return _of_service(cluster, asked, goal, unit, desired, clock)
    return _of_bundle(path, target, unit, goal)


def _desired(path: Path, target: Target, goal: Goal) -> Desired | None:
    """What the files say at the goal's revision, else here; None where there is no fleet."""
    try:
        with Session(local_repo(path, goal.revision), target) as session:
            at = session.repo.resolve(goal.revision) if goal.revision else session.repo.fetch()
            session.target = Target(fleet_path=only_fleet(session.repo, at, target.fleet_path))
            return session.desired(at)
    except StokerError:
        if goal.revision or target.fleet_path:
            raise
        return None


def _unit(desired: Desired, name: str, namespace: str) -> Unit | None:
    found = [
        unit
        for unit in desired.units
        if unit.ref.is_called(name) and namespace in {"", unit.ref.namespace}
    ]
    if len(found) > 1:
        raise usage(f"{name} is {', '.join(str(u.ref) for u in found)}", "name one of them")
    if not found:
        units = ", ".join(unit.ref.short for unit in desired.units) or "none"
        raise usage(f"the fleet has no unit {name}", f"units: {units}")
    return found[0]


def _of_service(
    cluster: Cluster,
    asked: Asked,
    goal: Goal,
    unit: Unit | None,
    desired: Desired | None,
    clock: Clock,
) -> Subject:
    spec = unit.spec if unit is not None and isinstance(unit.spec, ModelService) else None
    deadline_ms = spec.cold_start_deadline_ms if spec is not None else DEFAULT_DEADLINE_MS
    digest = unit.digest[:12] if unit is not None and goal.revision else ""
    commit = desired.revision.commit if desired is not None and goal.revision else ""

    def look() -> Seen:
        try:
            live = cluster.get(asked.ref)
        except NotFound:
            return Seen(reached=False, text="its mirror is gone", stalled="left Git")
        status = mapping(live, "status")
        ready, wants = (
            integer(status, "readyReplicas", 0),
            mapping(live, "spec").get("replicas", "?"),
        )
        line = f"{ready} Ready, {integer(status, 'warmingReplicas', 0)} warming of {wants}"
        if digest and text(status, "digest") != digest:
            open_ = f"{commit[:7]} is not applied: {_line(status, line)}"
            seen = Seen(reached=False, text=open_)
        else:
            seen = _judged(status, goal, line)
        space = asked.ref.namespace
        progress = seen_by(cluster, space, status, deadline_ms, clock.now_ms())
        return replace(seen, progress=progress)

    return Subject(f"{asked.ref}", f"fleet {asked.fleet}  {asked.ref}", look)


def _of_fleet(cluster: Cluster, path: Path, asked: Asked, goal: Goal) -> Subject:
    commit = ""
    if goal.revision:
        with open_local(path, goal.revision) as repo:
            commit = repo.resolve(goal.revision).commit

    def look() -> Seen:
        status = mapping(cluster.get(asked.ref), "status")
        units = f"{integer(status, 'readyUnits', 0)}/{integer(status, 'units', 0)} units Ready"
        line = f"{text(status, 'revision')} {units}"
        if commit and not text(status, "lastAppliedRevision").endswith(commit):
            return _only_open(_judged(status, goal, line))
        return _judged(status, goal, line)

    return Subject(f"{asked.ref}", f"fleet {asked.fleet}", look)


def _only_open(seen: Seen) -> Seen:
    return Seen(reached=False, text=seen.text, stalled=seen.stalled)


def _of_bundle(path: Path, target: Target, unit: Unit, goal: Goal) -> Subject:
    """A Bundle has no mirror: it is compared with the cluster at each look, as status does."""

    def look() -> Seen:
        view = find_view(path, target, git_only=False, show_all=True, verify=True)
        data: dict[str, Any] = dict(view.documents.get(f"units/{unit.ref.file_name}", {}))
        objects = mapping(data, "objects")
        line = f"{integer(objects, 'synced', 0)}/{integer(objects, 'total', 0)} objects"
        source = text(mapping(data, "source"), "digest")
        if goal.revision and source != unit.digest[:12]:
            return _only_open(_judged(data, goal, line))
        return _judged(data, goal, line)

    return Subject(str(unit.ref), f"{unit.ref}, compared with the cluster", look)


def _judged(status: dict[str, Any], goal: Goal, line: str) -> Seen:
    conditions = {text(c, "type"): c for c in items(status, "conditions")}
    if goal.word == "Synced":
        reached = text(mapping(status, "sync"), "status") == "Synced"
    else:
        reached = text(conditions.get(goal.word, {}), "status") == "True"
    stalled = conditions.get("Stalled", {})
    why = ""
    if not reached and text(stalled, "status") == "True":
        why = f"Stalled {text(stalled, 'reason')}: {text(stalled, 'message')}"
    return Seen(reached=reached, text=_line(status, line), stalled=why)


def _line(status: dict[str, Any], line: str) -> str:
    """`OutOfSync Progressing, 2 Ready, 1 warming of 3, WaitingForDependency: waits for …`."""
    words = [text(mapping(status, part), "status", "?") for part in ("sync", "health")]
    conditions = {text(c, "type"): c for c in items(status, "conditions")}
    ready = conditions.get("Ready", {})
    why = ""
    if text(ready, "status") != "True" and text(ready, "reason"):
        why = f", {text(ready, 'reason')}: {text(ready, 'message')}".rstrip(": ")
    return f"{' '.join(words)}, {line}{why}"
