"""W1 on the real API server: install, no-op by a fresh process, idle, one unit changed.

Beside it the floor: one plain client, eight threads, one forced apply an object, on the same
control plane, timed until every Deployment is observed. Requests are read from the audit log,
CPU from /proc (the controller with its children), peak memory is the controller process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import w1
import yaml
from measure import AuditMark, Cost, Meter, count_requests, row, wait_until

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer

UNITS = int(os.environ.get("W1_UNITS", "1000"))
AGENT = "stoker/"
POLL = "5s"


class Rig:
    """Control plane, Git server and repository of one run."""

    def __init__(self, folder: Path, plane: ControlPlane, git: GitServer) -> None:
        self.folder = folder
        self.plane = plane
        self.admin = Client(
            HttpsTransport.from_kubeconfig(plane.kubeconfig_path), user_agent="bench"
        )
        self.work = folder / "work"
        self.bare = git.create_repo("w1")
        self.url = git.url("w1")

    def namespace(self, name: str) -> None:
        self.admin.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, manager="bench"
        )

    def observed(self, namespace: str) -> int:
        """How many Deployments the controller-manager has observed."""
        items = self.admin.list("apps", "Deployment", namespace).items
        return sum(
            1
            for d in items
            if (d.get("status") or {}).get("observedGeneration", 0) >= d["metadata"]["generation"]
        )

    def status_revision(self) -> str:
        """lastAppliedRevision on the status branch, or empty."""
        done = subprocess.run(
            ["git", "-C", str(self.bare), "show", "stoker-status/w1:status.yaml"],
            capture_output=True,
            text=True,
            check=False,
        )
        return str((yaml.safe_load(done.stdout) or {}).get("lastAppliedRevision", ""))

    def alive(self, process: subprocess.Popen, seconds: float = 3.0) -> None:
        """Fail early, with its last words, when the controller does not start."""
        time.sleep(seconds)
        if process.poll() is not None:
            raise RuntimeError((self.folder / "controller.log").read_text()[-2000:])

    def controller(self, *extra: str, state: str = "state") -> subprocess.Popen:
        environment = {**os.environ, "STOKER_LOG": "warning"}
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "stoker",
                "run",
                "--repo",
                self.url,
                "--ref",
                "main",
                "--fleet",
                "fleet.yaml",
                "--kubeconfig",
                str(self.plane.kubeconfig_for()),
                "--state-folder",
                str(self.folder / state),
                "--listen",
                "",
                "--poll-interval",
                POLL,
                *extra,
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "controller.log").open("ab"),
        )


def floor(rig: Rig) -> float:
    """Seconds of one plain client for the same objects, in a namespace of its own."""
    rig.namespace("floor")
    bodies = []
    for number in range(1, UNITS + 1):
        files = w1.unit_files(number, namespace="floor")
        bodies += [
            yaml.load(text, yaml.CSafeLoader)
            for name, text in files.items()
            if not name.endswith("kustomization.yaml")
        ]
    client = Client(HttpsTransport.from_kubeconfig(rig.plane.kubeconfig_path), user_agent="floor")
    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: client.apply(body, manager="floor", force=True), bodies))
    wait_until("floor", lambda: rig.observed("floor") == UNITS, seconds=300)
    taken = time.monotonic() - started
    rig.admin.delete(ObjectRef("", "Namespace", "", "floor"))
    wait_until(
        "floor is gone",
        lambda: not rig.admin.list("apps", "Deployment", "floor").items,
        seconds=300,
        every=1,
    )
    return taken


def _requests(mark: AuditMark) -> tuple[int, int, dict[str, int]]:
    """All requests, and the writes among them that are not the lease."""
    time.sleep(1)
    verbs = count_requests(mark, AGENT)
    reads = {"get", "list", "watch"}
    return sum(verbs.values()), sum(n for v, n in verbs.items() if v not in reads), dict(verbs)


def _stop(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(20)


def install(rig: Rig, base: float) -> list[dict]:
    commit = w1.commit(rig.work, "install", remote=rig.bare)
    mark = AuditMark.now(rig.plane.audit_log)
    started = time.monotonic()
    process = rig.controller()
    meter = Meter(process.pid)
    rig.alive(process)
    wait_until("install", lambda: rig.observed("w1") == UNITS, seconds=900, every=0.5)
    taken = time.monotonic() - started
    wait_until("status", lambda: commit in rig.status_revision(), seconds=120)
    cost, (requests, _, verbs) = meter.read(), _requests(mark)
    print(f"install: {taken:.1f} s, {verbs}, {cost}", file=sys.stderr)
    rows = [
        row("W1 install: requests", requests, "requests", 5000 * UNITS / 1000),
        row("W1 install: controller CPU", cost.cpu_seconds, "CPU s", 60),
        row("W1 install: wall, times the floor", taken / base, "ratio", 3),
        row("W1 install: peak memory", cost.peak_mib, "MiB", 250),
        row("W1 install: peak memory of a render worker", cost.child_peak_mib, "MiB", None),
    ]
    rows += idle(rig, meter)
    rows += one_unit(rig, meter)
    _stop(process)
    return rows


def idle(rig: Rig, meter: Meter) -> list[dict]:
    """A minute in which nothing changes."""
    time.sleep(5)
    mark = AuditMark.now(rig.plane.audit_log)
    meter.start()
    time.sleep(60)
    cost, (_, _, verbs) = meter.read(), _requests(mark)
    lease = verbs.get("update", 0)
    writes = sum(n for v, n in verbs.items() if v not in {"get", "list", "watch", "update"})
    print(f"idle: {verbs}, {cost}", file=sys.stderr)
    return [
        row("W1 idle 60 s: writes but the lease", writes, "requests", 0),
        row("W1 idle 60 s: lease renewals", lease, "requests", None),
        row("W1 idle 60 s: controller CPU", cost.cpu_seconds, "CPU s", 1),
    ]


def one_unit(rig: Rig, meter: Meter) -> list[dict]:
    """A commit that touches one unit."""
    for path, text in w1.unit_files(17, cpu="3m").items():
        (rig.work / path).write_text(text, encoding="utf-8")
    mark = AuditMark.now(rig.plane.audit_log)
    meter.start()
    commit = w1.commit(rig.work, "one unit", remote=rig.bare)
    wait_until("one unit", lambda: commit in rig.status_revision(), seconds=180)
    cost, (requests, _, verbs) = meter.read(), _requests(mark)
    # lease renewals go on by the clock, whatever the commit
    requests -= verbs.get("update", 0)
    requests -= min(verbs.get("get", 0), verbs.get("update", 0))
    print(f"one unit: {verbs}, {cost}", file=sys.stderr)
    return [
        row("W1 one unit: requests but the lease", requests, "requests", 20),
        row("W1 one unit: controller CPU", cost.cpu_seconds, "CPU s", 2),
    ]


def no_op(rig: Rig) -> list[dict]:
    """A fresh process with empty caches at a revision that is applied already."""
    mark = AuditMark.now(rig.plane.audit_log)
    before = os.times()
    process = rig.controller("--once", state="fresh")
    meter = Meter(process.pid)
    peak = Cost(0, 0, 0)
    while process.poll() is None:
        peak = max(peak, meter.read(), key=lambda c: c.peak_mib)
        time.sleep(0.05)
    after = os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    requests, writes, verbs = _requests(mark)
    print(f"no-op: {verbs}, {cpu:.1f} CPU s, {peak}", file=sys.stderr)
    return [
        row("W1 no-op, fresh process: writes", writes, "requests", 0),
        row("W1 no-op, fresh process: requests", requests, "requests", 50),
        row("W1 no-op, fresh process: CPU", cpu, "CPU s", 8),
        row("W1 no-op, fresh process: peak memory", peak.peak_mib, "MiB", None),
    ]


def run() -> list[dict]:
    """All phases on one control plane."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with (
            ControlPlane(folder / "plane", audit=True) as plane,
            GitServer(folder / "git") as git,
        ):
            rig = Rig(folder, plane, git)
            w1.write(rig.work, units=UNITS, cluster_uid=rig.admin.server().cluster_uid)
            rig.namespace("w1")
            _grant(rig)
            base = floor(rig)
            rows = [row("W1 floor: wall", base, "s", None)]
            rows += install(rig, base)
            rows += no_op(rig)
    return rows


def _grant(rig: Rig) -> None:
    """The benchmark's service account may do everything; it goes through fair queueing."""
    rig.admin.apply(
        {
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
        },
        manager="bench",
    )
