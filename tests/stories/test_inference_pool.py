"""An InferencePool beside the Service: it waits for its kind, and stands once that is there."""

from __future__ import annotations

from stoker.cli.world import WorldNode
from stoker.model.refs import ObjectRef
from stories.files import a_custom_kind, a_service, the_fleet
from stories.looks import serving, unit_status, watch

POOL = ObjectRef("inference.networking.k8s.io", "InferencePool", "llm", "tiny-pool", "v1")


def test_the_pool_waits_for_its_kind_and_comes_with_it(new_world):
    world = new_world(WorldNode("gpu-1"))
    world.commit("First", the_fleet(a_service(expose={"inferencePool": "tiny-pool"})))
    watch(world, 12, lambda: None)

    assert "kind-not-found" in str(unit_status(world, "ModelService/llm/tiny"))

    crd = the_fleet(kinds={"crd.yaml": a_custom_kind(POOL, "inferencepools")})
    world.commit("Kind", {path: text for path, text in crd.items() if "/kinds/" in path})
    watch(world, 20, lambda: None)

    (pool,) = world.objects(POOL.group, POOL.kind, "llm")
    assert {"stoker.dev/service": "tiny", "stoker.dev/traffic": "true"} == (
        pool["spec"]["selector"]["matchLabels"]
    )
    assert 1 == len(serving(world))
