"""The next step of what leaves, read from its pods."""

from __future__ import annotations

import pytest

from builders import NOW_MS, a_node, a_notice, a_placement, a_replica
from stoker.model.fleet import Drain
from unit.decide.one import OLD, held, kept, leaving, planned

DRAIN = Drain(endpoint_sync_ms=15_000, max_ms=600_000, shutdown_ms=60_000)
NODE = [a_node("n1", gpus=8)]


def step(*pods, replicas=None, nodes=NODE, **fields):
    """Stage, pods and wake-up (seconds from now) of a Deployment of a service at zero."""
    live = a_placement("n1", *pods, replicas=replicas, **fields)
    plan = planned(live, nodes=nodes, replicas=0, drain=DRAIN)
    ((stage, names, _),) = leaving(plan.decisions[0])
    wake = None if plan.wake_at_ms is None else (plan.wake_at_ms - NOW_MS) / 1_000
    return stage, names, wake


def draining(seconds, in_flight=0, phase="Ready", name="p", **fields):
    return a_replica(name, "n1", phase, draining_for=seconds, in_flight=in_flight, **fields)


def test_a_ready_pod_loses_its_traffic_first():
    assert ("StopTraffic", ("p",), None) == step(a_replica("p"))


@pytest.mark.parametrize("phase", ["Starting", "Pending", "ImagePull", "Stuck"])
def test_a_pod_that_is_not_ready_serves_nobody_and_is_not_drained(phase):
    assert ("ScaleToZero", ("p",), None) == step(a_replica("p", phase=phase))


@pytest.mark.parametrize(
    ("pod", "stage", "wake"),
    [
        (draining(5), "Drain", 10),
        (draining(14), "Drain", 1),
        (draining(15), "ScaleToZero", None),
        (draining(15, in_flight=1), "Drain", 2),
        (draining(614, in_flight=1), "Drain", 1),
        (draining(615, in_flight=1), "ScaleToZero", None),
        (draining(60, in_flight=None), "Drain", 2),
        (draining(615, in_flight=None), "ScaleToZero", None),
        (draining(5, in_flight=None, phase="Starting"), "ScaleToZero", None),
        (draining(5, in_flight=0, phase="Starting"), "ScaleToZero", None),
        (draining(20, in_flight=2, phase="Starting"), "Drain", 2),
    ],
    ids=[
        "endpoints settle",
        "endpoints almost settled",
        "idle",
        "busy",
        "busy, almost over",
        "over",
        "no answer counts as busy",
        "no answer, over",
        "dead",
        "not Ready and idle",
        "not Ready but busy",
    ],
)
def test_a_drain_ends_when_settled_and_idle_or_when_its_time_is_over(pod, stage, wake):
    assert (stage, ("p",), wake) == step(pod)


def test_all_pods_of_a_deployment_wait_for_the_slowest():
    pods = [draining(60, name="a"), draining(60, name="b", in_flight=3)]

    assert ("Drain", ("b",), 2) == step(*pods)


def test_pods_that_still_serve_lose_their_traffic_while_others_drain():
    assert ("StopTraffic", ("b",), 2) == step(draining(60, name="a", in_flight=1), a_replica("b"))


def test_a_label_that_somebody_else_took_off_begins_no_drain():
    assert ("StopTraffic", ("p",), None) == step(a_replica("p", traffic=False))


def test_a_drain_on_a_noticed_node_ends_in_time_for_the_shutdown():
    """cases.md row 129: the node goes 70 s from now, the engine needs 60."""
    nodes = [a_node("n1", notice=a_notice(70))]

    assert ("Drain", ("p",), 2) == step(draining(60, in_flight=1), nodes=nodes)
    late = [a_node("n1", notice=a_notice(60))]
    assert ("ScaleToZero", ("p",), None) == step(draining(60, in_flight=1), nodes=late)


def test_a_deadline_that_is_past_waits_for_nothing():
    """cases.md row 135: the deadline was 10 s ago."""
    nodes = [a_node("n1", notice=a_notice(-10))]

    assert ("ScaleToZero", ("p",), None) == step(draining(1, in_flight=9), nodes=nodes)


@pytest.mark.parametrize("late", [0, 10, 86_400], ids=["now", "past", "long past"])
def test_a_deadline_that_is_past_still_takes_the_traffic_off_first(late):
    """What follows is the pod's own grace period, and nothing of ours is faster than that."""
    nodes = [a_node("n1", notice=a_notice(-late))]
    live = a_placement("n1", a_replica("p"))
    plan = planned(live, nodes=nodes, replicas=1, drain=DRAIN)

    assert [("StopTraffic", ("p",), 0)] == leaving(plan.decisions[0])


def test_a_notice_without_a_deadline_shortens_no_drain():
    nodes = [a_node("n1", notice=a_notice(None))]

    assert ("Drain", ("p",), 2) == step(draining(60, in_flight=1), nodes=nodes)


def test_a_deployment_at_zero_waits_for_its_last_pod_and_is_then_deleted():
    assert ("ScaleToZero", ("p",), None) == step(a_replica("p", phase="Terminating"), replicas=0)
    assert ("Delete", (), None) == step(replicas=0)


def test_a_deployment_that_never_got_a_pod_goes_to_zero_first():
    assert ("ScaleToZero", (), None) == step(replicas=2)


def test_nothing_is_lowered_or_deleted_before_every_pod_was_seen():
    """The room of a pod that was never seen would be given away while it still holds it."""
    assert ("Drain", (), None) == step(replicas=2, unsettled=True)
    assert ("ScaleToZero", (), None) == step(replicas=0, unsettled=True)


def test_traffic_stops_even_while_not_every_pod_was_seen():
    assert ("StopTraffic", ("p",), None) == step(a_replica("p"), unsettled=True)


def test_surplus_pods_of_a_standing_deployment_leave_by_name():
    pods = [a_replica("a"), draining(60, name="b"), draining(60, name="c", in_flight=1)]
    plan = planned(a_placement("n1", *pods), nodes=NODE, replicas=1, drain=DRAIN)
    (decision,) = plan.decisions

    assert [("Drain", ("c",), 1)] == leaving(decision)
    assert {"n1": 3} == kept(decision)


def test_a_count_that_was_lowered_already_is_left_to_the_replica_set():
    """The drained pod is not a replica any more although it still stands."""
    live = a_placement("n1", a_replica("a"), draining(60, name="b"), replicas=1)
    decision = planned(live, nodes=NODE, replicas=1).decisions[0]

    assert ({"n1": 1}, []) == (kept(decision), leaving(decision))


def test_wake_ups_are_the_earliest_of_all_services_deadlines():
    one = a_placement("n1", draining(5), rev=OLD)
    two = a_placement("n2", a_replica("q", "n2", draining_for=60, in_flight=1), rev=OLD)
    plan = planned(one, two, nodes=[*NODE, a_node("n2")], replicas=0, drain=DRAIN)

    assert NOW_MS + 2_000 == plan.wake_at_ms
    assert [] == held(plan.decisions[0])
