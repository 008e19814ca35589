from dataclasses import replace

import pytest

from stoker.model.change import Action, Change
from stoker.model.fleet import FleetMode
from stoker.model.outcome import Health, ObjectOutcome, PassOutcome, Result, Sync
from stoker.model.plan import Attempt, Hold, Readiness, Retirement, RetireStage, WarmthClass
from stoker.model.snapshot import Notice, ReplicaPhase, ServiceState
from stoker.report.report import report
from unit.report.report_builders import (
    GATEWAY,
    NOW,
    QWEN,
    Live,
    change_set,
    changes_of,
    counts,
    decision,
    desired,
    fleet,
    inputs,
    message,
    next_pass,
    node,
    object_ref,
    outcome,
    placed,
    plan,
    ready_on,
    said,
    service,
    snapshot,
    state,
    status,
    three_of_four,
    words,
)


def test_pods_that_cannot_be_listed_leave_the_counts_as_they_were():
    first = report(inputs())
    blind = snapshot(unknown=(("pods/llm", "forbidden"),))

    result = report(next_pass(inputs(), first.memory, snapshot=blind, plan=plan(decision(ready=0))))

    assert Health.UNKNOWN is words(result)[1]
    assert 4 == counts(result).ready
    assert "pods/llm: forbidden" in message(result, "Healthy")


@pytest.mark.parametrize(
    ("given", "sync", "health", "reason"),
    [
        pytest.param(
            {"plan": plan(decision(ready=3, warming=1))},
            Sync.SYNCED,
            Health.PROGRESSING,
            "Starting",
            id="one starting",
        ),
        pytest.param(
            {
                "plan": plan(decision(ready=3, warming=1)),
                "snapshot": snapshot(state(QWEN, a=ReplicaPhase.READY, b=ReplicaPhase.IMAGE_PULL)),
            },
            Sync.SYNCED,
            Health.PROGRESSING,
            "ImagePull",
            id="one pulling its image",
        ),
        pytest.param(
            {
                "plan": plan(decision(ready=3)),
                "snapshot": snapshot(
                    ServiceState(QWEN, (placed(QWEN, "l4-od-4", ReplicaPhase.STUCK, "CUDA OOM"),))
                ),
            },
            Sync.SYNCED,
            Health.DEGRADED,
            "Stuck",
            id="one stuck",
        ),
        pytest.param(
            {"plan": plan(decision(want=0, ready=0)), "snapshot": snapshot()},
            Sync.SYNCED,
            Health.HEALTHY,
            "ScaledToZero",
            id="row 89: asleep",
        ),
        pytest.param(
            {"plan": plan(decision(want=None))},
            Sync.UNKNOWN,
            Health.UNKNOWN,
            "CountUnknown",
            id="count unknown",
        ),
        pytest.param(
            {"plan": plan(decision(updating=True))},
            Sync.OUT_OF_SYNC,
            Health.HEALTHY,
            "Healthy",
            id="older revision still stands",
        ),
        pytest.param(
            {"plan": plan(decision(updating=True, holds=(Hold("UpdateFailed", "1 of 4 stuck"),)))},
            Sync.OUT_OF_SYNC,
            Health.DEGRADED,
            "UpdateFailed",
            id="update failed, the old revision serves",
        ),
        pytest.param(
            {"plan": plan(decision(ready=3, holds=(Hold("WaitingForDeparture", "leaves soon"),)))},
            Sync.SYNCED,
            Health.PROGRESSING,
            "WaitingForDeparture",
            id="its own replica makes room",
        ),
        pytest.param(
            {"plan": plan(decision(holds=(Hold("HeldNoCapacity", "1 move has no place"),)))},
            Sync.SYNCED,
            Health.HEALTHY,
            "Healthy",
            id="a move is held, all serve",
        ),
        pytest.param(
            {"plan": plan(decision(ready=5))}, Sync.SYNCED, Health.HEALTHY, "Healthy", id="surge"
        ),
        pytest.param(
            {"plan": plan()}, Sync.UNKNOWN, Health.UNKNOWN, "CountUnknown", id="nothing decided"
        ),
    ],
)
def test_a_service_is_judged_by_its_replicas(given, sync, health, reason):
    result = report(inputs(**given))

    assert (sync, health) == words(result)
    assert reason == said(result, "Healthy", QWEN)[1]


def test_an_update_that_is_held_says_why():
    held = Hold("HeldNoCapacity", "4 moves without a free place to go")

    result = report(inputs(plan=plan(decision(updating=True, holds=(held,)))))

    assert ("False", "HeldNoCapacity") == said(result, "Ready", QWEN)
    assert "4 moves without a free place to go" == message(result, "Ready")


@pytest.mark.parametrize(
    ("outcome_of", "cold"),
    [(Result.CREATED, 1), (Result.UNCHANGED, 0), (Result.FAILED, 0)],
)
def test_cold_starts_are_those_that_this_revision_began(outcome_of, cold):
    estimate = Readiness(WarmthClass.COLD, 160_000, 250_000)
    warm = Readiness(WarmthClass.WARM, 50_000, 60_000)
    first, second = decision(ready=2).placements
    decided = decision(
        placements=(replace(first, readiness=estimate), replace(second, readiness=warm))
    )
    objects = [
        ObjectOutcome(object_ref(place.name, "Deployment"), outcome_of)
        for place in decided.placements
    ]

    result = report(inputs(plan=plan(decided), outcome=outcome(QWEN, *objects)))

    assert cold == status(result)["history"][0]["coldStarts"]


def test_what_was_pruned_in_this_pass_is_no_longer_open():
    two = inputs(changes=change_set(changes_of(QWEN), changes_of(GATEWAY)))
    first = report(two)
    delete = changes_of(GATEWAY, Change(object_ref(), Action.DELETE))
    pruned = PassOutcome(pruned=(ObjectOutcome(object_ref(), Result.DELETED),))

    result = report(
        next_pass(
            inputs(),
            first.memory,
            changes=change_set(changes_of(QWEN), delete),
            outcome=replace(pruned, units=outcome(QWEN, applied=True).units),
        )
    )

    assert Sync.SYNCED is words(result, GATEWAY)[0]


def test_surge_copies_are_not_replicas():
    """An autoscaler that saw 5 of 4 would think that load was met already."""
    result = report(inputs(plan=plan(decision(ready=5))))

    assert 4 == counts(result).ready


def test_a_stuck_replica_is_told_with_its_node_and_reason():
    stuck = ServiceState(QWEN, (placed(QWEN, "l4-od-4", ReplicaPhase.STUCK, "CUDA OOM"),))

    result = report(inputs(plan=plan(decision(ready=3)), snapshot=snapshot(stuck)))

    entry = status(result)["attention"][0]
    assert {"node": "l4-od-4", "kind": "CUDA OOM", "at": "2026-11-29T03:05:02Z"} == entry["cause"]


def test_a_node_that_is_left_out_needs_attention_although_the_service_is_well():
    left_out = Attempt("l4-od-9", "l4-od", "until 2026-11-29T03:15:02Z: 1 start", "quarantined")

    result = report(inputs(plan=plan(decision(attempts=(left_out,)))))

    entry = status(result)["attention"][0]
    assert (Health.HEALTHY, "NodesQuarantined") == (words(result)[1], entry["reason"])
    assert "l4-od-9 left out until 2026-11-29T03:15:02Z: 1 start" == entry["next"]
    assert [] == status(report(inputs()))["attention"]


def test_a_notice_on_a_node_is_the_cause():
    nodes = (node("l4-od-1", notice=Notice("SpotNotice", NOW - 60_000)),)

    now = replace(three_of_four(), snapshot=snapshot(ready_on(QWEN, 3), nodes=nodes))
    entry = status(report(now))["attention"][0]

    assert ("l4-od-1", "SpotNotice") == (entry["cause"]["node"], entry["cause"]["kind"])


def test_a_leaving_deployment_is_not_yet_synced():
    """`stoker wait --for Synced` must not return while the old replicas still drain."""
    leaving = Retirement("qwen-7b-old", "uid", RetireStage.DRAIN, "surplus")

    result = report(inputs(changes=change_set(changes_of(QWEN, retirements=(leaving,)))))

    assert Sync.OUT_OF_SYNC is words(result)[0]


def test_a_service_that_was_never_created_in_mode_observe_is_missing():
    observed = fleet(mode=FleetMode.OBSERVE)
    result = report(
        inputs(
            desired=desired(service(), fleet=observed),
            snapshot=snapshot(),
            plan=plan(decision(ready=0)),
            changes=change_set(changes_of(QWEN, Change(object_ref("qwen-7b"), Action.CREATE))),
            live=Live(),
        )
    )

    assert (Sync.OUT_OF_SYNC, Health.MISSING) == words(result)
    assert ("False", "Observing") == said(result, "Reconciling")
    assert "Observed" == status(result)["history"][0]["result"]
