"""From a notice on NodeState to the replacement, on the real API server, section warmth.

200 nodes and 100 services of one replica; 200 notices, one at a time, each withdrawn once it
was answered. Measured by a plain watcher of Deployments, from before the notice is sent until
the replacement's creation is seen. Beside it a bare watcher: one thread that watches NodeState
and at once creates a ConfigMap, timed in the same way, in the same run. Idle, and while the
controller writes 1,000 objects of a commit. No component schedules or starts pods: what is
measured ends with the create.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import w1
from measure import row, wait_until
from w1_rig import NAMESPACE, Rig, fleet, running

from stoker.errors import StokerError
from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef
from stoker.model.times import rfc3339
from stoker.objects import names
from stoker.report import definition_manifests
from stoker.sim.nodes import create_node, node_manifest

NODES = int(os.environ.get("NOTICE_NODES", "200"))
SERVICES = int(os.environ.get("NOTICE_SERVICES", "100"))
NOTICES = int(os.environ.get("NOTICES", "200"))
BUSY_UNITS = 250
"""Of four objects each."""
STATIC = ("etcd", "kube-apiserver")
DEADLINE_SECONDS = 600
REST_SECONDS = 0.5

_FLEET = """\
apiVersion: stoker.dev/v1alpha1
kind: Fleet
metadata: {{name: w1}}
spec:
  cluster: {{uid: {uid}}}
  mode: Correct
  include: [/models/*.yaml, /bundles/*.yaml]
  defaults: {{namespace: {namespace}}}
  pools:
    - {{name: gpu, nodeSelector: {{matchLabels: {{pool: gpu}}}}}}
"""

_SERVICE = """\
apiVersion: stoker.dev/v1alpha1
kind: ModelService
metadata: {{name: s{number:03d}}}
spec:
  model: {{uri: "hf://example/tiny-1b", revision: {revision}, size: 1Gi}}
  engine: {{type: vllm, image: "registry.example/vllm:0.28"}}
  gpu: {{count: 1}}
  replicas: 1
  placement: {{pools: [{{name: gpu}}]}}
  drain: {{endpointSync: 1s, max: 2s, shutdown: 1s}}
"""


def run() -> list[dict[str, Any]]:
    """Idle first, then beside a commit that writes 1,000 objects again and again."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with (
            fleet(folder, SERVICES, write=_write, components=STATIC) as rig,
            _crowd(rig) as seen,
            _begun(rig),
        ):
            wait_until("the install", lambda: len(seen.homes()) == SERVICES, seconds=300)
            wait_until("the busy units", lambda: seen.maps >= BUSY_UNITS, seconds=300)
            time.sleep(5)
            idle = [_notice(seen, number) for number in range(NOTICES)]
            stop = threading.Event()
            busy_thread = threading.Thread(target=_keep_busy, args=(rig, stop), daemon=True)
            busy_thread.start()
            time.sleep(6)
            busy = [_notice(seen, number) for number in range(NOTICES)]
            stop.set()
            busy_thread.join(60)
    return [*_rows("idle", idle, 0.05), *_rows("beside 1,000 writes", busy, None)]


@contextmanager
def _begun(rig: Rig) -> Iterator[None]:
    w1.commit(rig.work, "install", remote=rig.bare)
    with running(rig):
        yield


def _rows(when: str, found: list[tuple[float, float]], bar: float | None) -> list[dict[str, Any]]:
    ours, bare = (sorted(each) for each in zip(*found, strict=True))
    what = f"notice to the replacement's create, {when}"
    print(
        f"{what}: median {ours[len(ours) // 2]:.3f} s, bare {bare[len(bare) // 2]:.3f} s",
        file=sys.stderr,
    )
    p99, bare99 = _p99(ours), _p99(bare)
    return [
        row(f"{what}: p99 of {len(ours)}", p99, "s", bar, section="warmth"),
        row(f"{what}: p99 of a bare watcher", bare99, "s", None, section="warmth"),
        row(
            f"{what}: p99, times the bare watcher's",
            p99 / bare99,
            "ratio",
            None if bar is not None else 2,
            section="warmth",
        ),
    ]


def _p99(ordered: list[float]) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


# ------------------------------------------------------------------------ the fleet
def _write(work: Path, *, units: int, cluster_uid: str, namespace: str) -> None:
    files = {"fleet.yaml": _FLEET.format(uid=cluster_uid, namespace=namespace)}
    for number in range(units):
        text = _SERVICE.format(number=number, revision="a" * 40)
        files[f"models/s{number:03d}.yaml"] = text
    files |= _busy_files("1m")
    for path, text in files.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(text, encoding="utf-8")


def _busy_files(cpu: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for number in range(1, BUSY_UNITS + 1):
        found = w1.unit_files(number, namespace=NAMESPACE, cpu=cpu)
        found.pop(f"apps/u{number:05d}/kustomization.yaml")
        files |= found
        files[f"bundles/u{number:05d}.yaml"] = w1.bundle(f"u{number:05d}", found)
    return files


def _keep_busy(rig: Rig, stop: threading.Event) -> None:
    """Commit another value for every object of the busy units until told to stop."""
    for turn in itertools.count(2):
        label = f"app.kubernetes.io/part-of: turn-{turn}"
        for path, text in _busy_files(f"{turn}m").items():
            marked = text.replace("  labels:\n", f"  labels:\n    {label}\n", 1)
            (rig.work / path).write_text(marked, encoding="utf-8")
        w1.commit(rig.work, f"turn {turn}", remote=rig.bare)
        if stop.wait(10):
            return


# -------------------------------------------------------------------------- watching
@dataclass
class _Seen:
    """What plain watchers saw: Deployments of services by name, and the bare one's answers."""

    client: Client
    places: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """Deployment -> service, node, instant of its first event."""
    answered: dict[str, float] = field(default_factory=dict)
    """Node -> when the bare watcher's create for its newest notice was answered."""
    maps: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def homes(self) -> dict[str, str]:
        """Service -> node of its newest Deployment."""
        with self.lock:
            newest = sorted(self.places.values(), key=lambda place: place[2])
        return {service: node for service, node, _ in newest}

    def follow_deployments(self, version: str) -> None:
        """Note each new Deployment of a service."""
        for event in self.client.watch(
            "apps", "Deployment", NAMESPACE, resource_version=version, timeout_seconds=3600
        ):
            if event.type == "BOOKMARK":
                continue
            metadata = event.object["metadata"]
            marks = metadata.get("annotations") or {}
            service = (metadata.get("labels") or {}).get(names.SERVICE_LABEL, "")
            with self.lock:
                if event.type == "DELETED":
                    self.places.pop(metadata["name"], None)
                elif service and metadata["name"] not in self.places:
                    place = (service, marks.get(names.NODE, ""), time.monotonic())
                    self.places[metadata["name"]] = place
                elif not service and event.type == "ADDED":
                    self.maps += 1

    def follow_states(self, version: str) -> None:
        """Answer each notice with a ConfigMap, as the simplest program would."""
        numbers = itertools.count()
        for event in self.client.watch(
            "stoker.dev", "NodeState", resource_version=version, timeout_seconds=3600
        ):
            status = event.object.get("status") or {}
            if event.type == "BOOKMARK" or not status.get("notice"):
                continue
            name = f"bare-{next(numbers)}"
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "default"},
            }
            self.client.create(body, manager="bare")
            with self.lock:
                self.answered[event.object["metadata"]["name"]] = time.monotonic()


@contextmanager
def _crowd(rig: Rig) -> Iterator[_Seen]:
    """Definitions, nodes with their NodeStates, and the watchers."""
    client = Client(HttpsTransport.from_kubeconfig(rig.plane.kubeconfig_path), user_agent="bench")
    for manifest in definition_manifests():
        client.apply(manifest, manager="bench", force=True)
    nodes = [node_manifest(f"n{n:03d}", labels={"pool": "gpu"}) for n in range(NODES)]
    states = [_state(node["metadata"]["name"]) for node in nodes]
    wait_until("NodeState is served", lambda: _is_served(client), seconds=30)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: create_node(client, body), nodes))
        list(pool.map(lambda body: client.create(body, manager="bench"), states))
    seen = _Seen(client)
    deployments = client.list("apps", "Deployment", NAMESPACE).resource_version
    known = client.list("stoker.dev", "NodeState").resource_version
    for follow, version in ((seen.follow_deployments, deployments), (seen.follow_states, known)):
        threading.Thread(target=follow, args=(version,), daemon=True).start()
    yield seen
    client.close()


def _state(node: str) -> dict[str, Any]:
    return {"apiVersion": "stoker.dev/v1alpha1", "kind": "NodeState", "metadata": {"name": node}}


def _is_served(client: Client) -> bool:
    client.forget_discovery()
    try:
        client.list("stoker.dev", "NodeState")
    except StokerError:
        return False
    return True


def _notice(seen: _Seen, number: int) -> tuple[float, float]:
    """Seconds until the replacement was seen, and until the bare watcher had its answer."""
    service = f"s{number % SERVICES:03d}"
    node = seen.homes()[service]
    with seen.lock:
        before = set(seen.places)
        seen.answered.pop(node, None)
    ref = ObjectRef("stoker.dev", "NodeState", "", node, "v1alpha1")
    now_ms = time.time_ns() // 1_000_000
    notice = {
        "kind": "SpotNotice",
        "at": rfc3339(now_ms),
        "deadline": rfc3339(now_ms + DEADLINE_SECONDS * 1000),
    }

    def answer() -> float | None:
        with seen.lock:
            new = (p for name, p in seen.places.items() if name not in before and p[0] == service)
            return min((place[2] for place in new), default=None)

    started = time.monotonic()
    seen.client.patch(
        ref, "merge", {"status": {"notice": notice}}, manager="bench", subresource="status"
    )
    wait_until(
        f"the replacement of {service}", lambda: answer() is not None, seconds=60, every=0.005
    )
    wait_until("the bare watcher", lambda: node in seen.answered, seconds=60, every=0.005)
    found = answer()
    assert found is not None
    with seen.lock:
        bare = seen.answered[node] - started
    time.sleep(REST_SECONDS)
    seen.client.patch(
        ref, "merge", {"status": {"notice": None}}, manager="bench", subresource="status"
    )
    time.sleep(REST_SECONDS)
    return found - started, bare
