"""Groups over several nodes on a real API server, with its scheduler and its own controllers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from live.group_controller import GroupController
from live.running import CLOCK, until
from live.scene import Scene, stays
from stoker.kube.errors import KindNotFound
from stoker.model.refs import ObjectRef
from stoker.model.workload import GROUP_KIND
from stoker.objects import names
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer
from stoker.sim.groups import group_definition
from stoker.sim.nodes import create_node, node_manifest
from stories.files import NEW, OLD, the_fleet
from stories.groups import a_group_service

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

ZONES = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
DRAIN = {"endpointSync": "1s", "max": "5s", "shutdown": "1s"}


def files(revision: str) -> dict[str, str]:
    return the_fleet(a_group_service(revision=revision, drain=DRAIN))


def sets(scene: Scene) -> list[dict[str, Any]]:
    """The LeaderWorkerSets that stay; none while their kind is not served."""
    try:
        return [body for body in scene.cluster.list(*GROUP_KIND, "llm").items if stays(body)]
    except KindNotFound:
        return []


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> Iterator[Scene]:
    """A pair of nodes in each of two zones, and a service of one group of two."""
    folder = tmp_path_factory.mktemp("groups")
    with GitServer(folder / "git-host", {"stoker": "controller-s3cret", "dev": "d"}) as git:
        made = Scene(folder, own_control_plane, git)
        controller = GroupController(own_control_plane)
        try:
            made.install()
            made.cluster.apply(group_definition(), manager="kubectl")
            for name, zone in ZONES.items():
                manifest = node_manifest(
                    name, labels={"pool": "gpu"}, zone=zone, now_ms=CLOCK.now_ms()
                )
                create_node(made.cluster, manifest)
            made.play_nodes()
            commit = made.commit(files(OLD), over_http=False)
            made.start()
            until(lambda: made.is_applied(commit))
            yield made
        finally:
            controller.close()
            made.close()


def whole(scene: Scene) -> set[str]:
    """Model revisions of groups that serve: the leader takes traffic, and all its pods are Ready."""
    pods = scene.pods()
    found = set()
    for name, revision in scene.serving().items():
        group = [pod for each, pod in pods.items() if each == name or each.startswith(f"{name}-")]
        ready = [
            any(
                c["type"] == "Ready" and c["status"] == "True"
                for c in (pod.get("status") or {}).get("conditions") or ()
            )
            for pod in group
        ]
        if ready == [True, True]:
            found.add(revision)
    return found


def test_a_group_stands_whole_in_one_zone(scene):
    """One LeaderWorkerSet of two pods, each on the node that was decided for it."""
    (made,) = sets(scene)
    decided = made["metadata"]["annotations"][names.NODES].split(",")
    bound = {pod["spec"]["nodeName"] for pod in scene.pods().values()}

    assert (1, 2) == (made["spec"]["replicas"], made["spec"]["leaderWorkerTemplate"]["size"])
    assert set(decided) == bound
    assert 1 == len({ZONES[node] for node in bound})
    assert 1 == len(whole(scene))
    manager = names.manager_of(scene.fleet_id)
    assert manager in {entry["manager"] for entry in made["metadata"]["managedFields"]}
    assert {} == scene.placements(), "no Deployment beside it"


def test_what_is_applied_comes_to_rest(scene):
    """What the API server fills in is no drift: nothing is written again."""
    (before,) = sets(scene)
    process = scene.the_one()
    passes = len(process.events("pass.ended"))
    commit = scene.commit({}, over_http=False)
    until(lambda: scene.is_applied(commit) and len(process.events("pass.ended")) > passes)

    (after,) = sets(scene)
    assert before["metadata"]["generation"] == after["metadata"]["generation"]
    assert before["metadata"]["uid"] == after["metadata"]["uid"]


def test_kubernetes_itself_lets_no_pod_of_the_only_group_be_evicted(scene):
    """Its disruption controller counts leader and worker, by the StatefulSets that own them."""
    ref = ObjectRef("policy", "PodDisruptionBudget", "llm", "tiny", "v1")

    until(lambda: scene.cluster.get(ref)["status"].get("currentHealthy") == 2)

    assert 0 == scene.cluster.get(ref)["status"]["disruptionsAllowed"]


def test_an_update_brings_a_second_group_before_the_first_goes(scene):
    (before,) = sets(scene)
    scene.the_one()
    commit = scene.commit(files(NEW), over_http=False)
    seen: list[set[str]] = []

    def look() -> bool:
        seen.append(whole(scene))
        return scene.is_applied(commit) and len(sets(scene)) == 1

    until(look)

    assert set() not in seen, "some group served at every look"
    assert {NEW} == whole(scene)
    (after,) = sets(scene)
    assert before["metadata"]["name"] != after["metadata"]["name"]
    zones = [
        {ZONES[node] for node in body["metadata"]["annotations"][names.NODES].split(",")}
        for body in (before, after)
    ]
    assert zones[0] != zones[1]
