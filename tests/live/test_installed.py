"""`stoker init` and `stoker install` on a real API server, with the rights that were printed.

The administrator applies what install prints; the controller then runs as that service
account and nothing more, over the repository that init wrote.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from live.running import until
from live.scene import USERS, Scene
from stoker.kube.transport import Request
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.controlplane import ControlPlane
from stoker.sim.controlplane_flags import kubeconfig
from stoker.sim.git_http import GitServer

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

SPACE = ObjectRef("", "Namespace", "", "llm", "v1")


def stoker(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "stoker", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def fresh_repository(scene: Scene) -> dict[str, str]:
    """What `stoker init` writes, in mode Correct and with quick status."""
    folder = scene.folder / "fresh"
    folder.mkdir()
    uid = scene.cluster.server().cluster_uid
    stoker("init", "--cluster-uid", uid, folder=folder)
    tree = {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    fleet = tree["clusters/local/fleet.yaml"]
    quick = fleet.replace("mode: Observe", "mode: Correct") + "  status: {flushInterval: 1s}\n"
    return {**tree, "clusters/local/fleet.yaml": quick}


def installed(scene: Scene) -> list[dict[str, Any]]:
    """`stoker install … | kubectl apply -f -`; its controller stays down, for ours runs here.

    The namespace of the workloads stands before, made as `kubectl create namespace` does.
    """
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}
    scene.cluster.create(space, manager="kubectl-create")
    printed = stoker(
        *("install", "--image", "registry.example/stoker:1", "--repo", scene.git.url("fleet")),
        *("--fleet", "clusters/local/fleet.yaml", "--write-namespace", "llm"),
        folder=scene.folder / "fresh",
    )
    bodies = [body for body in yaml.safe_load_all(printed) if body]
    for body in bodies:
        if body["kind"] == "Deployment":
            body["spec"]["replicas"] = 0
        scene.cluster.apply(body, manager="kubectl")
    return bodies


def account_kubeconfig(scene: Scene, name: str) -> Path:
    """A kubeconfig with a token of the controller's service account, by TokenRequest."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = scene.transport.send(
        Request(
            "POST",
            f"/api/v1/namespaces/stoker-system/serviceaccounts/{name}/token",
            body=json.dumps(body).encode(),
            content_type="application/json",
        )
    )
    token = json.loads(answer.body)["status"]["token"]
    path = scene.folder / "account.kubeconfig"
    path.write_text(kubeconfig(scene.plane.url, scene.plane.ca_path, token, name))
    return path


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, own_control_plane: ControlPlane
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("installed")
    with GitServer(folder / "git-host", USERS) as git:
        made = Scene(folder, own_control_plane, git)
        try:
            made.play_nodes("gpu=3x1")
            yield made
        finally:
            made.close()


def test_an_installed_controller_brings_a_fresh_repository_to_synced(scene):
    """The namespace must stand for its RoleBinding, and is the fleet's all the same."""
    tree = fresh_repository(scene)
    bodies = installed(scene)
    before = scene.cluster.get(SPACE)["metadata"]["uid"]
    account = next(b["metadata"]["name"] for b in bodies if b["kind"] == "ServiceAccount")
    assert f"stoker-{scene.fleet_id}" == account
    commit = scene.commit(tree)

    running = scene.start(
        *("--listen", "", "--kubeconfig", str(account_kubeconfig(scene, account)))
    )
    until(lambda: scene.is_applied(commit))

    status = scene.status()
    units = [
        scene.status(f"units/{unit}.yaml")
        for unit in ("bundle.llm.base", "modelservice.llm.qwen-0-5b")
    ]
    assert [] == status["errors"] == [e for unit in units for e in unit["errors"]]
    assert ["Synced", "Synced"] == [unit["sync"]["status"] for unit in units]
    log = running.log.read_text(encoding="utf-8").lower()
    assert "forbidden" not in log, [line for line in log.splitlines() if "forbidden" in line][:5]
    space = scene.cluster.get(SPACE)
    assert before == space["metadata"]["uid"]
    assert "true" == space["metadata"]["annotations"][names.ADOPTED]
    assert space["metadata"]["annotations"][names.OWNER].startswith(f"{scene.fleet_id}/")
