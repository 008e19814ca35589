from dataclasses import replace
from typing import Any

import pytest
import yaml

from stoker.model.change import Action, Change
from stoker.model.outcome import Health, ObjectOutcome, Result, Sync, UnitOutcome
from stoker.model.refs import UnitRef
from stoker.report.inputs import EventType, StatusWritten
from stoker.report.plain_yaml import dump
from stoker.report.previous import PreviousStatus, previous_from_files
from stoker.report.report import decision_digest, report
from unit.report.report_builders import (
    COMMIT,
    GATEWAY,
    HELD,
    LATER_COMMIT,
    NOW,
    QWEN,
    Live,
    bundle,
    bundle_pass,
    change_set,
    changes_of,
    counts,
    decision,
    desired,
    finding,
    inputs,
    live_object,
    next_pass,
    node,
    object_ref,
    outcome,
    plan,
    ready_on,
    revision,
    said,
    service,
    snapshot,
    status,
    three_of_four,
    words,
)


def test_a_fleet_that_stands_is_ready():
    result = report(inputs())

    assert ("True", "Succeeded") == said(result, "Ready")
    assert ("False", "Idle") == said(result, "Reconciling")
    assert ("False", "NotStalled") == said(result, "Stalled")
    assert ("True", "Healthy") == said(result, "Healthy")
    assert (Sync.SYNCED, Health.HEALTHY) == words(result)


def test_missing_capacity_degrades_with_the_reason_of_the_hold():
    result = report(three_of_four())

    assert (Sync.SYNCED, Health.DEGRADED) == words(result)
    assert ("False", "UnitsNotReady") == said(result, "Ready")
    assert ("False", "HeldNoCapacity") == said(result, "Healthy")
    ready, _, _, healthy = status(result)["conditions"]
    assert ready["message"] == "1 of 1 units: llm/qwen-7b"
    assert healthy["message"] == "llm/qwen-7b 3/4 Ready"


def test_the_fleet_document_has_the_published_layout():
    """ux.md, status.yaml: keys and their order are a promise to people and parsers."""
    nodes = (node("l4-od-1"), node("l4-od-2", ready=False), node("h100", labels=()))
    now = replace(three_of_four(), snapshot=snapshot(ready_on(QWEN, 3), nodes=nodes))

    text = dump(status(report(now))).decode()

    assert (
        text
        == f"""\
apiVersion: stoker.dev/v1alpha1
kind: FleetStatus
metadata: {{name: prod-eu}}
clusterUID: 6a0c1f0e-5c0b-4a57-9a53-0d7c1f6f22e1
controller: {{version: 0.1.0, observedAt: "2026-11-29T03:05:02Z", heartbeat: 1h}}
source: {{ref: main, path: clusters/prod-eu/fleet.yaml}}
lastAttemptedRevision: main@sha1:{COMMIT}
lastAppliedRevision: main@sha1:{COMMIT}
decisionDigest: sha256:{decision_digest(now.plan)}
sync: {{status: Synced}}
health: {{status: Degraded}}
conditions:
- {{type: Ready, status: "False", reason: UnitsNotReady, message: "1 of 1 units: llm/qwen-7b", \
lastTransitionTime: "2026-11-29T03:05:02Z"}}
- {{type: Reconciling, status: "False", reason: Idle, message: "", \
lastTransitionTime: "2026-11-29T03:05:02Z"}}
- {{type: Stalled, status: "False", reason: NotStalled, message: "", \
lastTransitionTime: "2026-11-29T03:05:02Z"}}
- {{type: Healthy, status: "False", reason: HeldNoCapacity, message: "llm/qwen-7b 3/4 Ready", \
lastTransitionTime: "2026-11-29T03:05:02Z"}}
summary: {{units: 1, synced: 1, healthy: 0, objects: 1, held: 1, overrides: 0, suspended: 0, driftRepaired24h: 0}}
gpus:
- {{pool: l4-od, capacity: 1, used: 1, lostNodes: 1}}
attention:
- unit: ModelService/llm/qwen-7b
  file: units/modelservice.llm.qwen-7b.yaml
  reason: HeldNoCapacity
  since: "2026-11-29T03:05:02Z"
  replicas: {{desired: 4, ready: 3, warming: 0, floor: 3}}
  next: "first free GPU on l4-od"
  source: {{path: models/qwen-7b.yaml, line: 21}}
errors: []
truncated: false
history:
- {{revision: 9be0a17, result: Applied, started: "2026-11-29T03:05:02Z", coldStarts: 0}}
"""
    )


def test_conditions_are_derived_anew_in_every_pass():
    """cases.md row 93: a False condition must not outlive the mistake that made it."""
    good = inputs()
    first = report(good)
    error = finding("template-undefined", QWEN)
    broken = report(
        next_pass(good, first.memory, changes=change_set(changes_of(QWEN, findings=(error,))))
    )
    fixed = report(next_pass(good, broken.memory, after_ms=20_000))

    assert ("True", "TemplateUndefined") == said(broken, "Stalled", QWEN)
    assert ("False", "TemplateUndefined") == said(broken, "Ready", QWEN)
    assert ("False", "NotStalled") == said(fixed, "Stalled", QWEN)
    assert ("True", "Succeeded") == said(fixed, "Ready")
    assert status(fixed)["errors"] == []


def test_transition_times_move_only_with_the_status():
    first = report(three_of_four())
    again = report(next_pass(three_of_four(), first.memory))
    well = report(next_pass(inputs(), again.memory, after_ms=60_000))

    assert first.memory.units[QWEN].conditions == again.memory.units[QWEN].conditions
    assert "2026-11-29T03:06:02Z" == status(well)["conditions"][3]["lastTransitionTime"]


def test_an_idle_fleet_has_no_news():
    """cases.md rows 13 and 99: 20 idle passes give one substance, no event, no new document."""
    now = three_of_four()
    first = result = report(now)
    for n in range(20):
        result = report(next_pass(now, result.memory, after_ms=n * 30_000))

        assert result.substance == first.substance
        assert result.events == ()
        assert not result.urgent
        assert result.documents[1] is first.documents[1]


def test_the_first_report_after_a_restart_is_no_news_either():
    """The branch is read back instead of memory, so a restart commits nothing (row 13)."""
    now = three_of_four()
    first = report(now)
    files = {d.path: dump(d.data) for d in first.documents}

    again = report(next_pass(now, previous_from_files(files)))

    assert again.substance == first.substance == previous_from_files(files).substance
    assert again.memory.units == first.memory.units
    assert again.events == ()
    assert not again.urgent


@pytest.mark.parametrize(
    ("changes", "new"),
    [
        pytest.param({"desired": desired(service(), commit=LATER_COMMIT)}, True, id="revision"),
        pytest.param(
            {
                "plan": plan(decision(ready=3)),
                "snapshot": snapshot(ready_on(QWEN, 3)),
            },
            True,
            id="count",
        ),
        pytest.param(
            {"snapshot": snapshot(ready_on(QWEN, 4), nodes=(node("l4-od-9"),))}, False, id="pools"
        ),
        pytest.param({"written": StatusWritten("b", "c" * 40, NOW)}, False, id="pushed"),
    ],
)
def test_only_revisions_conditions_placements_and_counts_are_of_substance(changes, new):
    first = report(inputs())

    later = report(next_pass(inputs(), first.memory, **changes))

    assert new == (later.substance != first.substance)


def test_a_warning_that_comes_or_goes_is_of_substance():
    """Else it would stay in status.yaml, resolved, until something else happens."""
    warned: Any = {"warnings": (finding("forbidden"),)}
    first = report(inputs())

    with_it = report(next_pass(inputs(), first.memory, **warned))
    again = report(next_pass(inputs(), with_it.memory, **warned))
    without = report(next_pass(inputs(), again.memory))

    assert with_it.substance not in {first.substance, without.substance}
    assert (again.substance, without.substance) == (with_it.substance, first.substance)
    files = {d.path: dump(d.data) for d in with_it.documents}
    assert with_it.substance == previous_from_files(files).substance


def test_a_moved_placement_is_of_substance():
    moved = decision()
    places = tuple(replace(p, node=p.node.replace("od-4", "od-5")) for p in moved.placements)
    first = report(inputs())

    later = report(next_pass(inputs(), first.memory, plan=plan(replace(moved, placements=places))))

    assert later.substance != first.substance


def test_a_unit_that_a_person_must_fix_is_urgent():
    first = report(three_of_four())

    stalled = report(
        next_pass(three_of_four(), first.memory, findings=(finding("template-undefined", QWEN),))
    )

    assert stalled.urgent


def test_one_replica_less_of_a_unit_that_was_not_ready_can_wait():
    first = report(three_of_four())
    fewer = plan(decision(ready=2, holds=(HELD,)))

    less = report(
        next_pass(three_of_four(), first.memory, plan=fewer, snapshot=snapshot(ready_on(QWEN, 2)))
    )

    assert not less.urgent
    assert less.substance != first.substance


def test_an_unreachable_source_keeps_the_last_good_state_and_says_so():
    """Source down: nothing changes but the report, and the fleet stays as Ready as it is."""
    first = report(inputs())
    down = finding("repository-unreachable", message="no route to host")

    result = report(next_pass(inputs(), first.memory, failure=down))

    assert ("True", "Succeeded") == said(result, "Ready")
    assert ("True", "ProgressingWithRetry") == said(result, "Reconciling")
    assert ("False", "NotStalled") == said(result, "Stalled")
    assert ["repository-unreachable"] == [e["code"] for e in status(result)["errors"]]


def test_a_broken_fleet_file_stalls_the_fleet_and_keeps_what_was_reported():
    first = report(inputs())
    wrong = finding("schema", message="spec.pools: unknown field")

    result = report(
        next_pass(
            inputs(),
            first.memory,
            desired=None,
            snapshot=None,
            plan=None,
            changes=None,
            live=None,
            attempted=revision(LATER_COMMIT),
            failure=wrong,
        )
    )

    assert ("True", "Schema") == said(result, "Stalled")
    assert ("False", "Schema") == said(result, "Ready")
    assert f"main@sha1:{LATER_COMMIT}" == status(result)["lastAttemptedRevision"]
    assert f"main@sha1:{COMMIT}" == status(result)["lastAppliedRevision"]
    assert {"status": "Unknown"} == status(result)["health"]
    assert "units/modelservice.llm.qwen-7b.yaml" == result.documents[1].path
    assert not result.complete
    assert () == result.mirrors
    assert ["4f1c2d9", "9be0a17"] == [e["revision"] for e in status(result)["history"]]
    assert "Failed" == status(result)["history"][0]["result"]


def test_an_unreachable_cluster_makes_health_unknown_never_zero():
    first = report(inputs())

    result = report(
        next_pass(
            inputs(),
            first.memory,
            snapshot=None,
            plan=None,
            changes=None,
            live=None,
            failure=finding("unreachable"),
        )
    )

    assert (Sync.UNKNOWN, Health.UNKNOWN) == words(result)
    assert "Unknown" == said(result, "Ready", QWEN)[0]
    assert 4 == counts(result).ready
    assert 1 == result.memory.units[QWEN].objects


def test_held_deletions_make_the_fleet_not_ready_and_say_why():
    delete = changes_of(GATEWAY, Change(object_ref(), Action.DELETE))
    changes = change_set(changes_of(QWEN), delete, prune_hold="3 units exceed maxUnits 10%")

    result = report(inputs(changes=changes))

    assert ("False", "PruneHeld") == said(result, "Ready")
    assert "3 units exceed maxUnits 10%" == status(result)["conditions"][0]["message"]


def test_a_hold_without_deletions_is_no_news():
    result = report(inputs(changes=change_set(changes_of(QWEN), prune_hold="first pass")))

    assert ("True", "Succeeded") == said(result, "Ready")


def test_a_partial_pass_leaves_other_units_as_they_were():
    other = UnitRef("ModelService", "llm", "embed")
    both = inputs(
        desired=desired(service(), service(other)),
        plan=plan(decision(), decision(other)),
        snapshot=snapshot(ready_on(QWEN, 4), ready_on(other, 4)),
        changes=change_set(changes_of(QWEN), changes_of(other)),
        live=Live(live_object("qwen-7b"), live_object("embed")),
    )
    first = report(both)

    part = report(
        next_pass(both, first.memory, scope=(QWEN,), changes=change_set(changes_of(QWEN)))
    )

    assert part.memory.units[other] is first.memory.units[other]
    assert ("True", "Succeeded") == said(part, "Ready")


def test_the_applied_revision_moves_when_every_unit_stands():
    first = report(inputs())
    half = next_pass(
        inputs(),
        first.memory,
        desired=desired(service(digest="d2"), commit=LATER_COMMIT),
        plan=plan(decision(updating=True)),
    )
    updating = report(half)
    done = report(next_pass(half, updating.memory, plan=plan(decision())))

    assert f"main@sha1:{COMMIT}" == status(updating)["lastAppliedRevision"]
    assert f"main@sha1:{LATER_COMMIT}" == status(updating)["lastAttemptedRevision"]
    assert f"main@sha1:{LATER_COMMIT}" == status(done)["lastAppliedRevision"]
    assert f"main@sha1:{LATER_COMMIT}" == done.memory.units[QWEN].applied_revision


def test_a_commit_that_does_not_touch_a_unit_leaves_its_file_alone():
    first = report(inputs())

    later = report(
        next_pass(inputs(), first.memory, desired=desired(service(), commit=LATER_COMMIT))
    )

    assert later.documents[1] is first.documents[1]


def test_history_keeps_five_revisions_and_when_each_was_ready():
    memory = PreviousStatus()
    for number in range(7):
        commit = str(number) * 40
        now = inputs(desired=desired(service(), commit=commit))
        memory = report(next_pass(now, memory, after_ms=number * 60_000)).memory

    assert 5 == len(memory.history)
    assert ("Applied", "2026-11-29T03:11:02Z") == (
        memory.history[0].result,
        memory.history[0].ready,
    )


def test_repaired_drift_is_counted_for_a_day():
    change = Change(object_ref(), Action.CHANGE)
    repaired = outcome(GATEWAY, ObjectOutcome(object_ref(), Result.CHANGED), applied=True)
    first = report(bundle_pass())

    drifted = report(next_pass(bundle_pass(change, outcome=repaired), first.memory))
    next_day = report(next_pass(bundle_pass(), drifted.memory, after_ms=25 * 3_600_000))

    assert 1 == status(drifted)["summary"]["driftRepaired24h"]
    assert 0 == status(next_day)["summary"]["driftRepaired24h"]


def test_a_changed_unit_is_no_drift():
    change = Change(object_ref(), Action.CHANGE)
    written = outcome(GATEWAY, ObjectOutcome(object_ref(), Result.CHANGED), applied=True)
    first = report(bundle_pass())
    now = bundle_pass(change, outcome=written)

    result = report(next_pass(now, first.memory, desired=desired(bundle(digest="b2"))))

    assert 0 == status(result)["summary"]["driftRepaired24h"]


def test_the_worst_units_come_first_and_the_list_is_cut():
    refs = [UnitRef("ModelService", "llm", f"s{n:02}") for n in range(25)]
    units = [service(ref) for ref in refs]
    ready = {ref: 3 if n != 7 else 1 for n, ref in enumerate(refs)}
    result = report(
        inputs(
            desired=desired(*units),
            snapshot=snapshot(*(ready_on(ref, ready[ref]) for ref in refs)),
            plan=plan(*(decision(ref, ready=ready[ref], holds=(HELD,)) for ref in refs)),
            changes=change_set(*(changes_of(ref) for ref in refs)),
            live=Live(*(live_object(ref.name) for ref in refs)),
        )
    )

    listed = status(result)["attention"]
    assert 20 == len(listed)
    assert status(result)["truncated"]
    assert "ModelService/llm/s07" == listed[0]["unit"]
    assert (
        "25 of 25 units: llm/s00, llm/s01, llm/s02 and 22 more"
        == (status(result)["conditions"][0]["message"])
    )


def test_a_pool_whose_nodes_cannot_be_read_is_unknown_not_zero():
    blind = snapshot(ready_on(QWEN, 4), unknown=(("nodes", "forbidden"),))

    assert [{"pool": "l4-od", "capacity": None, "used": None}] == (
        status(report(inputs(snapshot=blind)))["gpus"]
    )


def test_events_tell_each_transition_once():
    first = report(inputs())
    bad = report(next_pass(three_of_four(), first.memory))
    good = report(next_pass(inputs(), bad.memory))

    told = [(e.unit, e.type, e.reason) for e in bad.events]
    assert [
        ("", EventType.WARNING, "UnitsNotReady"),
        ("", EventType.WARNING, "HeldNoCapacity"),
        (str(QWEN), EventType.WARNING, "HeldNoCapacity"),
        (str(QWEN), EventType.WARNING, "HeldNoCapacity"),
    ] == told
    assert {EventType.NORMAL} == {e.type for e in good.events}


def test_a_status_branch_that_refuses_us_is_told_where_it_can_be_seen():
    """The document cannot say it: it would be pushed only once that was no longer true."""
    refused = StatusWritten("stoker-status/prod-eu", "", None, "push-rejected", "protected branch")

    result = report(inputs(written=refused))

    assert ("False", "PushRejected") == said(result, "StatusWritten")
    assert "StatusWritten" not in dump(status(result)).decode()


def test_the_last_pushed_commit_is_shown():
    """cases.md row 99."""
    result = report(inputs(written=StatusWritten("stoker-status/prod-eu", "9c01d2e" * 5, NOW)))

    assert "9c01d2e on stoker-status/prod-eu" == result.conditions[-1].message


def test_the_decision_digest_names_the_decision_not_the_moment():
    now = plan(decision())

    assert decision_digest(now) == decision_digest(replace(now, now_ms=NOW + 1, wake_at_ms=5))
    assert decision_digest(now) != decision_digest(plan(decision(want=5)))


def test_a_pass_can_be_aborted_between_units():
    class Abort(Exception):  # noqa: N818 - what a checkpoint raises is the loop's affair
        pass

    def checkpoint():
        raise Abort

    with pytest.raises(Abort):
        report(inputs(), checkpoint=checkpoint)


def test_every_document_reads_back_as_yaml():
    for document in report(three_of_four()).documents:
        assert document.data == yaml.safe_load(dump(document.data))


def test_a_failed_pass_is_not_applied():
    first = report(inputs())
    failing = UnitOutcome(QWEN, applied=True)
    ended = replace(outcome(QWEN), units=(failing,), failure=finding("unreachable"))

    result = report(
        next_pass(
            inputs(desired=desired(service(), commit=LATER_COMMIT)), first.memory, outcome=ended
        )
    )

    assert f"main@sha1:{COMMIT}" == status(result)["lastAppliedRevision"]
