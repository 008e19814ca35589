"""The command line: its start-up beside an empty Python, and `stoker diff` of the quickstart.

The diff runs against the real API server with the CRDs and two GPU nodes there, so that
everything of the quickstart is rendered, placed and dry-run. Medians, all in one run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from measure import Meter, row, run_seconds

from stoker.kube.client import Client
from stoker.kube.https import HttpsTransport
from stoker.model.refs import ObjectRef
from stoker.sim.controlplane import ControlPlane
from stoker.sim.nodes import create_node, node_manifest

QUICKSTART = Path(__file__).resolve().parents[1] / "examples" / "quickstart"
EXAMPLE_UID = "00000000-0000-4000-8000-000000000001"
STOKER = (sys.executable, "-m", "stoker")
DIFFERS = 1
RUNS = 5


def run() -> list[dict[str, Any]]:
    """The ratio of `stoker --help` to `python -c pass`, and the seconds of a diff."""
    floor = run_seconds([sys.executable, "-c", "pass"], times=9)
    help_ = run_seconds([*STOKER, "--help"], times=9)
    return [
        row("stoker --help, times python -c pass", help_[4] / floor[4], "ratio", 15),
        *_diff(),
    ]


def _diff() -> list[dict[str, Any]]:
    """The median of five runs, each a new process that knows nothing, and their mean CPU."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with ControlPlane(folder / "plane", components=("etcd", "kube-apiserver")) as plane:
            transport = HttpsTransport.from_kubeconfig(plane.kubeconfig_path)
            try:
                _prepare(folder / "fleet", Client(transport, user_agent="bench"))
            finally:
                transport.close()
            command = [
                *(*STOKER, "diff", "--path", str(folder / "fleet")),
                *("--kubeconfig", str(plane.kubeconfig_path)),
            ]
            _see_that_it_looks(command)
            Meter(os.getpid()).settle(share=0.4, seconds=60)  # a new API server has much to do
            before = os.times()
            taken = run_seconds(command, times=RUNS, ok=(DIFFERS,))
            after = os.times()
    cpu = (sum(after[2:4]) - sum(before[2:4])) / RUNS
    return [
        row("stoker diff of examples/quickstart", taken[RUNS // 2], "s", 1),
        row("stoker diff of examples/quickstart: CPU, render child included", cpu, "CPU s", None),
    ]


def _prepare(fleet: Path, cluster: Client) -> None:
    """The quickstart with this cluster's UID, and a cluster that it fits."""
    shutil.copytree(QUICKSTART, fleet)
    uid = cluster.server().cluster_uid
    files = [
        path for path in fleet.rglob("*.yaml") if EXAMPLE_UID in path.read_text(encoding="utf-8")
    ]
    if not files:
        raise RuntimeError("the quickstart does not name its cluster any more")
    for path in files:
        path.write_text(path.read_text(encoding="utf-8").replace(EXAMPLE_UID, uid), "utf-8")
    crds = subprocess.run(
        [*STOKER, "install", "--crds-only"], capture_output=True, text=True, check=True
    )
    for manifest in yaml.safe_load_all(crds.stdout):
        cluster.apply(manifest, manager="bench")
    for name in ("gpu-1", "gpu-2"):
        create_node(cluster, node_manifest(name, labels={"pool": "gpu"}))
        # The API server taints new nodes; the controller-manager, which is not there, unties them.
        untied = {"spec": {"taints": None}}
        cluster.patch(ObjectRef("", "Node", "", name), "merge", untied, manager="bench")


def _see_that_it_looks(command: list[str]) -> None:
    """A diff that waits for something would be fast, and would prove nothing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != DIFFERS or "Deployment" not in done.stdout:
        raise RuntimeError(f"unexpected diff:\n{done.stdout}\n{done.stderr}")
