"""What a controller asks of the API server and of Git, counted on the real ones.

Counts only: they are the same on every machine, so the bars of benchmarks/ that hang on
them are held in CI. Times and CPU are measured by `make bench`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import w1
from measure import AuditMark, Requests, count_requests

from stoker.clock import SystemClock
from stoker.kube.client import Client
from stoker.kube.errors import KindNotFound
from stoker.kube.https import HttpsTransport
from stoker.report.definitions import definition_manifests
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

CLOCK = SystemClock()
UNITS = 60
NAMESPACE = "counts"
POLL_SECONDS = 1.0
IDLE_SECONDS = 6.0


@dataclass(frozen=True)
class Counted:
    """One phase: requests to the API server, ls-remotes and fetches, passes, render jobs."""

    requests: Requests
    git_reads: int
    passes: int
    rendered: int


class Rig:
    """A fleet of small units in a repository, and a controller that is watched at work."""

    def __init__(self, folder: Path, plane: ControlPlane, git: GitServer, uid: str) -> None:
        self._folder = folder
        self._plane = plane
        self._git = git
        self._bare = git.create_repo("w1")
        self._log = folder / "controller.log"
        self._log.touch()
        self._marks = (AuditMark.now(plane.audit_log), 0, 0)
        w1.write(folder / "work", units=UNITS, cluster_uid=uid, namespace=NAMESPACE)
        with (folder / "work" / "fleet.yaml").open("a", encoding="utf-8") as fleet:
            fleet.write("  status: {flushInterval: 1s}\n")

    def commit(self, *, touched: int = 0) -> str:
        """Commit everything, with one unit changed unless that is 0."""
        for path, text in w1.unit_files(touched, namespace=NAMESPACE, cpu="3m").items():
            if touched:
                (self._folder / "work" / path).write_text(text, encoding="utf-8")
        return w1.commit(self._folder / "work", "test", remote=self._bare)

    def start(self, *extra: str, state: str) -> subprocess.Popen[bytes]:
        """A controller with a folder of its own for mirror and caches."""
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "stoker", "run"),
                    *("--repo", self._git.url("w1"), "--fleet", "fleet.yaml", "--listen", ""),
                    *("--kubeconfig", str(self._plane.kubeconfig_path)),
                    *("--state-folder", str(self._folder / state), "--log-format", "json"),
                    *("--poll-interval", f"{POLL_SECONDS:g}s", *extra),
                ],
                stderr=log,
            )

    def count_from_here(self) -> None:
        audit = AuditMark.now(self._plane.audit_log)
        self._marks = (audit, len(self._git.requests), self._log.stat().st_size)

    def counted(self) -> Counted:
        CLOCK.wait(0.5)  # the audit log is written behind the answer
        audit, git, _ = self._marks
        asked = [request.path for request in self._git.requests[git:]]
        ended = self._passes()
        return Counted(
            requests=count_requests(audit, "stoker/"),
            git_reads=sum("info/refs" in path and "upload-pack" in path for path in asked),
            passes=len(ended),
            rendered=sum(event["rendered"] for event in ended),
        )

    def wait_until_settled(self, commit: str) -> None:
        """The commit's status is on the branch, and no pass has ended for four seconds."""
        deadline = CLOCK.monotonic() + 90
        seen, since = -1, CLOCK.monotonic()
        while commit not in self._status() or CLOCK.monotonic() < since + 4:
            assert CLOCK.monotonic() < deadline, self._log.read_text(encoding="utf-8")[-2000:]
            if len(self._passes()) != seen:
                seen, since = len(self._passes()), CLOCK.monotonic()
            CLOCK.wait(0.2)

    def _passes(self) -> list[dict]:
        lines = self._log.read_bytes()[self._marks[2] :].decode().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in events if event["event"] == "pass.ended"]

    def _status(self) -> str:
        """What the status branch says was applied."""
        told = subprocess.run(
            ["git", "-C", str(self._bare), "show", "stoker-status/w1:status.yaml"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        return told.partition("lastAppliedRevision:")[2].partition("\n")[0]


@pytest.fixture(scope="module")
def phases(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> dict[str, Counted]:
    """Install, idle, one unit changed and no-op, in that order on one fleet.

    Our kinds are installed, as they are wherever `stoker install` was used.
    """
    folder = tmp_path_factory.mktemp("counts")
    transport = HttpsTransport.from_kubeconfig(own_control_plane.kubeconfig_path)
    cluster = Client(transport)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    for manifest in (*definition_manifests(), space):
        cluster.apply(manifest, manager="test")
    _wait_for_kinds(cluster)
    found: dict[str, Counted] = {}
    with GitServer(folder / "git") as git:
        rig = Rig(folder, own_control_plane, git, cluster.server().cluster_uid)
        installed = rig.commit()
        rig.count_from_here()
        process = rig.start(state="state")
        try:
            rig.wait_until_settled(installed)
            _wait_for_autoscalers(cluster)
            rig.wait_until_settled(installed)
            found["install"] = rig.counted()

            rig.count_from_here()
            CLOCK.wait(IDLE_SECONDS)
            found["idle"] = rig.counted()

            rig.count_from_here()
            rig.wait_until_settled(rig.commit(touched=17))
            found["one unit"] = rig.counted()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)

        rig.count_from_here()
        assert 0 == rig.start("--once", state="fresh").wait(90)
        found["no-op"] = rig.counted()
    transport.close()
    return found


def _wait_for_kinds(cluster: Client) -> None:
    """A new kind is served a moment after its definition is there."""
    deadline = CLOCK.monotonic() + 60
    for kind in ("Fleet", "ModelService"):
        while True:
            cluster.forget_discovery()
            try:
                cluster.list("stoker.dev", kind)
                break
            except KindNotFound:
                assert CLOCK.monotonic() < deadline, f"{kind} is not served"
                CLOCK.wait(0.1)


def _wait_for_autoscalers(cluster: Client) -> None:
    """One that looks before its Deployment is there looks again after 15 s: that is news."""
    deadline = CLOCK.monotonic() + 60
    while True:
        found = cluster.list("autoscaling", "HorizontalPodAutoscaler", NAMESPACE).items
        told = [(item.get("status") or {}).get("conditions") or () for item in found]
        able = [{c["type"]: c["status"] for c in conditions} for conditions in told]
        if all(conditions.get("AbleToScale") == "True" for conditions in able):
            return
        assert CLOCK.monotonic() < deadline, "autoscalers without a status"
        CLOCK.wait(1.0)


def test_an_install_costs_one_apply_an_object_and_a_handful_beside(phases):
    """At 1,000 units the bar is 5,000: 4,000 applies and room for what does not grow."""
    counted = phases["install"]

    applied = counted.requests.verbs["apply"] - counted.requests.mirrors["apply"]
    assert 4 * UNITS <= applied <= 4 * UNITS + 2
    assert counted.requests.total <= 4 * UNITS + 100
    assert UNITS == counted.rendered


def test_an_idle_fleet_asks_git_once_a_poll_and_the_api_server_nothing(phases):
    """Only the lease, new watches, and a look whether an absent kind is served by now."""
    counted = phases["idle"]

    assert set(counted.requests.verbs) <= {"watch", "discover"}
    assert 0 < counted.git_reads <= IDLE_SECONDS / (POLL_SECONDS * 0.9) + 1
    assert (0, 0) == (counted.passes, counted.rendered)


def test_a_commit_that_touches_one_unit_costs_that_unit(phases):
    """Flux builds and dry-runs all of them (baseline: 28 requests a unit)."""
    counted = phases["one unit"]

    assert 1 == counted.rendered
    assert 1 == counted.requests.writes - sum(counted.requests.mirrors.values())
    assert counted.requests.total <= 20


def test_a_fresh_process_finds_nothing_to_do_and_writes_nothing(phases):
    """Everything is told apart from what the lists show: no read a unit, no dry run."""
    counted = phases["no-op"]

    assert 0 == counted.requests.writes
    assert counted.requests.total <= 50
    assert UNITS == counted.rendered
