"""The rig of W1: control plane, Git server, repository, a controller that is watched at work.

Beside it the floor: one plain client, eight threads, one forced apply an object, on a
control plane of its own, timed until every Deployment is observed. Requests are read from
the audit log by user agent, questions to Git from the Git server's log, renders from the
controller's log, CPU from /proc (the controller with its children), peak memory is the
controller process. Every phase ends only when the controller has come to rest.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import w1
import yaml
from measure import (
    AuditMark,
    Meter,
    Requests,
    count_requests,
    peak_mib,
    wait_until,
)

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request
from stoker.sim.controlplane import ControlPlane
from stoker.sim.controlplane_binary import COMPONENTS
from stoker.sim.git_http import GitServer

UNITS = int(os.environ.get("W1_UNITS", "1000"))
AGENT = "stoker/"
POLL_SECONDS = 5
POLL_JITTER = 0.1
QUIET_SECONDS = 20
"""An autoscaler that looked before its Deployment was there looks again after 15 s."""
NAMESPACE = "w1"
DEPLOYMENTS = ("apps", "Deployment")
NAMED = "app.kubernetes.io/name"
"""The label that all objects of the benchmarks' repositories carry."""


class Watched:
    """Counts the Deployments of a namespace that the controller-manager has observed.

    With `newer` only those of a newer generation than at the start. Objects of another
    kind count once they are there.
    """

    def __init__(
        self,
        plane: ControlPlane,
        units: int,
        *,
        newer: bool = False,
        kind: tuple[str, str] = DEPLOYMENTS,
    ) -> None:
        self._units = units
        self._kind = kind
        self._client = Client(
            HttpsTransport.from_kubeconfig(plane.kubeconfig_path), user_agent="bench-watch"
        )
        self._observed: set[str] = set()
        page = self._client.list(*kind, NAMESPACE, label_selector=NAMED)
        seen = (item["metadata"] for item in page.items)
        self._before = {m["name"]: m["generation"] for m in seen} if newer else {}
        self._version = page.resource_version
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._client.watch(
            *self._kind,
            NAMESPACE,
            resource_version=self._version,
            timeout_seconds=1800,
            label_selector=NAMED,
        ):
            if event.type == "BOOKMARK":
                continue
            metadata, status = event.object["metadata"], event.object.get("status") or {}
            generation = metadata.get("generation", 1)
            observed = status.get("observedGeneration", 0)
            if self._kind != DEPLOYMENTS or (
                observed >= generation > self._before.get(metadata["name"], 0)
            ):
                self._observed.add(metadata["name"])
            if len(self._observed) >= self._units:
                return

    def wait(self, what: str, seconds: float) -> None:
        """Return when every unit's Deployment is observed, or every object is there."""
        wait_until(what, lambda: len(self._observed) >= self._units, seconds=seconds, every=0.05)


class Rig:
    """Control plane, Git server, repository and the controller's log of one run."""

    def __init__(self, folder: Path, plane: ControlPlane, git: GitServer, units: int) -> None:
        self.units = units
        self.folder = folder
        self.plane = plane
        self.git = git
        self.work = folder / "work"
        self.bare = git.create_repo("w1")
        self.log = folder / "controller.log"
        self.poll_seconds = float(POLL_SECONDS)
        self.quiet_seconds = float(QUIET_SECONDS)

    def status(self) -> dict[str, Any]:
        """status.yaml as it stands on the status branch, empty before the first push."""
        done = subprocess.run(
            ["git", "-C", str(self.bare), "show", "stoker-status/w1:status.yaml"],
            capture_output=True,
            text=True,
            check=False,
        )
        return yaml.safe_load(done.stdout) or {}

    def rest(self, commit: str, process: subprocess.Popen[bytes], *, healthy: bool = True) -> None:
        """Return when the branch says that all of the commit is applied and (`healthy`) well,
        and the controller has had nothing to say since: neither a pass nor a push.
        """
        lines, quiet_since = -1, time.monotonic()

        def rested() -> bool:
            nonlocal lines, quiet_since
            if process.poll() is not None:
                raise RuntimeError(f"the controller ended: {self.log.read_text()[-2000:]}")
            if (size := self.log.stat().st_size) != lines:
                lines, quiet_since = size, time.monotonic()
            if time.monotonic() < quiet_since + self.quiet_seconds:
                return False
            status = self.status()
            told = commit in str(status.get("lastAppliedRevision"))
            return told and (not healthy or status["summary"]["healthy"] == self.units)

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
                    *("--listen", "", "--poll-interval", f"{self.poll_seconds:g}s"),
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
def new_plane(folder: Path, components: tuple[str, ...] = COMPONENTS) -> Iterator[ControlPlane]:
    """A fresh control plane with an empty namespace; the service account may do everything."""
    with ControlPlane(folder, components=components, audit=True) as plane:
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


def floor_seconds(folder: Path, units: int) -> float:
    """Wall seconds of one plain client for the objects of W1."""
    texts = (
        text
        for number in range(1, units + 1)
        for name, text in w1.unit_files(number, namespace=NAMESPACE).items()
        if not name.endswith("kustomization.yaml")
    )
    return floor_of(folder, texts, units)


def floor_of(
    folder: Path, texts: Iterable[str], count: int, kind: tuple[str, str] = DEPLOYMENTS
) -> float:
    """Wall seconds of one plain client: 8 threads, one forced apply an object, until `count`
    objects of the kind are seen.
    """
    bodies = [body for text in texts for body in yaml.load_all(text, yaml.CSafeLoader)]
    with new_plane(folder) as plane:
        watched = Watched(plane, count, kind=kind)
        client = Client(HttpsTransport.from_kubeconfig(plane.kubeconfig_for()), user_agent="floor")
        started = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda body: client.apply(body, manager="floor", force=True), bodies))
        watched.wait("floor", 600)
        return time.monotonic() - started


def largest_request_mib(plane: ControlPlane) -> float:
    """The most that the body of any write to this API server had, whoever sent it.

    By the server's histogram, so rounded up to the next 0.1 MB; above its end infinite.
    """
    transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
    text = transport.send(Request("GET", "/metrics")).body.decode()
    transport.close()
    buckets: dict[str, dict[float, float]] = {}
    for labels, bound, count in _BODY_SIZES.findall(text):
        buckets.setdefault(labels, {})[float(bound)] = float(count)
    if not buckets:
        raise RuntimeError("the API server does not tell the size of requests")
    most = max(
        min(bound for bound, count in series.items() if count == max(series.values()))
        for series in buckets.values()
    )
    return most / 2**20


_BODY_SIZES = re.compile(r'apiserver_request_body_size_bytes_bucket\{(.*),le="(.*?)"\} (\S+)')


def requests_since(mark: AuditMark) -> Requests:
    """The controller's requests since then."""
    time.sleep(1)  # the audit log is written behind the answer
    return count_requests(mark, AGENT)


@dataclass(frozen=True)
class Fresh:
    """What one pass of a fresh process with empty caches came to."""

    seconds: float
    cpu_seconds: float
    peak_mib: float
    requests: Requests


def fresh_pass(rig: Rig, state: str = "fresh") -> Fresh:
    """`run --once` at a revision that is applied already."""
    mark = AuditMark.now(rig.plane.audit_log)
    before, started = os.times(), time.monotonic()
    process = rig.controller("--once", state=state)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, peak_mib(process.pid))
        time.sleep(0.02)
    seconds, after = time.monotonic() - started, os.times()
    if process.returncode:
        raise RuntimeError(f"run --once: exit {process.returncode}: {rig.log.read_text()[-2000:]}")
    found = Fresh(seconds, sum(after[2:4]) - sum(before[2:4]), peak, requests_since(mark))
    print(f"no-op: {found}", file=sys.stderr)
    return found


@contextmanager
def fleet(
    folder: Path,
    units: int,
    *,
    write: Callable[..., None] = w1.write,
    components: tuple[str, ...] = COMPONENTS,
) -> Iterator[Rig]:
    """A fresh control plane and a repository of so many units."""
    with new_plane(folder / "plane", components) as plane, GitServer(folder / "git") as git:
        rig = Rig(folder, plane, git, units)
        transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
        uid = Client(transport, user_agent="bench").server().cluster_uid
        transport.close()
        write(rig.work, units=units, cluster_uid=uid, namespace=NAMESPACE)
        yield rig


@contextmanager
def installed(
    rig: Rig, *, count: int = 0, kind: tuple[str, str] = DEPLOYMENTS
) -> Iterator[tuple[subprocess.Popen[bytes], Meter, str, float]]:
    """A controller that has installed the whole fleet: process, meter, commit, wall seconds.

    `count` objects of the kind are waited for; 0: one a unit.
    """
    commit = w1.commit(rig.work, "install", remote=rig.bare)
    watched = Watched(rig.plane, count or rig.units, kind=kind)
    started = time.monotonic()
    with running(rig) as process:
        meter = Meter(process.pid)
        watched.wait("install", 1800)
        taken = time.monotonic() - started
        rig.rest(commit, process)
        yield process, meter, commit, taken


@contextmanager
def running(rig: Rig) -> Iterator[subprocess.Popen[bytes]]:
    """A controller of this fleet, ended at the end."""
    process = rig.controller(state="state")
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
