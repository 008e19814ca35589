"""How a held unit is told: conditions, the health word, and when a unit is late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model.change import Action, Change
from stoker.model.flow import Flow, Held, HeldBy
from stoker.model.outcome import Health, Sync
from stoker.model.times import rfc3339
from stoker.report.inputs import Pending
from stoker.report.render_status import StatusView, render_status, view_documents
from stoker.report.report import report
from unit.report.report_builders import (
    GATEWAY,
    LATER_COMMIT,
    NOW,
    Live,
    bundle,
    bundle_pass,
    desired,
    next_pass,
    object_ref,
    revision,
    said,
)

WAIT = Change(object_ref(), Action.WAIT, code="suspended", note="Suspended: why")
STANDS = Change(object_ref(), Action.UNCHANGED)
MINUTE = 60_000


def a_pass(held: Held | None, change: Change = WAIT, *, unit=None, live=None, **more):
    wanted = desired(unit or bundle())
    if held is not None:
        wanted = replace(wanted, held=(held,))
    return replace(bundle_pass(change, live=live, **more), desired=wanted)


def told(given, kind: str):
    """Status, reason and message of a condition; None without it."""
    unit = report(given).memory.units[GATEWAY]
    found = unit.condition(kind)
    return (found.status, found.reason, found.message) if found is not None else None


SUSPENDED = Held(GATEWAY, HeldBy.SUSPENDED, "by hand: audit", NOW - MINUTE)
WAITING = Held(GATEWAY, HeldBy.DEPENDENCY, "waits for Bundle/llm/base")


def test_a_suspended_unit_says_by_whom_and_since_when():
    unit = report(a_pass(SUSPENDED, live=Live())).memory.units[GATEWAY]

    assert (Sync.OUT_OF_SYNC, Health.SUSPENDED) == (unit.sync, unit.health)
    suspended = unit.condition("Suspended")
    assert suspended is not None
    assert ("True", "Suspended", "by hand: audit") == (
        suspended.status,
        suspended.reason,
        suspended.message,
    )
    assert rfc3339(NOW - MINUTE) == suspended.since
    assert unit.suspended


def test_health_still_tells_of_the_objects_themselves():
    """The word hides nothing that a person must know."""
    assert told(a_pass(SUSPENDED, live=Live()), "Healthy")[0] == "False"


def test_a_suspended_unit_that_stands_is_ready():
    from unit.report.report_builders import live_object  # noqa: PLC0415

    given = a_pass(SUSPENDED, STANDS, live=Live(live_object()))

    assert "True" == told(given, "Ready")[0]
    assert ("False", "Suspended") == told(given, "Reconciling")[:2]


def test_without_a_hold_there_is_no_fifth_condition():
    assert told(a_pass(None, STANDS), "Suspended") is None


@pytest.mark.parametrize("by", [HeldBy.DEPENDENCY, HeldBy.WINDOW])
def test_a_waiting_unit_is_on_its_way_and_wants_nobody(by):
    given = a_pass(replace(WAITING, by=by), live=Live())
    answer = report(given)
    unit = answer.memory.units[GATEWAY]

    assert (Sync.OUT_OF_SYNC, Health.PROGRESSING) == (unit.sync, unit.health)
    assert ("False", by, WAITING.message) == told(given, "Ready")
    assert ("True", by, WAITING.message) == told(given, "Reconciling")
    assert [] == answer.documents[0].data["attention"]


def test_a_unit_that_goes_on_as_it_was_is_out_of_sync():
    given = a_pass(replace(WAITING, whole=False), STANDS)

    assert Sync.OUT_OF_SYNC is report(given).memory.units[GATEWAY].sync


def late_unit():
    return replace(bundle(), flow=Flow(timeout_ms=5 * MINUTE))


def test_a_unit_is_late_when_its_timeout_is_over_and_not_before():
    first = a_pass(None, replace(WAIT, action=Action.CREATE), unit=late_unit(), live=Live())
    answer = report(first)
    assert NOW + 5 * MINUTE == answer.wake_at_ms

    just_before = next_pass(first, answer.memory, after_ms=5 * MINUTE - 1)
    at_its_end = next_pass(first, answer.memory, after_ms=5 * MINUTE)

    assert "False" == told(just_before, "Stalled")[0]
    stalled = told(at_its_end, "Stalled")
    assert ("True", "TimedOut") == stalled[:2]
    assert "not Healthy within spec.timeout (300s)" in stalled[2]
    assert report(at_its_end).wake_at_ms is None


def test_another_revision_has_its_own_time():
    first = a_pass(None, replace(WAIT, action=Action.CREATE), unit=late_unit(), live=Live())
    changed = replace(late_unit(), digest="c2" * 32)

    later = next_pass(first, report(first).memory, after_ms=4 * MINUTE, desired=desired(changed))

    assert NOW + 9 * MINUTE == report(later).wake_at_ms


def test_a_held_unit_is_never_late():
    first = a_pass(WAITING, unit=late_unit(), live=Live())

    assert report(first).wake_at_ms is None
    assert report(first).memory.units[GATEWAY].attempt is None


def test_the_status_text_names_what_waits_and_why():
    given = replace(
        a_pass(SUSPENDED, live=Live()), pending=Pending(revision(LATER_COMMIT), ("night",), NOW)
    )

    text = render_status(StatusView(view_documents(report(given).documents), NOW))

    assert "SUSPENDED  llm/gateway   for 60s   by hand: audit" in text
    assert f"PENDING    main@{LATER_COMMIT[:7]}   applied from {rfc3339(NOW)} on" in text
    assert "(change windows: night)" in text


def test_a_pending_revision_is_told_by_the_fleet():
    given = replace(a_pass(None, STANDS), pending=Pending(revision(LATER_COMMIT), ("night",), NOW))
    answer = report(given)

    assert said(answer, "Reconciling") == ("True", "ChangeWindowClosed")
    assert f"main@sha1:{LATER_COMMIT}" == answer.documents[0].data["pending"]["revision"]


def test_what_the_next_pass_knows_of_a_unit():
    unit = replace(bundle(), flow=Flow(depends_on=(GATEWAY,)))
    standing = report(a_pass(SUSPENDED, unit=unit, live=Live())).memory.standings[GATEWAY]

    assert standing.suspended
    assert not standing.synced
    assert (GATEWAY,) == standing.depends_on
    assert standing.why.startswith("Suspended")
