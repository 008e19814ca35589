"""W1 on the real API server: install, idle, one unit changed, no-op by a fresh process.

Beside it the floor: one plain client, eight threads, one forced apply an object, on a
control plane of its own, timed until every Deployment is observed. Requests are read from
the audit log by user agent, questions to Git from the Git server's log, renders from the
controller's log, CPU from /proc (the controller with its children), peak memory is the
controller process. Every phase ends only when the controller has come to rest.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import w1
import yaml
from measure import (
    AuditMark,
    Cost,
    Meter,
    Requests,
    count_requests,
    peak_mib,
    row,
    wait_until,
)

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer

UNITS = int(os.environ.get("W1_UNITS", "1000"))
FULL_UNITS = 1000
AGENT = "stoker/"
POLL_SECONDS = 5
POLL_JITTER = 0.1
IDLE_SECONDS = 60
QUIET_SECONDS = 20
"""An autoscaler that looked before its Deployment was there looks again after 15 s."""
NAMESPACE = "w1"


class Watched:
    """Counts the Deployments of a namespace that the controller-manager has observed."""

    def __init__(self, plane: ControlPlane) -> None:
        self._client = Client(
            HttpsTransport.from_kubeconfig(plane.kubeconfig_path), user_agent="bench-watch"
        )
        self._observed: set[str] = set()
        page = self._client.list("apps", "Deployment", NAMESPACE)
        self._version = page.resource_version
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._client.watch(
            "apps", "Deployment", NAMESPACE, resource_version=self._version, timeout_seconds=1800
        ):
            if event.type == "BOOKMARK":
                continue
            metadata, status = event.object["metadata"], event.object.get("status") or {}
            if status.get("observedGeneration", 0) >= metadata["generation"]:
                self._observed.add(metadata["name"])
            if len(self._observed) >= UNITS:
                return

    def wait(self, what: str, seconds: float) -> None:
        """Return when every unit's Deployment is observed."""
        wait_until(what, lambda: len(self._observed) >= UNITS, seconds=seconds, every=0.05)


class Rig:
    """Control plane, Git server, repository and the controller's log of one run."""

    def __init__(self, folder: Path, plane: ControlPlane, git: GitServer) -> None:
        self.folder = folder
        self.plane = plane
        self.git = git
        self.work = folder / "work"
        self.bare = git.create_repo("w1")
        self.log = folder / "controller.log"

    def status(self) -> dict[str, Any]:
        """status.yaml as it stands on the status branch, empty before the first push."""
        done = subprocess.run(
            ["git", "-C", str(self.bare), "show", "stoker-status/w1:status.yaml"],
            capture_output=True,
            text=True,
            check=False,
        )
        return yaml.safe_load(done.stdout) or {}

    def rest(self, commit: str, process: subprocess.Popen[bytes]) -> None:
        """Return when the branch says that all of the commit is applied and healthy, and the
        controller has had nothing to say since: neither a pass nor a push.
        """
        lines, quiet_since = -1, time.monotonic()

        def rested() -> bool:
            nonlocal lines, quiet_since
            if process.poll() is not None:
                raise RuntimeError(f"the controller ended: {self.log.read_text()[-2000:]}")
            if (size := self.log.stat().st_size) != lines:
                lines, quiet_since = size, time.monotonic()
            if time.monotonic() < quiet_since + QUIET_SECONDS:
                return False
            status = self.status()
            told = commit in str(status.get("lastAppliedRevision"))
            return told and status["summary"]["healthy"] == UNITS

        wait_until("the controller is at rest", rested, seconds=900, every=0.5)

    def controller(self, *extra: str, state: str) -> subprocess.Popen[bytes]:
        """Start a controller with a folder of its own for mirror and caches."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "stoker", "run"),
                    *("--repo", self.git.url("w1"), "--ref", "main", "--fleet", "fleet.yaml"),
                    *("--kubeconfig", str(self.plane.kubeconfig_for())),
                    *("--state-folder", str(self.folder / state)),
                    *("--listen", "", "--poll-interval", f"{POLL_SECONDS}s"),
                    *("--log-format", "json", *extra),
                ],
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def git_reads(self) -> int:
        """How often Git was asked for its refs (ls-remote and fetch both begin so)."""
        return sum(
            1
            for request in self.git.requests
            if "info/refs" in request.path and "git-upload-pack" in request.path
        )

    def passes(self, since: int) -> list[dict[str, Any]]:
        """The `pass.ended` lines of the log from that byte on."""
        lines = self.log.read_bytes()[since:].decode().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in events if event["event"] == "pass.ended"]


@contextmanager
def _plane(folder: Path) -> Iterator[ControlPlane]:
    """A fresh control plane with an empty namespace; the service account may do everything."""
    with ControlPlane(folder, audit=True) as plane:
        admin = Client(HttpsTransport.from_kubeconfig(plane.kubeconfig_path), user_agent="bench")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        admin.apply(namespace, manager="bench")
        admin.apply(_GRANT, manager="bench")
        admin.close()
        yield plane


_GRANT = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "stoker-bench"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    },
    "subjects": [
        {
            "kind": "Group",
            "apiGroup": "rbac.authorization.k8s.io",
            "name": "system:serviceaccounts",
        }
    ],
}


def floor_seconds(folder: Path) -> float:
    """Wall seconds of one plain client for the same objects."""
    bodies = [
        yaml.load(text, yaml.CSafeLoader)
        for number in range(1, UNITS + 1)
        for name, text in w1.unit_files(number, namespace=NAMESPACE).items()
        if not name.endswith("kustomization.yaml")
    ]
    with _plane(folder) as plane:
        watched = Watched(plane)
        client = Client(HttpsTransport.from_kubeconfig(plane.kubeconfig_for()), user_agent="floor")
        started = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda body: client.apply(body, manager="floor", force=True), bodies))
        watched.wait("floor", 600)
        return time.monotonic() - started


def _requests(mark: AuditMark) -> Requests:
    time.sleep(1)  # the audit log is written behind the answer
    return count_requests(mark, AGENT)


def install(rig: Rig, base: float) -> list[dict[str, Any]]:
    """From nothing to every Deployment observed; then the phases of the running controller."""
    commit = w1.commit(rig.work, "install", remote=rig.bare)
    mark = AuditMark.now(rig.plane.audit_log)
    watched = Watched(rig.plane)
    started = time.monotonic()
    process = rig.controller(state="state")
    try:
        meter = Meter(process.pid)
        watched.wait("install", 900)
        taken = time.monotonic() - started
        rig.rest(commit, process)
        cost, requests = meter.read(), _requests(mark)
        print(f"install: {taken:.1f} s, {requests}, {cost}", file=sys.stderr)
        return [
            row(f"W1 install, {UNITS} units: requests", requests.total, "requests", 5 * UNITS),
            row("W1 install: controller CPU", cost.cpu_seconds, "CPU s", 60),
            row("W1 install: wall, times the floor", taken / base, "ratio", 3),
            row("W1 install: wall", taken, "s", None),
            row("W1 install: peak memory of the controller", cost.peak_mib, "MiB", 250),
            row("W1 install: peak of a render worker", max(cost.children_mib), "MiB", None),
            *idle(rig, meter),
            *one_unit(rig, meter, process),
        ]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def idle(rig: Rig, meter: Meter) -> list[dict[str, Any]]:
    """A minute in which nothing changes but what the cluster's own controllers write."""
    mark = AuditMark.now(rig.plane.audit_log)
    asked, read = rig.git_reads(), rig.log.stat().st_size
    meter.start()
    time.sleep(IDLE_SECONDS)
    cost, asked = meter.read(), rig.git_reads() - asked
    requests, passes = _requests(mark), rig.passes(read)
    polls = int(IDLE_SECONDS / (POLL_SECONDS * (1 - POLL_JITTER))) + 1
    print(f"idle: {requests}, {len(passes)} passes, {cost}", file=sys.stderr)
    what = f"W1 idle {IDLE_SECONDS} s"
    return [
        row(f"{what}: writes but the lease", requests.writes, "requests", 0),
        row(f"{what}: other requests but the lease", requests.total, "requests", None),
        row(f"{what}: requests of the lease", sum(requests.lease.values()), "requests", None),
        row(f"{what}: ls-remotes (polls every {POLL_SECONDS} s)", asked, "ls-remotes", polls),
        row(f"{what}: controller CPU", cost.cpu_seconds, "CPU s", 1),
        row(f"{what}: passes", len(passes), "passes", None),
    ]


def one_unit(rig: Rig, meter: Meter, process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """A commit that touches one unit, until its status is on the branch and all is quiet."""
    for path, text in w1.unit_files(17, namespace=NAMESPACE, cpu="3m").items():
        (rig.work / path).write_text(text, encoding="utf-8")
    mark, read = AuditMark.now(rig.plane.audit_log), rig.log.stat().st_size
    meter.start()
    commit = w1.commit(rig.work, "one unit", remote=rig.bare)
    rig.rest(commit, process)
    cost, requests = meter.read(), _requests(mark)
    rendered = sum(int(event["rendered"]) for event in rig.passes(read))
    print(f"one unit: {requests}, {cost}", file=sys.stderr)
    return [
        row("W1 one unit: units rendered", rendered, "units", 1),
        row("W1 one unit: requests but the lease", requests.total, "requests", 20),
        row("W1 one unit: controller CPU", cost.cpu_seconds, "CPU s", 2),
    ]


def no_op(rig: Rig) -> list[dict[str, Any]]:
    """A fresh process with empty caches at a revision that is applied already."""
    mark = AuditMark.now(rig.plane.audit_log)
    before = os.times()
    process = rig.controller("--once", state="fresh")
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, peak_mib(process.pid))
        time.sleep(0.02)
    after = os.times()
    if process.returncode:
        raise RuntimeError(f"run --once: exit {process.returncode}: {rig.log.read_text()[-2000:]}")
    cpu = sum(after[2:4]) - sum(before[2:4])
    requests = _requests(mark)
    print(f"no-op: {requests}, {Cost(cpu, peak, ())}", file=sys.stderr)
    what = "W1 no-op, fresh process"
    return [
        row(f"{what}: writes", requests.writes, "requests", 0),
        row(f"{what}: requests", requests.total, "requests", 50),
        row(f"{what}: CPU", cpu, "CPU s", 8),
        row(f"{what}: peak memory of the controller", peak, "MiB", None),
    ]


def run() -> list[dict[str, Any]]:
    """All phases: the floor on its own control plane, the controller's on another."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        base = floor_seconds(folder / "floor")
        print(f"floor: {base:.1f} s", file=sys.stderr)
        with _plane(folder / "plane") as plane, GitServer(folder / "git") as git:
            rig = Rig(folder, plane, git)
            transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
            uid = Client(transport, user_agent="bench").server().cluster_uid
            transport.close()
            w1.write(rig.work, units=UNITS, cluster_uid=uid, namespace=NAMESPACE)
            rows = [row("W1 floor: wall", base, "s", None)]
            rows += install(rig, base)
            rows += no_op(rig)
    return rows
