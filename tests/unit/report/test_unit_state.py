import pytest

from stoker.errors import Severity
from stoker.model.change import Action, Change
from stoker.model.outcome import Health, ObjectOutcome, Result, Sync
from stoker.report.report import report
from unit.report.report_builders import (
    GATEWAY,
    QWEN,
    Live,
    bundle,
    bundle_pass,
    change_set,
    changes_of,
    counts,
    desired,
    failed,
    finding,
    inputs,
    live_object,
    message,
    next_pass,
    object_ref,
    outcome,
    plan,
    said,
    service,
    status,
    words,
)

CREATE = Change(object_ref(), Action.CREATE)


@pytest.mark.parametrize(
    ("given", "sync", "health", "ready"),
    [
        pytest.param(
            bundle_pass(
                CREATE, outcome=outcome(GATEWAY, ObjectOutcome(object_ref(), Result.CREATED))
            ),
            Sync.SYNCED,
            Health.HEALTHY,
            ("True", "Succeeded"),
            id="created",
        ),
        pytest.param(
            bundle_pass(
                CREATE,
                live=Live(),
                outcome=outcome(GATEWAY, ObjectOutcome(object_ref(), Result.CREATED)),
            ),
            Sync.SYNCED,
            Health.PROGRESSING,
            ("False", "Created"),
            id="created, not yet seen",
        ),
        pytest.param(
            bundle_pass(CREATE, live=Live(), outcome=outcome(GATEWAY, failed(object_ref()))),
            Sync.OUT_OF_SYNC,
            Health.MISSING,
            ("False", "InvalidObject"),
            id="refused",
        ),
        pytest.param(
            bundle_pass(
                CREATE,
                live=Live(),
                outcome=outcome(GATEWAY, failed(object_ref(), "server-failure")),
            ),
            Sync.OUT_OF_SYNC,
            Health.MISSING,
            ("False", "Missing"),
            id="may work later",
        ),
        pytest.param(
            bundle_pass(
                Change(object_ref(), Action.CHANGE),
                outcome=outcome(GATEWAY, ObjectOutcome(object_ref(), Result.UNKNOWN)),
            ),
            Sync.UNKNOWN,
            Health.HEALTHY,
            ("Unknown", "Unknown"),
            id="no answer to a write",
        ),
        pytest.param(
            bundle_pass(
                Change(object_ref(), Action.ERROR, code="adoption-required", note="is not ours")
            ),
            Sync.OUT_OF_SYNC,
            Health.HEALTHY,
            ("False", "AdoptionRequired"),
            id="foreign object",
        ),
        pytest.param(
            bundle_pass(Change(object_ref(), Action.WAIT), live=Live(unknown=(object_ref(),))),
            Sync.UNKNOWN,
            Health.UNKNOWN,
            ("Unknown", "Unknown"),
            id="forbidden to read",
        ),
        pytest.param(
            bundle_pass(
                Change(object_ref(kind="StatefulSet"), Action.UNCHANGED),
                live=Live(live_object(kind="StatefulSet", spec={"replicas": 2}, status={})),
            ),
            Sync.SYNCED,
            Health.PROGRESSING,
            ("False", "PodsNotReady"),
            id="live object not well",
        ),
        pytest.param(
            inputs(
                desired=desired(bundle()),
                plan=plan(),
                changes=change_set(changes_of(GATEWAY, complete=False)),
            ),
            Sync.UNKNOWN,
            Health.UNKNOWN,
            ("Unknown", "Unknown"),
            id="not rendered",
        ),
    ],
)
def test_a_bundle_is_judged_by_its_objects(given, sync, health, ready):
    result = report(given)

    assert (sync, health) == words(result, GATEWAY)
    assert ready == said(result, "Ready", GATEWAY)


def test_what_may_work_later_reconciles_and_what_a_person_must_fix_stalls():
    later = report(
        bundle_pass(CREATE, live=Live(), outcome=outcome(GATEWAY, failed(object_ref(), "conflict")))
    )
    never = report(bundle_pass(CREATE, live=Live(), outcome=outcome(GATEWAY, failed(object_ref()))))

    assert ("True", "ProgressingWithRetry") == said(later, "Reconciling", GATEWAY)
    assert ("False", "NotStalled") == said(later, "Stalled", GATEWAY)
    assert ("False", "Idle") == said(never, "Reconciling", GATEWAY)
    assert ("True", "InvalidObject") == said(never, "Stalled", GATEWAY)


def test_waiting_is_told_with_what_is_waited_for():
    waiting = ObjectOutcome(object_ref(), Result.WAITING, "kind-not-found", "no kind Gateway yet")

    result = report(bundle_pass(CREATE, live=Live(), outcome=outcome(GATEWAY, waiting)))

    assert ("True", "Waiting") == said(result, "Reconciling", GATEWAY)
    assert "no kind Gateway yet" in message(result, "Reconciling", GATEWAY)


def test_a_warning_never_stalls():
    warning = finding("tag-not-digest", QWEN, severity=Severity.WARNING)

    result = report(inputs(findings=(warning,)))

    assert ("True", "Succeeded") == said(result, "Ready")
    assert ["tag-not-digest"] == [e["code"] for e in status(result)["errors"]]


def test_a_finding_given_by_two_stages_is_told_once():
    error = finding("template-undefined", QWEN)

    result = report(
        inputs(findings=(error,), changes=change_set(changes_of(QWEN, findings=(error,))))
    )

    assert 1 == len(status(result)["errors"])


def test_a_unit_whose_file_is_broken_is_known_by_what_runs():
    """Its replicas serve on; nothing of it is changed or pruned, and its place is named."""
    first = report(inputs())
    broken = desired(broken=(QWEN,), findings=(finding("schema", QWEN),))

    result = report(
        next_pass(inputs(), first.memory, desired=broken, plan=plan(), changes=change_set())
    )

    unit = result.memory.units[QWEN]
    assert (Sync.UNKNOWN, Health.HEALTHY) == (unit.sync, unit.health)
    assert ("True", "Schema") == said(result, "Stalled", QWEN)
    assert (4, 4) == (counts(result).desired, counts(result).ready)
    assert ("models/qwen-7b.yaml", 9) == (unit.path, unit.line)


def test_a_unit_that_left_git_is_shown_until_its_objects_are_gone():
    two = inputs(
        desired=desired(service(), bundle()),
        changes=change_set(changes_of(QWEN), changes_of(GATEWAY)),
    )
    first = report(two)
    delete = changes_of(GATEWAY, Change(object_ref(), Action.DELETE))

    leaving = report(
        next_pass(inputs(), first.memory, changes=change_set(changes_of(QWEN), delete))
    )
    gone = report(next_pass(inputs(), leaving.memory))

    assert (Sync.OUT_OF_SYNC, Health.PROGRESSING) == words(leaving, GATEWAY)
    assert ("False", "Pruning") == said(leaving, "Ready", GATEWAY)
    assert {QWEN} == set(gone.memory.units)
    assert gone.complete


def test_what_is_kept_by_policy_is_said_to_be_kept():
    """cases.md row 79: silence about kept objects makes a later install fail."""
    keep = Change(object_ref(), Action.KEEP, note="a CustomResourceDefinition needs consent")

    result = report(inputs(changes=change_set(changes_of(QWEN), changes_of(GATEWAY, keep))))

    assert ("True", "Kept") == said(result, "Healthy", GATEWAY)
    assert (
        "a CustomResourceDefinition needs consent" == result.memory.units[GATEWAY].notes[0].message
    )
