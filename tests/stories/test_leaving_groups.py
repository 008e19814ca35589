"""Leaving with replicas over several nodes: LeaderWorkerSets stay, or drain and go whole."""

from __future__ import annotations

import pytest

from stoker.model.workload import LWS_GROUP, LWS_KIND
from stoker.objects import names
from stories.files import a_fleet, the_fleet
from stories.groups import a_group_service, a_world, engines, serving, sets
from stories.looks import as_it_stands, pod_uids


@pytest.fixture
def groups(new_world):
    """A service of two groups, at rest; `policy` is the fleet's deletionPolicy."""

    def made(policy: str):
        world = a_world(new_world)
        files = the_fleet(a_group_service(replicas=2), fleet=a_fleet(deletionPolicy=policy))
        world.commit("First", files)
        world.settle()
        return world

    return made


def test_groups_stay_without_our_marks_and_no_pod_restarts(groups, leave):
    """What else looks after LeaderWorkerSets then finds them as anybody's."""
    world = groups("Orphan")
    specs = {each["metadata"]["name"]: each["spec"] for each in sets(world)}
    standing, pods = as_it_stands(world), pod_uids(world)
    assert 2 == len(specs)

    code, out, err = leave(world, "--yes")

    assert (0, "") == (code, "" if code == 0 else err)
    assert "released field manager; 0 pods restarted" in out.splitlines()[-1]
    after = world.objects(LWS_GROUP, LWS_KIND, "llm")
    assert specs == {each["metadata"]["name"]: each["spec"] for each in after}
    assert [] == [
        key
        for each in after
        for place in ("annotations", "labels")
        for key in each["metadata"].get(place) or {}
        if key.startswith("stoker.dev/")
    ]
    ours = names.manager_of(names.fleet_id_of(world.cluster_uid, "local"))
    managers = {e["manager"] for each in after for e in each["metadata"]["managedFields"]}
    assert ours not in managers
    world.advance(30, passes=False)
    assert pods == pod_uids(world)
    assert standing == as_it_stands(world)
    assert 2 == len(serving(world))


def test_groups_drain_and_go_whole_with_the_fleet(groups, leave):
    """`deletionPolicy: Delete`: no worker outlives its leader, and the leader drains first."""
    world = groups("Delete")

    code, out, err = leave(world, "--yes", "--delete", "local")
    world.advance(30, passes=False)

    assert (0, "") == (code, "" if code == 0 else err)
    assert "deleted " in out.splitlines()[-1]
    assert () == world.objects(LWS_GROUP, LWS_KIND, "llm")
    assert [] == engines(world)
