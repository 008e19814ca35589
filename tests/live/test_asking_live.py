"""suspend, resume, override, reconcile and wait as people type them, beside a real controller.

On the real API server: that people's annotations survive the controller's applies, that its
watch sees them within a second, and that the CRDs keep what the commands wait for.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from live.running import until
from live.scene import Scene
from stoker.model.refs import ObjectRef
from stoker.objects.names import GROUP
from stoker.objects.wishes import OVERRIDE, SUSPEND
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer
from stories.files import OLD, a_config_map, a_service, the_fleet

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

MIRROR = ObjectRef(GROUP, "ModelService", "llm", "tiny", "v1alpha1")


def files(replicas: int, value: str = "first") -> dict[str, str]:
    drain = {"endpointSync": "1s", "max": "5s", "shutdown": "1s"}
    service = a_service(replicas=replicas, revision=OLD, drain=drain)
    return the_fleet(service, side={"side.yaml": a_config_map("side", {"key": value})})


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> Iterator[Scene]:
    """A fleet of one replica that serves, under a controller that polls Git once an hour."""
    folder = tmp_path_factory.mktemp("asking")
    with GitServer(folder / "git-host", {"stoker": "controller-s3cret", "dev": "d"}) as git:
        made = Scene(folder, own_control_plane, git)
        try:
            made.install()
            made.play_nodes("gpu=3x1")
            commit = made.commit(files(1), over_http=False)
            made.start("--listen", "", "--poll-interval", "1h")
            until(lambda: made.is_applied(commit))
            yield made
        finally:
            made.close()


@pytest.fixture
def stoker(scene):
    """Run a command: exit code, stdout, stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "stoker", *arguments),
                *("--kubeconfig", str(scene.plane.kubeconfig_path)),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    return command


def asked_of(scene) -> dict[str, str]:
    found: dict[str, str] = scene.cluster.get(MIRROR)["metadata"]["annotations"]
    return found


def test_a_person_takes_hold_of_a_service_and_gives_it_back(scene, stoker):
    here = ("--path", str(scene.work_tree))
    override = ("override", "tiny", "--replicas", "2", "--for", "1h", "--reason", "launch")

    # 1. An override is obeyed at once, and our writes of the mirror leave it alone.
    code, out, err = stoker(*override)
    assert (0, True) == (code, out.startswith("ModelService llm/tiny wants 2 until")), err
    assert 0 == stoker("wait", "tiny", "--for", "Ready", "--timeout", "90s", *here)[0]
    until(lambda: len(scene.serving()) == 2)
    until(lambda: scene.cluster.get(MIRROR)["status"]["countSource"] == "Override")
    assert OVERRIDE in asked_of(scene)

    # 2. Suspended, a commit changes nothing; reconcile polls Git and is answered.
    assert 0 == stoker("suspend", "llm/tiny", "--reason", "audit")[0]
    until(lambda: scene.cluster.get(MIRROR)["status"]["health"]["status"] == "Suspended")
    scene.commit(files(3, "second"), over_http=False)
    code, out, err = stoker("reconcile")
    assert 0 == code, err
    assert out.startswith("fleet local   ")
    until(lambda: scene.value() == "second")
    assert 2 == len(scene.serving())
    assert {SUSPEND, OVERRIDE} <= set(asked_of(scene))

    # 3. Given back, it is what Git says, and wait ends when it is so.
    assert 0 == stoker("override", "tiny", "--clear")[0]
    assert 0 == stoker("resume", "tiny")[0]
    code, out, err = stoker("wait", "tiny", "--for", "Synced=HEAD", "--timeout", "90s", *here)
    assert 0 == code, err
    assert "3 Ready" in out
    assert not {SUSPEND, OVERRIDE} & set(asked_of(scene))


def test_a_suspended_fleet_obeys_nobody_until_it_is_resumed(scene, stoker):
    before = scene.value()
    assert 0 == stoker("suspend", "fleet/local", "--reason", "audit", "--for", "1h")[0]
    fleet = ObjectRef(GROUP, "Fleet", "stoker-system", "local", "v1alpha1")
    until(lambda: scene.cluster.get(fleet)["status"]["health"]["status"] == "Suspended")
    scene.commit(files(3, "third"), over_http=False)
    assert 0 == stoker("reconcile")[0]
    assert before == scene.value()

    assert 0 == stoker("resume", "fleet/local")[0]
    until(lambda: scene.value() == "third")
