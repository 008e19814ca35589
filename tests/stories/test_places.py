"""Where replicas run when room is short: nodes that are asked for, room that is given, spot."""

from __future__ import annotations

from stoker.cli.mirror_asks import annotate, find_mirror
from stoker.cli.world import WorldNode
from stoker.model.limits import WhenFull
from stoker.model.times import rfc3339
from stoker.objects import names
from stoker.objects.wishes import WHEN_FULL, text_of_when_full
from stories.files import a_fleet, a_patient_fleet, a_pool, a_service, the_fleet
from stories.looks import (
    conditions,
    counts_by_node,
    fleet_status,
    is_clean,
    rest,
    serving,
    unit_status,
    watch,
)

NODES = (WorldNode("gpu-1"), WorldNode("gpu-2"))
TINY = "ModelService/llm/tiny"


def tiny(replicas: int, **placement) -> dict[str, str]:
    placing = {"pools": [{"name": "gpu"}], **placement}
    return the_fleet(a_service(replicas=replicas, placement=placing), fleet=a_patient_fleet())


def test_a_replica_that_fits_nowhere_is_pending_until_a_node_is_added(new_world):
    """whenFull: Unpinned: the pod is there for a node autoscaler to see, and lands on its node."""
    world = new_world(WorldNode("gpu-1"))
    world.commit("Two", tiny(2, whenFull="Unpinned"))
    world.advance(20)

    pods = world.objects("", "Pod", "llm")
    assert {"gpu-1": 1, names.place_in_pool("gpu"): 1} == counts_by_node(world)
    assert [None] == [p["spec"].get("nodeName") for p in pods if not p["spec"].get("nodeName")]
    assert 1 == len(serving(world))

    before = {pod["metadata"]["uid"] for pod in pods}
    world.add_node(WorldNode("gpu-2"))
    rest(world)

    assert {"gpu-1", "gpu-2"} == {pod["spec"]["nodeName"] for pod in serving(world)}
    assert before == {pod["metadata"]["uid"] for pod in serving(world)}, "it is the same pod"
    assert is_clean(world)

    world.commit("One", tiny(1, whenFull="Unpinned"))
    rest(world)

    assert 1 == len(serving(world))
    assert is_clean(world)


def test_a_node_is_asked_for_by_hand_for_a_while_and_stays_in_use(new_world):
    """ux.md, 3 a.m.: `stoker override qwen-7b --when-full Unpinned --for 4h`."""
    world = new_world(WorldNode("gpu-1"))
    world.commit("Two", tiny(2))
    rest(world)
    assert {"gpu-1": 1} == counts_by_node(world)
    (hold,) = unit_status(world, TINY)["holds"]
    assert hold["newNode"].startswith("about ")

    now_ms = world.clock.now_ms()
    asked = find_mirror(world.cluster, "tiny", "", fleets=True)
    text = text_of_when_full(WhenFull.UNPINNED, "launch day", now_ms, now_ms + 600_000)
    annotate(world.cluster, asked, WHEN_FULL, text)
    rest(world)

    assert {"gpu-1": 1, names.place_in_pool("gpu"): 1} == counts_by_node(world)
    told = f"Unpinned until {rfc3339(now_ms + 600_000)}, Git says Hold: launch day"
    assert told == unit_status(world, TINY)["whenFull"]
    assert 1 == fleet_status(world)["summary"]["overrides"]

    world.add_node(WorldNode("gpu-2"))
    rest(world)
    before = {pod["metadata"]["uid"] for pod in serving(world)}
    world.clock.wait(600)
    rest(world)

    assert before == {pod["metadata"]["uid"] for pod in serving(world)}
    assert 2 == len(before)
    assert "whenFull" not in unit_status(world, TINY)
    assert is_clean(world)


def test_a_node_that_never_came_is_asked_for_no_longer_once_the_override_lapses(new_world):
    world = new_world(WorldNode("gpu-1"))
    world.commit("Two", tiny(2))
    rest(world)
    now_ms = world.clock.now_ms()
    asked = find_mirror(world.cluster, "tiny", "", fleets=True)
    text = text_of_when_full(WhenFull.UNPINNED, "", now_ms, now_ms + 60_000)
    annotate(world.cluster, asked, WHEN_FULL, text)
    world.advance(10)
    assert {"gpu-1": 1, names.place_in_pool("gpu"): 1} == counts_by_node(world)

    world.clock.wait(60)
    rest(world)

    assert {"gpu-1": 1} == counts_by_node(world)
    assert ["HeldNoCapacity"] == [h["reason"] for h in unit_status(world, TINY)["holds"]]


def test_an_important_service_gets_the_room_of_a_lower_one_without_loss(new_world):
    world = new_world(*NODES)
    low = a_service("low", replicas=2, disruption={"minReady": 1})
    world.commit("Low", the_fleet(low))
    rest(world)
    placing = {"pools": [{"name": "gpu"}], "reclaim": "LowerPriority"}
    top = a_service("top", priority=100, placement=placing)
    world.commit("Top", the_fleet(low, top))

    lowest = min(watch(world, 30, lambda: len(serving(world, "low"))))
    rest(world)

    assert (1, 1, 1) == (lowest, len(serving(world, "low")), len(serving(world, "top")))
    gives = unit_status(world, "ModelService/llm/low")
    assert "HeldNoCapacity" == conditions(gives)["Ready"][1]
    assert {pod["spec"]["nodeName"] for pod in serving(world, "top")} <= {"gpu-1", "gpu-2"}


def test_the_share_on_spot_holds_through_an_update(new_world):
    """Old and new stand together for a while, and no second one on spot."""
    spot = WorldNode("spot-1", {"pool": "spot"}, spot=True)
    world = new_world(*NODES, spot, WorldNode("spot-2", {"pool": "spot"}, spot=True))
    pools = [a_pool("gpu"), a_pool("spot", capacityType="Spot")]
    placing = {"pools": [{"name": "spot"}, {"name": "gpu"}], "spot": {"maxPercent": 50}}

    def files(revision: str) -> dict[str, str]:
        service = a_service(replicas=2, revision=revision * 40, placement=placing)
        return the_fleet(service, fleet=a_fleet(pools=pools))

    def on_spot() -> int:
        nodes = [pod["spec"].get("nodeName", "") for pod in world.objects("", "Pod", "llm")]
        return sum(node.startswith("spot") for node in nodes)

    world.commit("Old", files("a"))
    rest(world)
    assert 1 == on_spot()
    world.commit("New", files("b"))
    most = max(watch(world, 40, on_spot))
    rest(world)

    assert 1 == most
    assert on_spot() <= 1
    assert is_clean(world)
