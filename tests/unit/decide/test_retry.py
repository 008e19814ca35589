"""What was refused is sent again in the unit's own time, and at once when something changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import NOW_MS, a_desired, a_ref, a_unit
from stoker.decide.retry import FIRST_MS, LONGEST_MS, next_retry_ms, put_off, retries_after
from stoker.model.change import Action, Change, ChangeSet, UnitChanges
from stoker.model.flow import Flow, Held, HeldBy
from stoker.model.manifest import Manifest
from stoker.model.outcome import ObjectOutcome, PassOutcome, Result, UnitOutcome
from stoker.model.refs import ObjectRef

WEB = a_ref("web")
REF = ObjectRef("", "ConfigMap", "llm", "x")


def changes(digest: str = "d1", version: str = "1", action: Action = Action.CHANGE) -> ChangeSet:
    manifest = Manifest(REF, {"kind": "ConfigMap"}, digest)
    change = Change(
        REF, action, manifest, {"kind": "ConfigMap"}, live_uid="u", live_resource_version=version
    )
    return ChangeSet((UnitChanges(WEB, (change,)),))


def outcome(result: Result = Result.FAILED, code: str = "invalid-object") -> PassOutcome:
    return PassOutcome((UnitOutcome(WEB, (ObjectOutcome(REF, result, code, "no"),)),))


def learn(before=None, now_ms: int = NOW_MS, sent=None, result=None, desired=None):
    return retries_after(
        sent or changes(),
        result or outcome(),
        desired or a_desired(a_unit("web")),
        before or {},
        now_ms,
        lambda code: code == "conflict",
    )


def action_of(found: ChangeSet) -> tuple[str, str, str]:
    change = found.units[0].changes[0]
    return str(change.action), change.code, change.note


def test_a_refused_object_is_not_sent_before_its_time():
    retries = learn()

    early = put_off(changes(), retries, NOW_MS + FIRST_MS - 1)
    due = put_off(changes(), retries, NOW_MS + FIRST_MS)

    assert ("error", "invalid-object", "no") == action_of(early)
    assert changes() == due
    assert NOW_MS + FIRST_MS == next_retry_ms(retries)


@pytest.mark.parametrize(
    "sent",
    [changes(digest="d2"), changes(version="2")],
    ids=["another-manifest", "another-live-object"],
)
def test_a_change_of_either_side_is_sent_at_once(sent):
    assert sent == put_off(sent, learn(), NOW_MS + 1)


def test_the_wait_doubles_and_ends_at_five_minutes():
    retries: dict = {}
    now_ms, waits = NOW_MS, []
    for _ in range(9):
        retries = learn(retries, now_ms)
        waits.append(retries[WEB].at_ms - now_ms)
        now_ms = retries[WEB].at_ms

    assert [FIRST_MS, 2 * FIRST_MS, 4 * FIRST_MS] == waits[:3]
    assert {LONGEST_MS} == set(waits[-3:])


def test_the_units_own_interval_is_kept():
    unit = replace(a_unit("web"), flow=Flow(retry_ms=60_000))
    retries = learn(desired=a_desired(unit))
    again = learn(retries, NOW_MS + 60_000, desired=a_desired(unit))

    assert 60_000 == again[WEB].at_ms - NOW_MS - 60_000


def test_passes_in_between_do_not_move_the_instant():
    first = learn()
    held_up = put_off(changes(), first, NOW_MS + 10)

    again = learn(first, NOW_MS + 10, sent=held_up)

    assert first == again
    assert first[WEB].refused == again[WEB].refused


def test_what_may_pass_by_itself_is_not_held_up():
    """The answer itself said when to come again."""
    retries = learn(result=outcome(code="conflict"))

    assert changes() == put_off(changes(), retries, NOW_MS + 1)


@pytest.mark.parametrize("result", [Result.WAITING, Result.UNKNOWN])
def test_what_waits_is_looked_at_again_and_may_be_sent_before(result):
    retries = learn(result=outcome(result, "kind-not-found"))

    assert next_retry_ms(retries) is not None
    assert changes() == put_off(changes(), retries, NOW_MS + 1)


def test_what_diff_itself_refuses_is_looked_at_again_and_never_blocked():
    """A name in use by somebody else: nothing is sent, so there is nothing to put off."""
    sent = changes(action=Action.ERROR)
    retries = learn(sent=sent, result=outcome(code="adoption-required"))

    assert {} == retries[WEB].refused
    assert next_retry_ms(retries) is not None


def test_success_forgets_everything():
    assert {} == learn(learn(), result=outcome(Result.CHANGED, ""))
    assert next_retry_ms({}) is None


def test_a_held_unit_is_not_tried_again():
    """It goes on by an event or an instant of its own."""
    held = Held(WEB, HeldBy.SUSPENDED, "why")
    desired = replace(a_desired(a_unit("web")), held=(held,))

    assert {} == learn(result=outcome(Result.WAITING, "suspended"), desired=desired)


def test_a_refused_delete_waits_for_its_turn_too():
    """reliability-security c.2 row 53: a right to delete that was revoked is not asked for each pass."""
    gone = a_ref("gone")
    change = Change(REF, Action.DELETE, live_uid="u", live_resource_version="1")
    leaving = ChangeSet((UnitChanges(gone, (change,)),))
    refused = PassOutcome(pruned=(ObjectOutcome(REF, Result.FAILED, "forbidden", "no"),))
    first = learn(sent=leaving, result=refused)
    early = put_off(leaving, first, NOW_MS + FIRST_MS - 1)
    second = learn(before=first, now_ms=NOW_MS + FIRST_MS, sent=leaving, result=refused)

    assert ("error", "forbidden", "no") == action_of(early)
    assert first == learn(before=first, now_ms=NOW_MS + 1, sent=early, result=refused)
    assert leaving == put_off(leaving, first, NOW_MS + FIRST_MS)
    assert NOW_MS + 3 * FIRST_MS == next_retry_ms(second)


def test_what_finalizers_hold_is_no_failure():
    change = Change(REF, Action.DELETE, live_uid="u", live_resource_version="1")
    leaving = ChangeSet((UnitChanges(WEB, (change,)),))
    held = PassOutcome(pruned=(ObjectOutcome(REF, Result.WAITING, "deletion-pending", ""),))

    assert {} == learn(sent=leaving, result=held)
