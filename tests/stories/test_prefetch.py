"""Weights come to the next-best node before a replica does, and leave with the wish."""

from __future__ import annotations

from stoker.model.refs import ObjectRef
from stories.files import FLEET, NEW, a_fleet, a_service, the_village
from stories.looks import counts_by_node, is_clean, tell, unit_status

UNIT = "ModelService/llm/tiny"
NOT_AHEAD = {"type": "HostPath", "path": "/mnt/nvme", "rootDisk": "Refuse"}
AHEAD = {**NOT_AHEAD, "prefetch": {"nodes": 1}}
FILE = "models/tiny.yaml"


def jobs(world):
    return {
        job["metadata"]["annotations"]["stoker.dev/node"]: job["metadata"]["name"]
        for job in world.objects("batch", "Job", "llm")
        if not job["metadata"].get("deletionTimestamp")
    }


def finish(world, name):
    """Play the Job controller: this one has succeeded."""
    condition = {
        "type": "Complete",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    ref = ObjectRef("batch", "Job", "llm", name)
    patch = {"status": {"conditions": [condition]}}
    world.cluster.patch(ref, "merge", patch, manager="job-controller", subresource="status")


def test_a_job_is_made_once_kept_when_done_and_deleted_with_the_wish(settled):
    """Prune never: whatever the fleet says of pruning, a Job that is over goes."""
    files = the_village(tiny=a_service(cache=AHEAD), other=a_service("other", replicas=0))
    world = settled({**files, FLEET: a_fleet(prune={"mode": "Never"})})
    (held,) = counts_by_node(world)
    found = jobs(world)

    assert 1 == len(found)
    assert held not in found
    assert [{"node": next(iter(found)), "state": "Running"}] == unit_status(world, UNIT)[
        "prefetches"
    ]
    assert is_clean(world)

    world.advance(5)
    assert found == jobs(world)

    world.commit("Stop", {FILE: a_service(cache=NOT_AHEAD)})
    tell(world)

    assert {} == jobs(world)
    assert {held: 1} == counts_by_node(world)
    assert is_clean(world)


def test_another_model_revision_fetches_anew(settled):
    world = settled(the_village(tiny=a_service(cache=AHEAD), other=a_service("other", replicas=0)))
    (before,) = jobs(world).values()

    world.commit("Update", {FILE: a_service(cache=AHEAD, revision=NEW)})
    world.settle()

    (after,) = jobs(world).values()
    assert before != after
    assert is_clean(world)


def test_a_replica_moves_to_the_node_that_was_fetched_to(settled):
    world = settled(the_village(tiny=a_service(cache=AHEAD), other=a_service("other", replicas=0)))
    ((node, name),) = jobs(world).items()
    finish(world, name)
    world.advance(2)

    assert {node: name} == jobs(world), "a done Job is the word that the node is warm"

    world.commit("Two", {FILE: a_service(cache=AHEAD, replicas=2)})
    world.settle()

    assert 1 == counts_by_node(world)[node]
    assert node not in jobs(world)
