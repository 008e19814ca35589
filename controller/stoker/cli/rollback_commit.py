"""What `stoker rollback` commits: one file back to what it was, checked before a branch is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from stoker.cli.session import only_fleet, usage
from stoker.clock import SystemClock
from stoker.errors import BadInput, Severity, Stalled
from stoker.git import LocalRepo, open_local
from stoker.git.branching import Author, commit_beside, new_branch
from stoker.git.commit import AUTHOR
from stoker.git.identity import identity_of
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.refs import SourceRevision, UnitRef
from stoker.source import SourceMemo, source

__all__ = ["Asked", "Made", "roll_back"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person typed."""

    name: str
    to: str
    base: str
    branch: str
    path: Path
    fleet: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """The commit and its branch; `notes` say what is not as it was all the same."""

    unit: UnitRef
    file: str
    to: str
    base: str
    branch: str
    commit: str
    notes: tuple[str, ...] = ()


def roll_back(asked: Asked, environ: Mapping[str, str]) -> Made:
    """Make the commit, look at what it comes to, then make the branch.

    Raises Stalled where the clone, a revision, the service or the branch's name is not to be
    had, and BadInput where the file would be wrong today.
    """
    with open_local(asked.path, asked.base) as repo:
        base, to = repo.resolve(asked.base), repo.resolve(asked.to)
        fleet = only_fleet(repo, base, asked.fleet)
        now, then = source(repo, fleet, SourceMemo(), revision=base), _past(repo, fleet, to)
        unit = _unit(now, asked)
        old = then.unit(unit.ref)
        if old is None or not isinstance(old.spec, ModelService):
            raise usage(f"{unit.ref.short} was not in {fleet} at {to.commit[:7]}")
        _refuse_shared(now, then, unit, old)
        content = _file(repo, to, old.location.path)
        if content == _file(repo, base, unit.location.path):
            raise usage(
                f"{unit.location.path} is the same at {base.commit[:7]} and {to.commit[:7]}",
                "what differs came with the Fleet file or a template",
            )
        message = _message(unit.ref, to.commit, unit.location.path)
        author = _author(asked.path, environ)
        files = {unit.location.path: content}
        commit = commit_beside(asked.path, base.commit, files, message, author)
        made = source(repo, fleet, SourceMemo(), revision=SourceRevision(base.ref, commit))
    _refuse_wrong(made, unit.ref)
    branch = asked.branch or f"rollback/{unit.ref.name}-{to.commit[:7]}"
    new_branch(asked.path, branch, commit)
    notes = _notes(made.unit(unit.ref), old)
    return Made(unit.ref, unit.location.path, to.commit, base.commit, branch, commit, notes)


def _past(repo: LocalRepo, fleet: str, at: SourceRevision) -> Desired:
    return source(repo, fleet, SourceMemo(), revision=at)


def _unit(desired: Desired, asked: Asked) -> Unit:
    found = [
        unit
        for unit in desired.units
        if isinstance(unit.spec, ModelService)
        and asked.namespace in {"", unit.ref.namespace}
        and unit.ref.is_called(asked.name)
    ]
    if len(found) == 1:
        return found[0]
    known = ", ".join(u.ref.short for u in desired.units if isinstance(u.spec, ModelService))
    if found:
        raise usage(f"{asked.name!r} names several services", "say NAMESPACE/NAME")
    raise usage(f"no service {asked.name!r}", f"services: {known or 'none'}")


def _refuse_shared(now: Desired, then: Desired, unit: Unit, old: Unit) -> None:
    """Other units of the same file would go back too."""
    beside = {u.ref: u.digest for u in now.units if u.location.path == unit.location.path}
    before = {u.ref: u.digest for u in then.units if u.location.path == old.location.path}
    beside.pop(unit.ref, None)
    before.pop(unit.ref, None)
    if beside != before:
        others = ", ".join(ref.short for ref in sorted(beside.keys() | before.keys()))
        raise Stalled(
            f"{unit.location.path} also holds {others}, which would go back too",
            code="rollback-shared-file",
            hint="put each unit into a file of its own, or edit by hand",
        )


def _file(repo: LocalRepo, at: SourceRevision, path: str) -> bytes:
    blob = next(blob for blob in repo.tree(at.commit) if blob.path == path)
    return repo.read((blob,))[0]


def _message(ref: UnitRef, to: str, file: str) -> str:
    return f"Roll {ref.short} back to {to[:7]}\n\n{file} as it was at {to}.\n"


def _author(clone: Path, environ: Mapping[str, str]) -> Author:
    name, email = identity_of(clone, environ)
    if not name or not email:
        name, _, email = AUTHOR.rstrip(">").partition(" <")
    return Author(name, email, SystemClock().now_ms() // 1_000)


def _refuse_wrong(made: Desired, ref: UnitRef) -> None:
    wrong = [
        finding
        for finding in made.findings
        if finding.unit == str(ref) and finding.severity is Severity.ERROR
    ]
    if wrong or made.unit(ref) is None:
        raise BadInput(tuple(wrong) or made.findings, code="bad-input")


def _notes(made: Unit | None, old: Unit) -> tuple[str, ...]:
    """Fields that defaults, patches or the code give another value today."""
    if made is None or not isinstance(made.spec, ModelService):
        return ()
    assert isinstance(old.spec, ModelService)
    names = [
        each.name
        for each in fields(ModelService)
        if getattr(made.spec, each.name) != getattr(old.spec, each.name)
    ]
    if not names:
        return ()
    return (f"not as it was, for the Fleet's defaults or patches changed: {', '.join(names)}",)
