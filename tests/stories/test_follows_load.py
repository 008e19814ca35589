"""A count that follows load: up with it, down after it, and never because nothing was measured."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from stoker.cli.world import World, WorldNode
from stoker.decide import explain
from stoker.model.readings import Reading, Sample, ServiceReadings, SignalAsk, Unmeasurable
from stoker.model.refs import UnitRef
from stoker.reconcile import Pass
from stories.files import a_fleet, a_service, the_fleet
from stories.looks import conditions, counts_by_node, rest, serving, unit_status

TINY = "ModelService/llm/tiny"
NODES = tuple(WorldNode(f"gpu-{number}") for number in range(1, 6))
SOURCES = [{"name": "main", "prometheus": {"url": "http://127.0.0.1:9090"}}]
QUEUE = {
    "name": "queue",
    "prometheus": {"source": "main", "query": "avg(vllm:num_requests_waiting{$pods})"},
    "targetPerReplica": "4",
}
RULE = {
    "algorithm": "Ratio",
    "minReplicas": 1,
    "maxReplicas": 4,
    "interval": "5s",
    "metrics": [QUEUE],
    "scaleDown": {"stabilizationWindow": "1m", "maxStep": 1},
}


@dataclass
class Told:
    """Measures what the story says; None: nothing can be measured."""

    queue: float | None = 0.0
    asked: list[SignalAsk] = field(default_factory=list)

    def latest(self, asks: tuple[SignalAsk, ...], now_ms: int) -> tuple[ServiceReadings, ...]:
        """The same for every service."""
        self.asked = list(asks)
        reading: Reading = Unmeasurable("unreachable", "connection refused", now_ms)
        if self.queue is not None:
            reading = Sample(self.queue, now_ms, 15_000)
        return tuple(ServiceReadings(ask.ref, metrics=(("queue", reading),)) for ask in asks)


def follows(**changes) -> dict[str, str]:
    service = a_service(replicas=None, scaling={**RULE, **changes})
    return the_fleet(service, fleet=a_fleet(metricSources=SOURCES, status={"flushInterval": "10s"}))


@pytest.fixture
def scaled(new_world) -> tuple[World, Told]:
    """A world whose service stands at its least count."""
    world, told = new_world(*NODES), Told()
    world.commit("First", follows())
    world.one_pass()
    assert world.work is not None
    world.work.parts.observer.measures = told
    rest(world)
    return world, told


def last(world: World) -> Pass:
    assert world.work is not None
    assert world.work.last is not None
    return world.work.last


def test_more_load_starts_replicas_and_less_lets_them_go_one_by_one(scaled):
    """Up at once to what the rule asks, down through the window and by steps of one."""
    world, told = scaled
    assert 1 == len(serving(world))
    told.queue = 12.0

    world.advance(1)
    assert 3 == sum(counts_by_node(world, "tiny").values())
    told.queue = 4.0
    rest(world)
    assert 3 == len(serving(world))

    told.queue = 0.0
    counts = set()
    for _ in range(40):
        world.advance(5)
        counts.add(len(serving(world)))
    assert {3, 2, 1} == counts
    assert 1 == len(serving(world))


def test_what_cannot_be_measured_changes_no_count_and_is_told(scaled):
    """Unknown is never zero: a dead Prometheus keeps every replica."""
    world, told = scaled
    told.queue = 8.0
    world.advance(1)
    told.queue = None

    rest(world)
    world.advance(300)

    status = unit_status(world, TINY)
    assert 2 == len(serving(world))
    assert ("False", "NoValidMetric") == conditions(status)["ScalingActive"]
    assert ("False", "Unmeasurable") == conditions(status)["MetricsAvailable"]
    assert "True" == conditions(status)["Ready"][0]


def test_the_most_that_git_allows_is_the_most(scaled):
    world, told = scaled
    told.queue = 1000.0

    world.advance(5)
    told.queue = 4.0
    rest(world)

    assert 4 == len(serving(world))
    told.queue = 40.0
    rest(world)
    status = unit_status(world, TINY)
    assert ("True", "Limited") == conditions(status)["ScalingLimited"]


def test_a_restarted_controller_keeps_the_count(scaled):
    """What it remembers lies in the cluster, and before its first reading nothing shrinks."""
    world, told = scaled
    told.queue = 8.0
    world.advance(1)
    told.queue = 4.0
    rest(world)

    world.start_controller()
    world.advance(120)

    assert 2 == len(serving(world))


def test_the_reason_names_the_rule_and_its_line(scaled):
    world, told = scaled
    told.queue = 12.0
    world.advance(1)
    found = last(world)
    assert found.desired is not None
    assert found.plan is not None

    lines = explain(found.desired, found.plan, UnitRef("ModelService", "llm", "tiny"))

    count = next(line for line in lines if line.startswith("COUNT"))
    assert "COUNT  3   Ratio: metric queue: 1 Ready x 12 / 4" in count
    assert "models/tiny.yaml" in count
    assert any("Ratio, 1 to 4, looks every 5s" in line for line in lines)


def test_pods_are_asked_for_by_name_and_only_where_they_serve(scaled):
    """`$pods` names the Ready pods: others' samples and those of the dead must not count."""
    world, told = scaled
    name = serving(world)[0]["metadata"]["name"]

    assert f'namespace="llm",pod=~"{name}"' == told.asked[0].selector
