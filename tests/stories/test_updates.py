"""A new model revision: when the new comes before the old goes, when it waits, when it fails."""

from __future__ import annotations

from stoker.cli.world import WorldNode
from stoker.objects import names
from stoker.sim.kubelet_run import FaultKind, PodFault
from stories.files import NEW, OLD, a_patient_fleet, a_service, the_fleet
from stories.looks import (
    conditions,
    deployments,
    is_clean,
    message,
    pod_uids,
    rest,
    revisions,
    serving,
    unit_status,
    watch,
)

TINY = "ModelService/llm/tiny"
GOOD, BAD = "registry.example/vllm:0.28", "registry.example/vllm:broken"


def nodes(count: int) -> tuple[WorldNode, ...]:
    return tuple(WorldNode(f"gpu-{number}") for number in range(1, count + 1))


def tiny(replicas: int, revision: str = OLD, **spec) -> dict[str, str]:
    service = a_service(replicas=replicas, revision=revision, **spec)
    return the_fleet(service, fleet=a_patient_fleet())


def of_revision(world) -> tuple[int, int]:
    """How many replicas serve of the old and of the new revision."""
    found = [p["metadata"]["labels"][names.MODEL_REVISION_LABEL] for p in serving(world)]
    return sum(OLD.startswith(r) for r in found), sum(NEW.startswith(r) for r in found)


def test_with_a_gpu_free_the_new_revision_serves_before_an_old_one_goes(settled):
    """Never a replica fewer than wanted, never more than one beyond."""
    world = settled(tiny(2), *nodes(3))

    world.commit("New weights", tiny(2, NEW))
    seen = watch(world, 30, lambda: (*of_revision(world), len(world.objects("", "Pod", "llm"))))
    rest(world)

    assert 2 == min(old + new for old, new, _ in seen)
    assert 3 == max(pods for _, _, pods in seen)
    assert (1, 1) in {(old, new) for old, new, _ in seen}
    assert (0, 2) == of_revision(world)
    assert 2 == len(deployments(world))
    assert is_clean(world)


def test_with_no_gpu_free_one_leaves_first_and_never_more(settled):
    """cases.md row 61: with 4 replicas never below 4 - 1."""
    world = settled(tiny(4), *nodes(4))

    world.commit("New weights", tiny(4, NEW))
    seen = watch(world, 45, lambda: of_revision(world))
    rest(world)

    assert 3 == min(old + new for old, new in seen)
    assert (0, 4) == of_revision(world)
    assert is_clean(world)


def test_where_the_floor_forbids_it_the_change_is_held_until_there_is_room(settled):
    """The only replica can't go first; the hold says what would help, and ends by itself."""
    world = settled(tiny(1), *nodes(1))
    before = pod_uids(world)

    world.commit("New weights", tiny(1, NEW))
    seen = watch(world, 10, lambda: of_revision(world))

    status = unit_status(world, TINY)
    assert {(1, 0)} == set(seen)
    assert before == pod_uids(world)
    assert ("False", "HeldNoCapacity") == conditions(status)["Ready"]
    assert ("False", "NotStalled") == conditions(status)["Stalled"]
    assert "minReady below 1" in status["holds"][0]["remedy"]

    world.add_node(WorldNode("gpu-2"))
    seen = watch(world, 20, lambda: of_revision(world))
    rest(world)

    assert 1 == min(old + new for old, new in seen)
    assert (0, 1) == of_revision(world)
    assert is_clean(world)


def test_a_floor_of_zero_lets_the_only_replica_go_first(settled):
    world = settled(tiny(1, disruption={"minReady": 0}), *nodes(1))

    world.commit("New weights", tiny(1, NEW, disruption={"minReady": 0}))
    seen = watch(world, 20, lambda: of_revision(world))
    rest(world)

    assert (0, 0) in seen
    assert (0, 1) == of_revision(world)
    assert is_clean(world)


def test_a_new_revision_that_fails_stops_there_and_a_revert_needs_nothing_else(settled):
    """One bad replica may be its node's fault, two are the rev's: nothing more is bought, and
    the old ones serve on.
    """
    world = settled(tiny(2), *nodes(4))
    world.kubelet.faults.append(PodFault(FaultKind.IMAGE_PULL, image=BAD))
    before = pod_uids(world)

    world.commit("A bad image", tiny(2, engine={"type": "vllm", "image": BAD}))
    seen = watch(world, 30, lambda: of_revision(world))

    status = unit_status(world, TINY)
    assert {(2, 0)} == set(seen)
    assert before < pod_uids(world)
    assert 2 == len(pod_uids(world) - before)
    assert "UpdateFailed" in [hold["reason"] for hold in status["holds"]]
    assert "UpdateFailed" == conditions(status)["Ready"][1]
    assert "2 of the old rev still serving" in message(status, "Ready")

    world.commit("Revert", tiny(2))
    rest(world)

    assert before == pod_uids(world)
    assert 2 == len(deployments(world))
    assert is_clean(world)


def test_an_update_that_is_overtaken_by_the_next_one_ends_at_the_newest(settled):
    world = settled(tiny(2), *nodes(3))
    world.commit("New weights", tiny(2, NEW))
    world.advance(6)

    newest = "c" * 40
    world.commit("Newer weights", tiny(2, newest))
    seen = watch(world, 30, lambda: len(serving(world)))
    rest(world)

    assert 2 <= min(seen)
    assert {newest} == {r.ljust(40, "c") for r in revisions(world)}
    assert 2 == len(deployments(world))
    assert is_clean(world)


def test_an_update_goes_on_where_a_dead_controller_left_it(settled):
    """Progress is read from the cluster, never from memory."""
    world = settled(tiny(3), *nodes(4))
    world.commit("New weights", tiny(3, NEW))
    seen = []
    for _ in range(12):
        seen += watch(world, 4, lambda: sum(of_revision(world)))
        world.stop_controller()
    rest(world)

    assert 3 <= min(seen)
    assert (0, 3) == of_revision(world)
    assert 3 == len(deployments(world))
    assert is_clean(world)
