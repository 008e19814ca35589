"""A fleet learns what its own starts take, says so, and leaves alone what stands."""

from __future__ import annotations

from stoker.model.start_samples import Starts
from stories.files import a_service, the_village
from stories.looks import unit_status

UNIT = "ModelService/llm/tiny"


def known(world):
    """What is kept of starts in the cluster."""
    maps = world.objects("", "ConfigMap", "stoker-system")
    texts = [each.get("data", {}).get("starts", "") for each in maps]
    return next((Starts.from_text(text) for text in texts if text), Starts())


def test_starts_of_the_fleet_are_kept_once_each_and_shown(settled):
    """Two replicas start; nothing is followed any more once they are Ready."""
    world = settled(the_village(tiny=a_service(replicas=2)))
    found = known(world)
    pods = {pod["metadata"]["uid"] for pod in world.ready_pods()}

    assert sum(len(ring) for _, ring in found.rings) <= len(pods)
    assert found.rings
    assert () == found.open
    assert all(sample.total_ms > 0 for _, ring in found.rings for sample in ring)

    world.advance(5)
    assert found == known(world)
    assert pods == {pod["metadata"]["uid"] for pod in world.ready_pods()}
    nodes = unit_status(world, UNIT).get("nodes", ())
    assert {"prior"} == {each["estimate"] for each in nodes if "readyIn" in each}
