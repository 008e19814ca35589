"""Jobs that vanish when they are done: what is remembered of them, and when it counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import a_ref
from stoker.decide.jobs import asks_for_jobs, jobs_after, without_done
from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.manifest import Manifest
from stoker.model.outcome import ObjectOutcome, PassOutcome, Result, UnitOutcome
from stoker.model.refs import ObjectRef

WORK = a_ref("work", kind="Bundle")
REF = ObjectRef("batch", "Job", "llm", "once")
DIGEST = "d" * 64


def changes(action: Action = Action.CREATE, *, ttl: int | None = 0, digest: str = DIGEST):
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    manifest = Manifest(REF, {"kind": "Job", "spec": spec}, digest)
    return ChangeSet((UnitChanges(WORK, (Change(REF, action, manifest, {"kind": "Job"}),)),))


def after(result: Result, known=None, sent=None):
    outcome = PassOutcome((UnitOutcome(WORK, (ObjectOutcome(REF, result),)),))
    return jobs_after(sent or changes(), outcome, known or {})


def actions(found: ChangeSet) -> list[str]:
    return [str(change.action) for unit in found.units for change in unit.changes]


@pytest.mark.parametrize("result", [Result.CREATED, Result.CHANGED, Result.UNCHANGED])
def test_what_stood_is_done_when_it_is_gone(result):
    known = after(result)

    assert ["unchanged"] == actions(without_done(changes(), known))


@pytest.mark.parametrize("result", [Result.FAILED, Result.WAITING, Result.UNKNOWN, Result.SKIPPED])
def test_what_never_stood_is_made(result):
    assert ["create"] == actions(without_done(changes(), after(result)))


def test_other_kinds_and_other_actions_are_not_touched():
    known = after(Result.CREATED)
    manifest = Manifest(REF, {"kind": "Job", "spec": {"ttlSecondsAfterFinished": 0}}, DIGEST)
    config = ObjectRef("", "ConfigMap", "llm", "once")
    mixed = (
        Change(config, Action.CREATE, replace(manifest, ref=config), {}),
        Change(REF, Action.CHANGE, manifest, {}),
        Change(REF, Action.DELETE),
    )
    sent = ChangeSet((UnitChanges(WORK, mixed),))

    assert sent == without_done(sent, known)
    assert sent == without_done(sent, {})


def test_another_manifest_is_made():
    known = after(Result.CREATED)

    assert ["create"] == actions(without_done(changes(digest="e" * 64), known))


def test_a_job_that_stays_when_it_is_done_is_none_of_this():
    """Whoever deletes such a Job wants it to run again."""
    sent = changes(ttl=None)

    assert {} == after(Result.CREATED, sent=sent)
    assert not asks_for_jobs(sent)
    assert asks_for_jobs(changes())


def test_what_is_held_or_could_not_be_rendered_is_not_forgotten():
    known = after(Result.CREATED)
    failed = ChangeSet((UnitChanges(WORK, complete=False),))

    assert known == after(Result.WAITING, known)
    assert known == after(Result.SKIPPED, known, failed)


def test_a_unit_that_left_is_forgotten():
    known = after(Result.CREATED)

    assert {} == jobs_after(ChangeSet(), PassOutcome(), known)
    assert {} == jobs_after(replace(changes(), units=(UnitChanges(WORK),)), PassOutcome(), known)
