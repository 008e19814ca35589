"""`update`: the pause of a rollout, and what becomes of a revision that fails."""

from __future__ import annotations

from stoker.cli.world import WorldNode
from stoker.sim.kubelet_run import FaultKind, PodFault
from stories.files import NEW, OLD, a_patient_fleet, a_service, the_fleet
from stories.looks import (
    conditions,
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
BAD = "registry.example/vllm:broken"


def nodes(count: int) -> tuple[WorldNode, ...]:
    return tuple(WorldNode(f"gpu-{number}") for number in range(1, count + 1))


def tiny(replicas: int = 2, revision: str = OLD, **spec) -> dict[str, str]:
    service = a_service(replicas=replicas, revision=revision, **spec)
    return the_fleet(service, fleet=a_patient_fleet())


def broken(**spec) -> dict[str, str]:
    return tiny(engine={"type": "vllm", "image": BAD}, **spec)


def images(world) -> list[str]:
    """Images of all pods that are not on their way out, sorted."""
    pods = world.objects("", "Pod", "llm")
    alive = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
    return sorted(pod["spec"]["containers"][0]["image"] for pod in alive)


def test_a_pause_after_the_first_replica_lasts_as_long_as_it_says(settled):
    update = {"pause": {"afterReplicas": 1, "duration": "40s"}}
    world = settled(tiny(update=update), *nodes(3))

    world.commit("New weights", tiny(revision=NEW, update=update))
    world.until(lambda: len(revisions(world)) == 2, seconds=30)
    seen = watch(world, 35, lambda: sorted(r[0] for r in revisions(world)))
    status = unit_status(world, TINY)

    assert [["a", "b"]] * 35 == seen
    assert ("False", "UpdatePaused") == conditions(status)["Ready"]
    assert "goes on by itself at" in status["holds"][0]["remedy"]
    assert ("True", "Healthy") == conditions(status)["Healthy"]

    watch(world, 25, lambda: None)
    rest(world)

    assert {"b"} == {r[0] for r in revisions(world)}
    assert is_clean(world)


def test_a_pause_survives_the_controller(settled):
    """It counts from the instant that is remembered, not from the start of the process."""
    update = {"pause": {"afterReplicas": 1, "duration": "40s"}}
    world = settled(tiny(update=update), *nodes(3))
    world.commit("New weights", tiny(revision=NEW, update=update))
    world.until(lambda: len(revisions(world)) == 2, seconds=30)
    watch(world, 20, lambda: None)

    world.stop_controller()
    seen = watch(world, 15, lambda: len(revisions(world)))
    rest(world)

    assert {2} == set(seen)
    assert {"b"} == {r[0] for r in revisions(world)}
    assert is_clean(world)


def test_revert_takes_the_failed_replica_away_and_names_the_blocked_commit(settled):
    world = settled(tiny(update={"onFailure": "Revert"}), *nodes(4))
    world.kubelet.faults.append(PodFault(FaultKind.IMAGE_PULL, image=BAD))
    before = pod_uids(world)

    bad = world.commit("A bad image", broken(update={"onFailure": "Revert"}))
    seen = watch(world, 40, lambda: len(serving(world)))
    status = unit_status(world, TINY)

    assert 2 == min(seen)
    assert before == pod_uids(world)
    assert ("False", "UpdateFailed") == conditions(status)["Ready"]
    assert f"blocked {bad[:7]}" in message(status, "Ready")
    assert "OutOfSync" == status["sync"]["status"]

    world.stop_controller()
    watch(world, 20, lambda: None)
    assert before == pod_uids(world), "a new controller must not try the blocked revision"

    world.commit("More of it, still bad", broken(replicas=3, update={"onFailure": "Revert"}))
    watch(world, 20, lambda: None)
    assert ["registry.example/vllm:0.28"] * 3 == images(world)

    world.commit("A fix", tiny(replicas=3, revision=NEW, update={"onFailure": "Revert"}))
    rest(world)
    assert {"b"} == {r[0] for r in revisions(world)}
    assert is_clean(world)


def test_hold_keeps_the_failed_replicas_and_replaces_old_ones_that_are_lost(settled):
    """A bad commit must not make the service shrink with every node that goes."""
    world = settled(tiny(), *nodes(5))
    world.kubelet.faults.append(PodFault(FaultKind.IMAGE_PULL, image=BAD))
    world.commit("A bad image", broken())
    watch(world, 30, lambda: None)
    assert 2 == images(world).count(BAD)

    node = serving(world)[0]["spec"]["nodeName"]
    now_ms = world.clock.now_ms()
    world.kubelet.node_states.give_notice(
        node, "SpotNotice", at_ms=now_ms, deadline_ms=now_ms + 120_000
    )
    seen = watch(world, 30, lambda: len(serving(world)))

    assert 1 <= min(seen), "the floor, while no start of its kind is known to be quick enough"
    assert 2 == seen[-1]
    assert node not in {pod["spec"]["nodeName"] for pod in serving(world)}
    assert 2 == images(world).count(BAD)
    assert ("False", "UpdateFailed") == conditions(unit_status(world, TINY))["Ready"]


def test_under_hold_a_failure_that_passes_lets_the_update_go_on(settled):
    world = settled(tiny(), *nodes(4))
    fault = PodFault(FaultKind.IMAGE_PULL, image=BAD)
    world.kubelet.faults.append(fault)
    world.commit("An image that is not there yet", broken())
    watch(world, 30, lambda: None)
    assert 2 == images(world).count(BAD)

    world.kubelet.faults.remove(fault)
    watch(world, 60, lambda: None)
    rest(world)

    assert [BAD, BAD] == images(world)
    assert is_clean(world)
