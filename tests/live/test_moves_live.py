"""Moves and updates on a real API server: the floor is kept at every look, not only at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from live.running import until
from live.scene import Scene
from stoker.model.refs import ObjectRef
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer
from stories.files import NEW, OLD, a_service, the_fleet

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

FLOOR = 2
UNIT = "modelservice.llm.tiny"
DRAIN = {"endpointSync": "1s", "max": "5s", "shutdown": "1s"}


def files(revision: str, **spec: Any) -> dict[str, str]:
    """Two replicas on three GPUs, of which none may be missing."""
    floor = {"minReady": FLOOR}
    service = a_service(replicas=2, revision=revision, drain=DRAIN, disruption=floor, **spec)
    return the_fleet(service)


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> Iterator[Scene]:
    """The fleet at rest, under a controller of its own process."""
    folder = tmp_path_factory.mktemp("moves")
    with GitServer(folder / "git-host", {"stoker": "controller-s3cret", "dev": "d"}) as git:
        made = Scene(folder, own_control_plane, git)
        try:
            made.install()
            made.play_nodes("gpu=3x1")
            commit = made.commit(files(OLD), over_http=False)
            made.start()
            until(lambda: made.is_applied(commit))
            yield made
        finally:
            made.close()


def watched(scene: Scene, check: Callable[[], bool]) -> list[int]:
    """How many served at each look, until it holds."""
    seen: list[int] = []

    def look() -> bool:
        seen.append(len(scene.serving()))
        return check()

    until(look)
    return seen


def cordon(scene: Scene, node: str, *, on: bool) -> None:
    """`kubectl cordon`, and `uncordon`."""
    ref = ObjectRef("", "Node", "", node, "v1")
    spec = {"unschedulable": True if on else None}
    scene.cluster.patch(ref, "merge", {"spec": spec}, manager="kubectl-cordon")


def test_a_cordoned_node_is_vacated_and_the_floor_is_kept(scene):
    """The successor serves before its node is left: else a full floor would be broken."""
    before = scene.pods()
    left = before[min(before)]["spec"]["nodeName"]

    cordon(scene, left, on=True)
    seen = watched(
        scene,
        lambda: left not in {pod["spec"].get("nodeName") for pod in scene.pods().values()},
    )
    seen += watched(scene, lambda: len(scene.serving()) == len(scene.pods()) == FLOOR)
    cordon(scene, left, on=False)

    assert FLOOR == min(seen)
    stayed = {name for name in before if before[name]["spec"]["nodeName"] != left}
    assert stayed < set(scene.pods()), "nobody else was restarted"


def test_an_update_pauses_after_the_first_and_then_goes_on(scene):
    scene.the_one()
    update = {"pause": {"afterReplicas": 1, "duration": "8s"}}

    commit = scene.commit(files(NEW, update=update), over_http=False)
    seen = watched(scene, lambda: scene.holds(UNIT) == ["UpdatePaused"])
    paused = Counter(scene.serving().values())
    seen += watched(scene, lambda: scene.is_applied(commit))

    assert 1 == paused[NEW]
    assert 1 <= paused[OLD]
    assert {NEW} == set(scene.serving().values())
    assert FLOOR == min(seen)
    assert [1, 1] == sorted(scene.placements().values())
