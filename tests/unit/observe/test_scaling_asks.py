"""What is asked of whoever measures: the pods of services that scale, and where they answer."""

from __future__ import annotations

import pytest

from builders import a_desired, a_fleet, a_placement, a_replica, a_service, a_state, a_unit
from stoker.model.readings import PodTarget, Sample, ServiceReadings
from stoker.model.scaling import MetricSource, MetricSourceType, Scaling, ScalingMode
from stoker.objects import names
from stoker.observe import observe
from stoker.observe.pods import pod_facts
from stoker.observe.scaling_asks import asks_from
from unit.observe.observe_builders import (
    LLAMA,
    NOW,
    ScriptedCluster,
    deployment,
    desired,
    observer_of,
    pod,
    service_unit,
)

SCALING = Scaling(min_replicas=1, max_replicas=4)
SOURCE = MetricSource("main", MetricSourceType.PROMETHEUS, "http://prometheus:9090")


def own(name, address="10.0.0.7", *, uid="", port=None):
    ports = [{"containerPort": port}] if port else []
    raw = pod(
        name,
        metadata={"labels": {names.SERVICE_LABEL: "qwen"}, "uid": uid or f"uid-{name}"},
        status={"podIP": address},
        spec={"containers": [{"name": "engine", "ports": ports}]},
    )
    facts = pod_facts(raw).own
    assert facts is not None
    return facts


def asked(*replicas, pods=(), named=None, scaling=SCALING, **service):
    unit = a_unit(spec=a_service(scaling=scaling, scaling_mode=ScalingMode.STOKER, **service))
    found = asks_from(
        a_desired(unit, fleet=a_fleet(metric_sources=(SOURCE,))),
        [a_state(a_placement("n1", *replicas, replicas=len(replicas)))],
        named or {("llm", facts.uid.removeprefix("uid-")): facts for facts in pods},
    )
    (ask,) = found
    return ask


def test_pods_are_asked_for_with_uid_address_and_since_when_they_are_ready():
    ask = asked(
        a_replica("b", phase="Starting"),
        a_replica("a"),
        pods=(own("a", port=8123), own("b", "fd00::7")),
    )

    assert (SCALING, (SOURCE,)) == (ask.scaling, ask.sources)
    assert (
        PodTarget("a", "uid-a", "10.0.0.7:8123", ready=True, ready_ms=a_replica("a").since_ms),
        PodTarget("b", "uid-b", "[fd00::7]:8000", ready=False),
    ) == ask.pods


@pytest.mark.parametrize(
    "replica",
    [
        pytest.param(a_replica("b", draining_for=5), id="is drained"),
        pytest.param(a_replica("b", phase="Starting"), id="starts"),
        pytest.param(a_replica("b", phase="Terminating"), id="ends"),
    ],
)
def test_only_pods_that_take_traffic_stand_for_pods_in_promql(replica):
    ask = asked(a_replica("a"), a_replica("c.d"), replica)

    assert ask.selector == 'namespace="llm",pod=~"a|c[.]d"'


def test_without_a_ready_pod_the_selector_is_empty():
    """`pod=~""` would stand for every series without that label."""
    assert asked(a_replica("a", phase="Pending")).selector == ""


def test_the_address_of_a_pod_of_another_uid_is_not_taken():
    """The cache of pods may be newer than what stands, or older."""
    ask = asked(a_replica("a", phase="Ready"), named={("llm", "a"): own("a", uid="another")})

    assert ask.pods[0].address == ""


def test_services_that_do_not_scale_are_not_asked_for():
    assert asks_from(a_desired(a_unit()), [], {}) == ()


class Measured:
    """Whoever measures: one metric for each ask."""

    def __init__(self):
        self.asks = []

    def latest(self, asks, now_ms):
        self.asks.append(asks)
        sample = Sample(3.0, now_ms, 1_000)
        return tuple(ServiceReadings(ask.ref, metrics=(("queue", sample),)) for ask in asks)


def a_cluster():
    running = pod(
        metadata={
            "labels": {
                names.SERVICE_LABEL: "llama",
                names.PLACEMENT_LABEL: "x-1",
                names.TRAFFIC_LABEL: "true",
            }
        },
        status={
            "podIP": "10.0.0.7",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastTransitionTime": "2026-11-29T03:05:02Z",
                }
            ],
        },
    )
    return ScriptedCluster(deployment(), running)


def test_a_snapshot_carries_the_latest_readings():
    measured = Measured()
    unit = service_unit(scaling=SCALING, scaling_mode=ScalingMode.STOKER, replicas=None)
    seen = observe(observer_of(a_cluster(), measures=measured), desired(unit), NOW)

    ((ask,),) = measured.asks
    assert [("p1", "uid-p1", "10.0.0.7:8000", True)] == [
        (target.name, target.uid, target.address, target.ready) for target in ask.pods
    ]
    assert [LLAMA] == [readings.ref for readings in seen.snapshot.readings]


@pytest.mark.parametrize("measures", [None, Measured()])
def test_without_a_service_that_scales_nothing_is_measured(measures):
    seen = observe(observer_of(a_cluster(), measures=measures), desired(), NOW)

    assert seen.snapshot.readings == ()
