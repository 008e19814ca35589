"""The scene of the end-to-end tests: a cluster, a Git host, processes, and what people see.

Everything is done and read from outside, as people do: commits over HTTP, kubectl's requests,
the status branch, the lease. Made by `test_end_to_end`, once for all of its tests.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from live.running import Running, until
from stoker.cli.world import CLUSTER_UID
from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.kube.https import HttpsTransport
from stoker.kube.transport import Request
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.controlplane import ControlPlane
from stoker.sim.git_http import GitServer
from stories.files import a_config_map, a_service, the_fleet
from stories.looks import CLEAN

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

    def play_nodes(self, *pools: str) -> None:
        """`stoker dev nodes`: engines that speak HTTP, also on simulated nodes that stand."""
        made = [word for pool in pools for word in ("--pool", pool)]
        with (self.folder / "nodes.log").open("wb") as log:
            self._nodes = subprocess.Popen(
                [
                    *(sys.executable, "-m", "stoker", "dev", "nodes", *made),
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
        return self.lease().startswith(f"{socket.gethostname()}-{process.pid}-")

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

    def holds(self, unit: str) -> list[str]:
        """What is held of a unit, by the name of its file."""
        return [hold["reason"] for hold in self.status(f"units/{unit}.yaml").get("holds", ())]

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
        for pod in self.pods().values():
            labels = pod["metadata"]["labels"]
            conditions = (pod.get("status") or {}).get("conditions") or ()
            ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            if ready and labels.get(names.TRAFFIC_LABEL):
                found[pod["metadata"]["name"]] = labels[names.MODEL_REVISION_LABEL]
        return found

    def pods(self) -> dict[str, dict[str, Any]]:
        """The pods that stay, by name; some may not serve yet."""
        listed = self.cluster.list("", "Pod", "llm").items
        return {pod["metadata"]["name"]: pod for pod in listed if stays(pod)}

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


def stays(body: dict[str, Any]) -> bool:
    return not body["metadata"].get("deletionTimestamp")
