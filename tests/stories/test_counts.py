"""From no replica to some, to more, to fewer, to none; and what a lost node does."""

from __future__ import annotations

from itertools import pairwise

from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.nodes import Weights
from stories.files import OLD, URI, a_patient_fleet, a_service, example, the_fleet
from stories.looks import (
    conditions,
    counts_by_node,
    deployments,
    fleet_status,
    is_clean,
    pod_uids,
    rest,
    serving,
    standing,
    unit_status,
    watch,
)

TINY = "ModelService/llm/tiny"
NODES = (WorldNode("gpu-1"), WorldNode("gpu-2"), WorldNode("gpu-3"))


def tiny(replicas: int, **spec) -> dict[str, str]:
    return the_fleet(a_service(replicas=replicas, **spec), fleet=a_patient_fleet())


def ready_count(world) -> int:
    return len(serving(world))


# --------------------------------------------------------------------------- starts
def test_the_first_placement_serves_within_seconds_and_says_so(new_world):
    """The quickstart: commit two files, get two replicas on two nodes."""
    world = new_world()

    world.commit("Quickstart", example("quickstart"))
    rest(world)

    replicas = unit_status(world, "ModelService/llm/qwen-0-5b")["replicas"]
    assert {"gpu-1": 1, "gpu-2": 1} == counts_by_node(world, "qwen-0-5b")
    assert 2 == len(serving(world, "qwen-0-5b"))
    assert {"desired": 2, "ready": 2, "warming": 0, "floor": 1, "stuck": 0} == replicas
    assert is_clean(world)


def test_a_replica_starts_where_its_weights_are(new_world):
    world = new_world()
    world.kubelet.node_states.note("gpu-3", Weights(URI, OLD, 1024**3), complete=True)

    model = {"uri": URI, "revision": OLD, "size": "60Gi"}
    cache = {"type": "HostPath", "path": "/mnt/models", "rootDisk": "Refuse"}
    world.commit("First", tiny(1, model=model, cache=cache))
    rest(world)

    assert {"gpu-3": 1} == counts_by_node(world)
    assert is_clean(world)


def test_every_pod_runs_where_its_deployment_says(settled):
    """Where a pod landed is where it is: the plan must not fight the scheduler."""
    world = settled(tiny(3), *NODES)

    decided = {d["metadata"]["name"]: d["metadata"]["annotations"] for d in deployments(world)}
    for pod in serving(world):
        name = pod["metadata"]["name"].rsplit("-", 2)[0]
        assert decided[name][names.NODE] == pod["spec"]["nodeName"]


def test_more_replicas_than_gpus_are_held_until_a_node_joins(settled):
    """WhenFull is Hold: the rest serves, the hold says what it waits for, and ends by itself."""
    world = settled(tiny(2), WorldNode("gpu-1"))

    status = unit_status(world, TINY)
    assert ("False", "HeldNoCapacity") == conditions(status)["Ready"]
    assert ("False", "NotStalled") == conditions(status)["Stalled"]
    assert "1 free GPU on one node of gpu" in status["holds"][0]["remedy"]
    assert 1 == ready_count(world)
    assert 1 == fleet_status(world)["summary"]["held"]

    world.add_node(WorldNode("gpu-2"))
    rest(world)

    assert {"gpu-1": 1, "gpu-2": 1} == counts_by_node(world)
    assert is_clean(world)


# ------------------------------------------------------------------------ up and down
def test_scaling_up_starts_what_is_missing_and_leaves_the_rest_alone(settled):
    world = settled(tiny(1), *NODES)
    before = pod_uids(world)

    world.commit("Up", tiny(3))
    lowest = min(watch(world, 8, lambda: ready_count(world)))
    rest(world)

    assert 1 == lowest
    assert before < pod_uids(world)
    assert {"gpu-1": 1, "gpu-2": 1, "gpu-3": 1} == counts_by_node(world)
    assert is_clean(world)


def test_scaling_down_drains_before_it_deletes(settled):
    """No request is cut off: traffic goes first, the pod when its engine is idle."""
    drain = {"endpointSync": "2s", "max": "60s", "shutdown": "1s"}
    world = settled(tiny(2, drain=drain), *NODES)
    busy = {"requests": 3}
    world.work.parts.observer.load_probe = lambda address: busy["requests"]
    before = pod_uids(world)

    world.commit("Down", tiny(1, drain=drain))
    seen = watch(world, 10, lambda: (ready_count(world), len(world.ready_pods())))

    assert (1, 2) == seen[-1], "traffic is off, the pod still works on its requests"
    assert {1} == {serving_now for serving_now, _ in seen[1:]}
    assert before == pod_uids(world)
    draining = [p for p in world.ready_pods() if names.DRAINING_SINCE in _annotations(p)]
    assert 1 == len(draining)

    busy["requests"] = 0
    world.advance(8)

    assert 1 == len(world.ready_pods())

    rest(world)

    assert 1 == len(deployments(world))
    assert 1 == ready_count(world)
    assert is_clean(world)


def test_a_drain_without_an_end_is_ended_at_its_longest(settled):
    """An engine that never gets idle, or never answers, must not hold a change for ever."""
    drain = {"endpointSync": "1s", "max": "6s", "shutdown": "1s"}
    world = settled(tiny(2, drain=drain), *NODES)
    world.work.parts.observer.load_probe = lambda address: None

    world.commit("Down", tiny(1, drain=drain))
    seen = watch(world, 12, lambda: len(world.ready_pods()))

    assert 2 == seen[5], "an unknown load is not an idle engine"
    assert 1 == seen[-1]


def test_scaling_down_never_goes_below_what_is_wanted_or_faster_than_told(settled):
    """Three leave one after the other: maxConcurrentMoves is 1."""
    nodes = (*NODES, WorldNode("gpu-4"))
    world = settled(tiny(4), *nodes)

    world.commit("Down", tiny(1))
    seen = watch(world, 40, lambda: ready_count(world))

    assert seen == sorted(seen, reverse=True)
    assert {4, 3, 2, 1} == {*seen, 4}
    assert all(earlier - later <= 1 for earlier, later in pairwise(seen))
    assert 1 == len(deployments(world))
    assert is_clean(world)


def test_nothing_wanted_is_asleep_and_wakes_again(settled):
    """cases.md row 89: 0 of 0 is healthy; its Service stays for whoever asks."""
    world = settled(tiny(1), *NODES)
    before = standing(world)

    world.commit("Asleep", tiny(0))
    rest(world)

    assert ("True", "ScaledToZero") == conditions(unit_status(world, TINY))["Healthy"]
    assert is_clean(world)
    assert [] == deployments(world)
    assert before["Service/tiny"] == standing(world)["Service/tiny"]

    world.commit("Awake", tiny(1))
    rest(world)

    assert 1 == ready_count(world)
    assert is_clean(world)


# ------------------------------------------------------------------------ nodes that go
def test_a_lost_node_costs_one_replica_which_starts_elsewhere(settled):
    """Its pods heal by themselves, Stoker or no Stoker: the node is only preferred."""
    world = settled(tiny(2), *NODES)

    world.kubelet.lose_node("gpu-1")
    world.cluster.delete(ObjectRef("", "Node", "", "gpu-1"))
    world.advance(2)
    lowest = ready_count(world)
    rest(world)

    assert 1 == lowest
    assert {"gpu-2", "gpu-3"} == {pod["spec"]["nodeName"] for pod in serving(world)}
    assert is_clean(world)


def test_a_lost_node_without_a_substitute_is_told_until_one_joins(settled):
    world = settled(tiny(2), *NODES[:2])

    world.cluster.delete(ObjectRef("", "Node", "", "gpu-1"))
    rest(world)

    status = unit_status(world, TINY)
    assert "False" == conditions(status)["Ready"][0]
    assert 1 == status["replicas"]["ready"]
    assert [TINY] == [entry["unit"] for entry in fleet_status(world)["attention"]]

    world.add_node(WorldNode("gpu-9"))
    rest(world)

    assert {"gpu-2", "gpu-9"} == {pod["spec"]["nodeName"] for pod in serving(world)}
    assert is_clean(world)


def test_a_cordoned_node_is_left_once_the_successor_serves(settled):
    """A person drains a node for maintenance: no replica fewer at any time."""
    world = settled(tiny(2), *NODES)
    node = ObjectRef("", "Node", "", "gpu-1")

    world.cluster.patch(node, "merge", {"spec": {"unschedulable": True}}, manager="kubectl")
    seen = watch(world, 20, lambda: ready_count(world))
    rest(world)

    assert 2 == min(seen)
    assert {"gpu-2", "gpu-3"} == {pod["spec"]["nodeName"] for pod in serving(world)}
    assert is_clean(world)


def test_a_spot_notice_is_answered_before_the_node_goes(settled):
    """Successor first, then the drain, all before the deadline."""
    world = settled(tiny(1), *NODES)
    now_ms = world.clock.now_ms()

    world.kubelet.node_states.give_notice(
        "gpu-1", "SpotNotice", at_ms=now_ms, deadline_ms=now_ms + 60_000
    )
    seen = watch(world, 25, lambda: ready_count(world))

    assert 1 <= min(seen)
    assert ["gpu-2"] == [pod["spec"]["nodeName"] for pod in world.ready_pods()]


def _annotations(pod) -> dict[str, str]:
    return pod["metadata"].get("annotations") or {}
