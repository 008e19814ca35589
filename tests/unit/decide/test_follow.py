"""A count that follows load, in whole decisions: facts from the cluster, owners, memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    NOW_MS,
    REV,
    a_desired,
    a_node,
    a_placement,
    a_pool,
    a_ref,
    a_replica,
    a_service,
    a_shape,
    a_snapshot,
    a_state,
    a_unit,
)
from stoker.decide import decide
from stoker.decide.case import case_from
from stoker.decide.follow import count_facts
from stoker.decide.place import Index
from stoker.model.fleet import PlacementMode, WhenFull
from stoker.model.flow import Held, HeldBy, Override, UnreadOverride
from stoker.model.history import History, UnitHistory
from stoker.model.readings import LoadReading, Sample, ServiceReadings
from stoker.model.scale_history import ScaleHistory
from stoker.model.scaling import Scaling, ScalingMode
from stoker.model.snapshot import ReplicaPhase
from unit.decide.scaling import a_ratio, metric

REF = a_ref("qwen")
SPEC = a_ratio(metric("queue", 5.0))
HOUR = 3_600_000


def measured(queue=None, **fields):
    metrics = () if queue is None else (("queue", Sample(float(queue), NOW_MS, 60_000)),)
    return ServiceReadings(REF, metrics=metrics, **fields)


def plan(*placements, spec=SPEC, given=None, past=None, nodes=4, **asked):
    """One pass; `past` is the unit's history. By default each node has one L4."""
    unit = a_unit(
        replicas=None,
        scaling_mode=ScalingMode.STOKER,
        scaling=spec,
        **asked.pop("service", {}),
    )
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4"}
    found = [a_node(f"n{n}", gpus=1, labels=labels) for n in range(1, nodes + 1)]
    snapshot = a_snapshot(*found, services=[a_state(*placements)] if placements else ())
    snapshot = replace(snapshot, readings=(given,) if given else (), **asked.pop("seen", {}))
    desired = a_desired(unit, pools=(a_pool("l4", price_per_gpu_hour="0.80"),))
    desired = replace(desired, **asked)
    history = History(((REF, past),)) if past is not None else History()
    return decide(desired, (a_shape(unit, rev=REV),), snapshot, history, NOW_MS)


def one(*placements, **fields):
    return plan(*placements, **fields).decisions[0]


def remembered(found):
    return History.from_records(found.history).of(REF)


def test_load_decides_how_many_are_placed():
    """One Ready, twice the target waits in it: a second one starts."""
    decision = one(a_placement("n1"), given=measured(queue=10))

    assert (2, "Ratio") == (decision.replicas, decision.count.source)
    assert {"n1": 1, "n2": 1} == {p.node: p.count for p in decision.placements}
    assert decision.scale.why == "1 Ready x 10 / 5"


def test_what_is_decided_is_remembered():
    """The window, the step, and that it was Ready."""
    found = remembered(plan(a_placement("n1"), given=measured(queue=10)))

    assert (2, 2) == (found.wanted, found.scale.desired)
    assert (NOW_MS, True) == (found.scale.scaled_up_ms, found.scale.served)


def test_a_service_without_readings_keeps_what_stands():
    """The controller has just started; its history is lost."""
    decision = one(a_placement("n1"), a_placement("n2"))

    assert decision.replicas == 2
    assert decision.scale.held == "metric queue could not be measured: not measured yet"


def test_a_new_service_starts_with_one_replica():
    """Nothing stands and nothing is measured."""
    assert one().replicas == 1


def test_warming_and_stuck_replicas_are_told_apart():
    """Capacity bought, and none; the stuck one's substitute is the placing's, not the count's."""
    warming = a_placement("n2", a_replica("w", "n2", phase=ReplicaPhase.STARTING))
    stuck = a_placement("n3", a_replica("s", "n3", phase=ReplicaPhase.STUCK, restarts=5))
    load = LoadReading(Sample(8.0, NOW_MS, 60_000), False, 500.0, 100.0)
    spec = Scaling(1, 9)
    decision = one(
        a_placement("n1"),
        warming,
        stuck,
        spec=spec,
        given=ServiceReadings(REF, load=load),
        past=UnitHistory(wanted=2),
    )

    assert (2, 1, 1) == (decision.replicas, decision.ready, decision.warming)


def test_an_override_outranks_the_load_and_leaves_no_trace():
    """What is not obeyed was no step; the rule's answer stands beside it."""
    override = Override(REF, 3, NOW_MS + HOUR, "load test")
    past = UnitHistory(3, scale=ScaleHistory(scaled_up_ms=7, served=True))
    found = plan(
        a_placement("n1"), given=measured(queue=0), past=past, seen={"overrides": (override,)}
    )
    decision = found.decisions[0]

    assert (3, "Override") == (decision.replicas, decision.count.source)
    assert "Ratio wants 1" in decision.count.detail
    assert (7, None) == (
        remembered(found).scale.scaled_up_ms,
        remembered(found).scale.scaled_down_ms,
    )


def test_an_override_that_cannot_be_read_lowers_nothing():
    """More may have been asked for."""
    unread = UnreadOverride(REF, "3 for ever")
    given = {"given": measured(queue=0), "seen": {"unread_overrides": (unread,)}}
    high = one(a_placement("n1"), past=UnitHistory(4), **given)
    low = one(a_placement("n1"), past=UnitHistory(1), **given)

    assert (4, "Override") == (high.replicas, high.count.source)
    assert (1, "Ratio") == (low.replicas, low.count.source)
    assert "cannot be read" in low.count.refused


def test_a_live_autoscaler_outranks_the_load():
    """Hand-over from an HPA: its count stands while it is there, and every window starts when it
    goes.
    """
    home = a_placement(
        "",
        a_replica("a", "n1"),
        a_replica("b", "n2"),
        externally_scaled="HorizontalPodAutoscaler/x",
    )
    scheduler = {"placement_mode": PlacementMode.SCHEDULER}
    past = UnitHistory(2, scale=ScaleHistory(((1, 1),), desired=1, low_since_ms=1, served=True))
    spec = a_ratio(metric("queue", 5.0), window_s=60)
    beside = plan(home, spec=spec, given=measured(queue=0), past=past, service=scheduler)
    alone = replace(home, externally_scaled="")
    after = plan(
        alone, spec=spec, given=measured(queue=0), past=remembered(beside), service=scheduler
    )

    assert (2, None) == (beside.decisions[0].replicas, beside.decisions[0].scale)
    assert ScaleHistory(served=True) == remembered(beside).scale
    assert (2, "Ratio") == (after.decisions[0].replicas, after.decisions[0].count.source)


def test_a_cluster_that_could_not_be_read_is_not_asked_about():
    """No replica seen is not no replica."""
    past = UnitHistory(4, scale=ScaleHistory(served=True))
    found = plan(
        a_placement("n1"), given=measured(queue=0), past=past, seen={"unknown": (("pods", "403"),)}
    )

    assert (None, None) == (found.decisions[0].replicas, found.decisions[0].scale)
    assert past == remembered(found)


def test_a_suspended_service_says_what_load_would_ask_for():
    """And does nothing."""
    decision = one(
        a_placement("n1"), given=measured(queue=10), held=(Held(REF, HeldBy.SUSPENDED, "by hand"),)
    )

    assert (2, ()) == (decision.replicas, decision.placements)


def test_the_window_ends_without_any_event():
    """The plan wakes for it."""
    spec = a_ratio(metric("queue", 5.0), window_s=60)
    found = plan(a_placement("n1"), a_placement("n2"), spec=spec, given=measured(queue=0))

    assert found.wake_at_ms == NOW_MS + 60_000


@pytest.mark.parametrize("mode", list(PlacementMode))
def test_both_placement_modes_follow(mode):
    """Only the count is decided, or also where."""
    where = "" if mode is PlacementMode.SCHEDULER else "n1"
    decision = one(a_placement(where), given=measured(queue=10), service={"placement_mode": mode})

    assert decision.replicas == 2


@pytest.mark.parametrize(
    ("free", "when_full", "provisions"),
    [
        pytest.param(2, WhenFull.HOLD, False, id="where the next one would be placed"),
        pytest.param(1, WhenFull.HOLD, False, id="full: as where it stands"),
        pytest.param(1, WhenFull.UNPINNED, True, id="full, and a node may be asked for"),
    ],
)
def test_the_cold_start_is_that_of_the_next_replica(free, when_full, provisions):
    """Windows and purchases follow it; a node that has to be made takes minutes more."""
    spec = a_service(when_full=when_full)
    unit = a_unit(spec=spec)
    desired = a_desired(unit, pools=(a_pool("l4", price_per_gpu_hour="0.80"),))
    state = a_state(a_placement("n1"))
    case = case_from(REF, spec, a_shape(unit, rev=REV), desired.fleet, state)
    nodes = [a_node(f"n{n}", gpus=1) for n in range(1, free + 1)]
    snapshot = a_snapshot(*nodes, services=[state])
    index = Index(snapshot.nodes, snapshot.services, [case], {}, NOW_MS)
    facts = count_facts(case, index, None)

    made_ms = index.readiness_of_new(case).p90_ms

    assert provisions == (facts.cold_start_p90_ms == made_ms)
    assert facts.price_per_hour == 0.80
    assert (None, 1, 1) == (facts.wanted, facts.count, len(facts.pods))
