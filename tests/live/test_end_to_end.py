"""The whole product as people run it: processes, a Git host, a real API server, real engines.

A fleet repository behind smart HTTP with passwords, `stoker run` and `stoker dev nodes` as
processes, and everything read from outside: the status branch, kubectl's columns, the lease.
"""

from __future__ import annotations

import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from live.running import CLOCK, Running, until
from live.scene import REPLICAS, SIDE, USERS, Scene, files
from stoker.engine import serves_token
from stoker.kube.errors import NotFound
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.child import free_ports
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitFault, GitServer
from stories.files import NEW, OLD

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> Iterator[Scene]:
    """A fleet that serves, under a controller that leads."""
    folder = tmp_path_factory.mktemp("end-to-end")
    with GitServer(folder / "git-host", USERS) as git:
        made = Scene(folder, own_control_plane, git)
        try:
            made.install()
            made.play_nodes("gpu=3x1")
            commit = made.commit(files(OLD, made.new_value()))
            made.start()
            until(lambda: made.is_applied(commit))
            yield made
        finally:
            made.close()


def unchanged(scene: Scene, seconds: float, look: Callable[[], object]) -> None:
    """What one looks at stays as it is for so long."""
    before, end = look(), CLOCK.monotonic() + seconds
    while CLOCK.monotonic() < end:
        assert before == look()
        CLOCK.wait(0.5)


def test_a_fleet_repository_becomes_engines_that_serve_a_token(scene):
    scene.the_one()
    until(lambda: len(scene.serving()) == len(scene.pods()) == REPLICAS)
    addresses = [pod["metadata"]["annotations"][names.ADDRESS] for pod in scene.pods().values()]

    assert REPLICAS == len(addresses)
    assert all(serves_token(address, 10.0).ok for address in addresses)


def test_kubectl_and_the_status_branch_say_the_same(scene):
    scene.the_one()
    commit = scene.commit({})
    until(lambda: scene.is_applied(commit))

    def fleet() -> dict[str, Any]:
        return scene.columns("fleets", "stoker-system")

    until(lambda: fleet()["Revision"] == f"main@{commit[:7]}")
    shown = scene.columns("modelservices", "llm")
    unit = scene.status("units/modelservice.llm.tiny.yaml")
    assert ("Synced", "Healthy", "True") == (
        fleet()["Sync"],
        fleet()["Health"],
        fleet()["Ready"],
    )
    assert (REPLICAS, 0, REPLICAS) == (shown["Ready"], shown["Warming"], shown["Want"])
    assert (unit["sync"]["status"], unit["health"]["status"]) == (shown["Sync"], shown["Health"])


def test_a_commit_over_http_updates_the_fleet(scene):
    """A new model revision comes one replica after the other, never below the floor."""
    scene.the_one()
    until(lambda: len(scene.serving()) == REPLICAS)
    revision = NEW if OLD in scene.serving().values() else OLD
    value = scene.new_value()
    commit = scene.commit(files(revision, value))

    def is_new() -> bool:
        assert scene.serving(), "nothing serves"
        return {revision} == set(scene.serving().values()) and scene.is_applied(commit)

    until(is_new)
    until(lambda: sorted(scene.placements().values()) == [1, 1])
    assert value == scene.value()


def test_what_people_change_by_hand_is_set_right(scene):
    """A bare `kubectl scale` is drift; so are an edit and a delete."""
    scene.the_one()
    until(lambda: sorted(scene.placements().values()) == [1, 1])
    name = min(scene.placements())
    value = scene.value()
    service = ObjectRef("", "Service", "llm", "tiny", "v1")
    before = scene.cluster.get(service)["metadata"]["uid"]

    scene.scale(name, 3)
    until(lambda: scene.placements()[name] == 1)
    scene.scale(name, 0)
    # the dying pod may still hold its GPU: then another node is ready sooner
    until(lambda: [n for n in scene.placements().values() if n] == [1, 1])
    scene.cluster.patch(SIDE, "merge", {"data": {"key": "mine"}}, manager="kubectl-edit")
    until(lambda: scene.value() == value)
    scene.cluster.delete(service)
    until(lambda: _uid(scene, service) not in {"", before})
    until(lambda: len(scene.serving()) == REPLICAS)


def _uid(scene: Scene, ref: ObjectRef) -> str:
    try:
        return str(scene.cluster.get(ref)["metadata"]["uid"])
    except NotFound:
        return ""


def test_a_controller_ends_within_ten_seconds_and_hands_the_lease_over(scene):
    """Research c.1 row 6: the next one starts at once instead of after fifteen seconds."""
    process = scene.the_one()
    took = process.terminate(10.0)
    scene.running.remove(process)

    assert took < 10
    assert 0 == process.returncode
    assert "" == scene.lease()
    following = scene.start()
    until(lambda: following.events("controller.started"))
    assert until(lambda: scene.leads(following)) < 10
    value = scene.new_value()
    scene.commit(files(OLD, value))
    until(lambda: scene.value() == value)


def test_a_git_host_that_hangs_does_not_keep_a_controller_from_ending(scene):
    process = scene.the_one()
    scene.git.break_with(GitFault(hang=True))
    try:
        scene.cluster.patch(SIDE, "merge", {"data": {"key": "mine"}}, manager="kubectl-edit")
        until(lambda: scene.value() != "mine")
        took = process.terminate(10.0)
    finally:
        scene.git.heal()
    scene.running.remove(process)

    assert took < 10
    assert "" == scene.lease()


def test_an_api_server_that_hangs_does_not_keep_a_controller_from_ending(scene):
    """Requests are given thirty seconds, an end ten: what is then in flight is cut off."""
    process = scene.the_one()
    server = scene.plane.pid("kube-apiserver")
    commit = scene.commit(files(OLD, scene.new_value()))
    os.kill(server, signal.SIGSTOP)
    try:
        CLOCK.wait(3)
        took = process.terminate(11.0)
    finally:
        os.kill(server, signal.SIGCONT)
    scene.running.remove(process)

    assert took < 10.5
    scene.the_one()
    until(lambda: scene.is_applied(commit))


def test_of_two_controllers_one_waits_for_the_lease(scene):
    """It burns no processor while it waits, and takes over once the other is dead."""
    first = scene.the_one()
    second = scene.start()
    until(lambda: second.events("controller.started"))
    CLOCK.wait(2)
    burnt = _cpu_seconds(second)
    unchanged(scene, 6, lambda: (scene.lease(), len(second.events("pass.ended"))))

    assert scene.leads(first)
    assert [] == second.events("pass.ended")
    assert _cpu_seconds(second) - burnt < 3
    scene.end(first)
    value = scene.new_value()
    commit = scene.commit(files(OLD, value))
    assert until(lambda: scene.leads(second)) <= 15 + 2 + 5
    until(lambda: scene.value() == value)
    until(lambda: scene.is_applied(commit))
    assert scene.status_is_linear()


@pytest.mark.full
def test_a_controller_that_was_frozen_writes_nothing_after_another_took_over(scene):
    """Research c.1 row 7: it finds the lease gone before it works again."""
    first = scene.the_one()
    second = scene.start()
    until(lambda: second.events("controller.started"))
    os.kill(first.pid, signal.SIGSTOP)
    try:
        until(lambda: scene.leads(second))
        value = scene.new_value()
        commit = scene.commit(files(OLD, value))
        until(lambda: scene.is_applied(commit))
    finally:
        os.kill(first.pid, signal.SIGCONT)
    passes = len(first.events("pass.ended"))
    unchanged(scene, 20, lambda: (scene.lease(), scene.value(), scene.placements()))

    assert passes == len(first.events("pass.ended"))
    scene.end(first)


def _cpu_seconds(process: Running) -> float:
    words = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_a_dead_git_host_changes_nothing_and_is_waited_for(scene):
    """The last good revision goes on: even drift is repaired; the news come by themselves."""
    process = scene.the_one()
    until(lambda: len(scene.serving()) == REPLICAS)
    old, new = scene.value(), scene.new_value()
    scene.git.break_with(GitFault(dead=True))
    try:
        commit = scene.commit(files(OLD, new), over_http=False)
        scene.cluster.patch(SIDE, "merge", {"data": {"key": "mine"}}, manager="kubectl-edit")
        until(lambda: scene.value() == old)
        unchanged(scene, 5, lambda: (scene.value(), sorted(scene.placements().items())))
        assert process.returncode is None
        assert process.events("source.failed")
    finally:
        scene.git.heal()
    until(lambda: scene.value() == new)
    until(lambda: scene.is_applied(commit))


def test_a_controller_started_without_its_git_host_waits_for_it(scene):
    scene.retire(scene.the_one())
    scene.git.break_with(GitFault(status=503))
    try:
        process = scene.start()
        until(lambda: process.events("source.failed"))
        unchanged(scene, 3, lambda: (process.returncode, scene.value()))
    finally:
        scene.git.heal()
    value = scene.new_value()
    scene.commit(files(OLD, value))
    until(lambda: scene.value() == value)


def test_a_new_password_is_taken_up_without_a_restart(scene):
    """Tokens expire; the secret's file changes under a running controller (c.1 row 15)."""
    process = scene.the_one()
    value = scene.new_value()
    scene.let_in("expired")
    try:
        until(lambda: process.events("source.failed"))
        scene.commit(files(OLD, value))
        unchanged(scene, 3, scene.value)
    finally:
        scene.let_in()
    until(lambda: scene.value() == value)

    assert process.returncode is None
    assert all(secret not in process.log.read_text("utf-8") for secret in USERS.values())


def test_probes_and_metrics_answer_while_it_works(scene):
    """Ready is said once everything is read; who is ready leads when the lease is free."""
    scene.retire(scene.the_one())
    port = free_ports(1)[0]
    process = scene.start("--listen", f"127.0.0.1:{port}")
    until(lambda: _get(port, "/readyz")[0] == 200)

    until(lambda: scene.leads(process))
    assert (200, "ok\n") == _get(port, "/healthz")
    assert (
        'stoker_replicas{namespace="llm",service="tiny",state="want"} 2.0'
        in (_get(port, "/metrics")[1])
    )


def _get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""
