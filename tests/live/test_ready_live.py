"""`dependsOn[].ready` under a real controller and API server: its watch brings the answer.

The status that the expression asks of changes nobody's health, and Git is polled once an hour.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from live.running import until
from live.scene import Scene
from stoker.kube.errors import NotFound
from stoker.model.refs import ObjectRef
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer
from stories.files import a_config_map
from stories.test_ready import ANNOUNCED, LATE, a_village_with, announce

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


@pytest.fixture
def scene(tmp_path, own_control_plane: ControlPlane) -> Iterator[Scene]:
    """A unit that waits, under a controller that polls Git once an hour."""
    with GitServer(tmp_path / "git-host", {"stoker": "controller-s3cret", "dev": "d"}) as git:
        made = Scene(tmp_path, own_control_plane, git)
        try:
            made.install()
            late = {"m.yaml": a_config_map("m")}
            made.commit(a_village_with(late, ready=ANNOUNCED), over_http=False)
            made.start("--listen", "", "--poll-interval", "1h")
            yield made
        finally:
            made.close()


def is_there(scene: Scene) -> bool:
    try:
        scene.cluster.get(ObjectRef("", "ConfigMap", "llm", "m", "v1"))
    except NotFound:
        return False
    return True


def test_a_unit_goes_on_as_soon_as_the_object_it_waits_for_changes(scene):
    kind, namespace, name = LATE.split("/")
    path = f"units/{kind.lower()}.{namespace}.{name}.yaml"

    def ready() -> tuple[str, str]:
        told = [c for c in scene.status(path).get("conditions", ()) if c["type"] == "Ready"]
        return (told[0]["status"], told[0]["message"]) if told else ("", "")

    until(lambda: f"{ANNOUNCED} is false" in ready()[1])
    assert not is_there(scene)

    announce(scene, "True")

    until(lambda: is_there(scene))
    until(lambda: ready()[0] == "True")
