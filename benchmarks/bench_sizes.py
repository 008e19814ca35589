"""Fleets of other shapes on the real API server, section apply.

The controller's peak memory beside a large cluster; one unit of 10,000 ConfigMaps; 3,000
Deployments in 300 units. The floor of the last two is one plain client with 8 threads that
applies the same objects once, on a control plane of its own, in the same run.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import w1
from measure import Meter, row
from w1_rig import (
    DEPLOYMENTS,
    NAMESPACE,
    UNITS,
    fleet,
    floor_of,
    installed,
    largest_request_mib,
    running,
)

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef
from stoker.sim.controlplane import ControlPlane
from stoker.sim.nodes import create_node, node_manifest

NODES = int(os.environ.get("W1_NODES", "2000"))
PODS = int(os.environ.get("W1_PODS", "20000"))
CONFIG_MAPS = int(os.environ.get("W1_CONFIG_MAPS", "10000"))
DEPLOYED = int(os.environ.get("W1_DEPLOYMENTS", "3000"))
A_FILE = 100
"""ConfigMaps in one file."""
A_UNIT = 10
"""Deployments in one unit."""
STATIC = ("etcd", "kube-apiserver")
"""Without the controllers that would evict pods from nodes that send no heartbeats."""
FOLLOW_SECONDS = 10


def run() -> list[dict[str, Any]]:
    """All three, each on control planes of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        return [
            *beside_a_cluster(folder / "crowd"),
            *shape(folder / "maps", "ConfigMaps in one unit", 1, CONFIG_MAPS, _maps, _MAPS),
            *shape(
                folder / "deployments",
                "Deployments in one fleet",
                max(1, DEPLOYED // A_UNIT),
                DEPLOYED,
                _deployments,
                DEPLOYMENTS,
            ),
        ]


# ----------------------------------------------------------------- a large cluster


def beside_a_cluster(folder: Path) -> list[dict[str, Any]]:
    """W1's install where nodes and pods of others stand already and then all change once."""
    with fleet(folder, UNITS, components=STATIC) as rig:
        pods = crowd(rig.plane)
        commit = w1.commit(rig.work, "install", remote=rig.bare)
        with running(rig) as process:
            rig.rest(commit, process, healthy=False)
            before = Meter(process.pid).read().peak_mib
            touch(rig.plane, pods)
            time.sleep(FOLLOW_SECONDS)
            peak = Meter(process.pid).read().peak_mib
    print(f"crowd: {before:.0f} MiB after install, {peak:.0f} MiB after news", file=sys.stderr)
    what = f"peak memory beside {NODES:,} nodes and {PODS:,} pods"
    return [_row(what, peak, "MiB", 300)]


def crowd(plane: ControlPlane) -> list[str]:
    """Nodes with GPUs and pods bound to them; gives the names of the pods."""
    client = Client(HttpsTransport.from_kubeconfig(plane.kubeconfig_path), user_agent="crowd")
    nodes = [node_manifest(f"n{number:05d}", gpus=8) for number in range(NODES)]
    pods = [_pod(number) for number in range(PODS)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: create_node(client, body), nodes))
        list(pool.map(lambda body: client.create(body, manager="crowd"), pods))
    client.close()
    return [str(body["metadata"]["name"]) for body in pods]


def touch(plane: ControlPlane, pods: Iterable[str]) -> None:
    """One change of each pod: a label."""
    client = Client(HttpsTransport.from_kubeconfig(plane.kubeconfig_path), user_agent="crowd")
    body = {"metadata": {"labels": {"touched": "yes"}}}

    def patch(name: str) -> None:
        client.patch(ObjectRef("", "Pod", "default", name, "v1"), "merge", body, manager="crowd")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(patch, pods))
    client.close()


def _pod(number: int) -> dict[str, Any]:
    """A bound pod of about 3 KB as the API server gives it, one GPU in two of five."""
    gpus = {"nvidia.com/gpu": "1"} if number % 5 < 2 else {}
    amounts = {"cpu": "500m", "memory": "1Gi", **gpus}
    labels = {"app": f"other-{number // 20}", "team": f"t{number % 50}", "tier": "backend"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number:06d}", "namespace": "default", "labels": labels},
        "spec": {
            "nodeName": f"n{number % NODES:05d}",
            "containers": [
                {
                    "name": name,
                    "image": f"registry.invalid/other/{name}:{number % 40}",
                    "args": [f"--{option}={number}" for option in ("port", "level", "shard")],
                    "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(12)],
                    "resources": {"requests": amounts, "limits": amounts} if name == "app" else {},
                    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                }
                for name in ("app", "sidecar")
            ],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    }


# ------------------------------------------------------------------ other repositories


def shape(
    folder: Path,
    what: str,
    units: int,
    count: int,
    files: Callable[[int], dict[str, str]],
    kind: tuple[str, str],
) -> list[dict[str, Any]]:
    """An install of `count` objects in so many units, beside its floor."""
    texts = [text for path, text in files(count).items() if path.startswith("apps/")]
    base = floor_of(folder / "floor", texts, count, kind)

    def write(work: Path, *, cluster_uid: str, namespace: str, **_: object) -> None:
        fleet_file = w1.fleet_file(cluster_uid, namespace)
        for path, text in {"fleet.yaml": fleet_file, **files(count)}.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text, encoding="utf-8")

    with (
        fleet(folder / "fleet", units, write=write) as rig,
        installed(rig, count=count, kind=kind) as (_, meter, _, taken),
    ):
        cost, largest = meter.read(), largest_request_mib(rig.plane)
    words = f"{count:,} {what}"
    print(f"{words}: floor {base:.1f} s, {taken:.1f} s, {cost}", file=sys.stderr)
    return [
        _row(f"{words}: wall, times the floor", taken / base, "ratio", 1.3),
        _row(f"{words}: largest request, to the next 0.1 MB", largest, "MiB", 1),
        _row(f"{words}: controller CPU", cost.cpu_seconds, "CPU s", None),
        _row(f"{words}: peak memory", cost.peak_mib, "MiB", None),
    ]


def _maps(count: int) -> dict[str, str]:
    """One unit of ConfigMaps, a hundred in a file."""
    files: dict[str, list[str]] = {}
    for number in range(count):
        path = f"apps/maps-{number // A_FILE:04d}.yaml"
        files.setdefault(path, []).append(_MAP.format(name=f"m{number:06d}", namespace=NAMESPACE))
    texts = {path: "---\n".join(found) for path, found in files.items()}
    return {"bundles/maps.yaml": w1.bundle("maps", files), **texts}


def _deployments(count: int) -> dict[str, str]:
    """Units of ten Deployments each, made of W1's."""
    files: dict[str, str] = {}
    for first in range(1, count + 1, A_UNIT):
        paths = []
        for number in range(first, min(first + A_UNIT, count + 1)):
            found = w1.unit_files(number, namespace=NAMESPACE)
            path = f"apps/u{number:05d}/deployment.yaml"
            files[path] = found[path]
            paths.append(path)
        name = f"g{first:05d}"
        files[f"bundles/{name}.yaml"] = w1.bundle(name, paths)
    return files


_MAPS = ("", "ConfigMap")
_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: {namespace}
  labels:
    app.kubernetes.io/name: {name}
data:
  settings: |
    name={name}
    level=info
    upstream=http://{name}.{namespace}.svc:8000/v1
"""


def _row(measure: str, value: float, unit: str, bar: float | None) -> dict[str, Any]:
    return row(measure, value, unit, bar, section="apply")
