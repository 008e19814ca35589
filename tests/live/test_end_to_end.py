"""The whole product as people run it: processes, a Git host, a real API server, real engines.

A fleet repository behind smart HTTP with passwords, `stoker run` and `stoker dev nodes` as
processes, and everything read from outside: the status branch, kubectl's columns, the lease.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from live.running import CLOCK, Running, until
from stoker.cli.world import CLUSTER_UID
from stoker.engine import serves_token
from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.child import free_ports
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitFault, GitServer
from stories.files import NEW, OLD, a_config_map, a_service, the_fleet
from stories.looks import CLEAN

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

USERS = {"stoker": "controller-s3cret", "dev": "developer-s3cret"}
POLL_SECONDS = 1.0
REPLICAS = 2
SIDE = ObjectRef("", "ConfigMap", "llm", "side", "v1")


def files(revision: str, value: str) -> dict[str, str]:
    """The fleet: a service of two replicas, and a bundle with a value."""
    drain = {"endpointSync": "1s", "max": "5s", "shutdown": "1s"}
    service = a_service(replicas=REPLICAS, revision=revision, drain=drain)
    return the_fleet(service, side={"side.yaml": a_config_map("side", {"key": value})})


class Scene:
    """A cluster, a Git host and whoever works with them."""

    def __init__(self, folder: Path, plane: ControlPlane, git: GitServer) -> None:
        self.folder = folder
        self.plane = plane
        self.git = git
        self.transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
        self.cluster = Client(self.transport, user_agent="kubectl")
        self.fleet_id = names.fleet_id_of(self.cluster.server().cluster_uid, "local")
        self.credentials = folder / "credentials"
        self.bare = git.create_repo("fleet")
        self.work_tree = folder / "work"
        self._numbers = itertools.count(1)
        self._values = itertools.count(1)
        self.running: list[Running] = []
        self._nodes: subprocess.Popen[bytes] | None = None
        self.let_in()

    # ------------------------------------------------------------------ people
    def let_in(self, password: str = USERS["stoker"]) -> None:
        """Give the controller a password."""
        self.credentials.write_text(f"stoker:{password}\n", encoding="utf-8")
        self.credentials.chmod(0o600)

    def install(self) -> None:
        """`stoker install --crds-only | kubectl apply -f -`."""
        made = subprocess.run(
            [sys.executable, "-m", "stoker", "install", "--crds-only"],
            check=True,
            capture_output=True,
            text=True,
        )
        for manifest in yaml.safe_load_all(made.stdout):
            self.cluster.apply(manifest, manager="kubectl")

    def play_nodes(self) -> None:
        """`stoker dev nodes`: three GPUs, engines that speak HTTP."""
        with (self.folder / "nodes.log").open("wb") as log:
            self._nodes = subprocess.Popen(
                [
                    *(sys.executable, "-m", "stoker", "dev", "nodes", "--pool", "gpu=3x1"),
                    *("--kubeconfig", str(self.plane.kubeconfig_path), "--speed", "20"),
                ],
                stdout=log,
                stderr=log,
            )

    def commit(self, tree: dict[str, str], *, over_http: bool = True) -> str:
        """Commit these files and push them; gives the commit."""
        if not self.work_tree.exists():
            self._git("clone", "-q", str(self.bare), str(self.work_tree), at=self.folder)
            self._git("checkout", "-q", "-B", "main")
        uid = self.cluster.server().cluster_uid
        for path, text in tree.items():
            target = self.work_tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace(CLUSTER_UID, uid), encoding="utf-8")
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "change")
        where = self.git.url("fleet", user="dev") if over_http else str(self.bare)
        self._git("push", "-q", where, "HEAD:refs/heads/main")
        return self._git("rev-parse", "HEAD")

    def new_value(self) -> str:
        """A value for the bundle that it never had."""
        return f"value-{next(self._values)}"

    def _git(self, *arguments: str, at: Path | None = None) -> str:
        who = ("-c", "user.name=Dev", "-c", "user.email=dev@example.invalid")
        done = subprocess.run(
            ["git", *who, "-C", str(at or self.work_tree), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        )
        return done.stdout.strip()

    # -------------------------------------------------------------- controllers
    def start(self, *more: str) -> Running:
        """One more controller, with an empty state folder."""
        process = Running(
            self.folder / f"run-{next(self._numbers)}",
            *("--repo", self.git.url("fleet"), "--credentials", str(self.credentials)),
            *("--fleet", "clusters/local/fleet.yaml", "--poll-interval", f"{POLL_SECONDS:g}s"),
            *("--kubeconfig", str(self.plane.kubeconfig_path), "--render-workers", "1"),
            *(more or ("--listen", "")),
        )
        self.running.append(process)
        return process

    def the_one(self) -> Running:
        """The controller that leads, started if there is none."""
        self.running = [process for process in self.running if process.returncode is None]
        process = self.running[0] if self.running else self.start()
        until(lambda: self.leads(process))
        return process

    def end(self, process: Running) -> None:
        process.kill()
        self.running.remove(process)

    def retire(self, process: Running) -> None:
        """A clean end, so that the next one need not wait for the lease."""
        process.terminate(10.0)
        self.running.remove(process)

    def lease(self) -> str:
        """Who holds the lease."""
        name = f"stoker-{self.fleet_id}"
        ref = ObjectRef("coordination.k8s.io", "Lease", "stoker-system", name, "v1")
        try:
            return str(self.cluster.get(ref)["spec"].get("holderIdentity", ""))
        except NotFound:
            return ""

    def leads(self, process: Running) -> bool:
        return self.lease() == f"{socket.gethostname()}-{process.pid}"

    def close(self) -> None:
        for process in self.running:
            process.kill()
        if self._nodes is not None:
            self._nodes.kill()
            self._nodes.wait()
        self.transport.close()

    # -------------------------------------------------------------------- looks
    def status(self, path: str = "status.yaml") -> dict[str, Any]:
        """A file of the status branch."""
        shown = subprocess.run(
            ["git", "-C", str(self.bare), "show", f"refs/heads/stoker-status/local:{path}"],
            capture_output=True,
            text=True,
            check=False,
        )
        return yaml.safe_load(shown.stdout) or {}

    def status_is_linear(self) -> bool:
        """One root, and no merge."""
        ref = "refs/heads/stoker-status/local"
        rows = self._git("rev-list", "--parents", ref, at=self.bare).splitlines()
        parents = [len(row.split()) - 1 for row in rows]
        return sorted(parents) == [0] + [1] * (len(parents) - 1)

    def is_applied(self, commit: str) -> bool:
        """Whether the status branch says that this commit stands and all is well."""
        status = self.status()
        return (
            status.get("lastAppliedRevision") == f"main@sha1:{commit}"
            and {c["type"]: c["status"] for c in status["conditions"]} == CLEAN
        )

    def placements(self) -> dict[str, int]:
        """Replicas that the service's Deployments ask for, by name."""
        return {
            body["metadata"]["name"]: body["spec"]["replicas"]
            for body in self.cluster.list("apps", "Deployment", "llm").items
        }

    def serving(self) -> dict[str, str]:
        """Model revision by pod, of pods that are Ready and take requests."""
        found = {}
        for pod in self.cluster.list("", "Pod", "llm").items:
            labels = pod["metadata"]["labels"]
            conditions = (pod.get("status") or {}).get("conditions") or ()
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            if ready and labels.get(names.TRAFFIC_LABEL) and _stays(pod):
                found[pod["metadata"]["name"]] = labels[names.MODEL_REVISION_LABEL]
        return found

    def value(self) -> str:
        """What the bundle's ConfigMap holds in the cluster."""
        return str(self.cluster.get(SIDE)["data"]["key"])

    def columns(self, plural: str, namespace: str) -> dict[str, Any]:
        """The one row that `kubectl get` prints, by column."""
        answer = self.transport.send(
            Request(
                "GET",
                f"/apis/stoker.dev/v1alpha1/namespaces/{namespace}/{plural}",
                accept="application/json;as=Table;v=v1;g=meta.k8s.io",
            )
        )
        table = json.loads(answer.body)
        shown = [column["name"] for column in table["columnDefinitions"]]
        (row,) = table["rows"]
        return dict(zip(shown, row["cells"], strict=True))

    def scale(self, name: str, replicas: int) -> None:
        """`kubectl scale`."""
        self.cluster.patch(
            ObjectRef("apps", "Deployment", "llm", name, "v1"),
            "merge",
            {"spec": {"replicas": replicas}},
            manager="kubectl",
            subresource="scale",
        )


def _stays(body: dict[str, Any]) -> bool:
    return not body["metadata"].get("deletionTimestamp")


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
            made.play_nodes()
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
    until(lambda: len(scene.serving()) == REPLICAS)
    addresses = [
        pod["metadata"]["annotations"][names.ADDRESS]
        for pod in scene.cluster.list("", "Pod", "llm").items
        if _stays(pod)
    ]

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
    until(lambda: scene.placements()[name] == 1)
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
    """Ready is said after the first pass, by a leader whose caches are read."""
    scene.retire(scene.the_one())
    port = free_ports(1)[0]
    process = scene.start("--listen", f"127.0.0.1:{port}")
    until(lambda: _get(port, "/readyz")[0] == 200)

    assert scene.leads(process)
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
