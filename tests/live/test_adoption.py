"""Adoption and leaving on the real API server: the same UIDs and pods before and after.

Deployments stand as `kubectl apply` and a helm-like tool made them, run by simulated nodes;
a fleet takes them over, and leaves again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from live.running import until
from stoker.cli.app import run
from stoker.cli.world import World, WorldNode
from stoker.clock import SystemClock
from stoker.model.refs import ObjectRef
from stoker.objects import names
from stoker.sim.controlplane import ControlPlane
from stories.files import a_config_map, the_fleet
from stories.looks import conditions, fleet_status, unit_status

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def web(name: str, replicas: int | None, **annotations: str) -> dict[str, Any]:
    """A Deployment as people write it."""
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "registry.example/web:1"}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    metadata = {"name": name, "namespace": "llm", "annotations": annotations}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


class Village:
    """A world on the real API server, stepped by hand."""

    def __init__(self, world: World) -> None:
        self.world = world

    def make(self, manager: str, body: dict[str, Any]) -> None:
        """What the tool's first request does; kubectl notes what it applied."""
        if manager == "kubectl-client-side-apply":
            noted = json.dumps(body)
            annotations = {**body["metadata"]["annotations"], LAST_APPLIED: noted}
            body = {**body, "metadata": {**body["metadata"], "annotations": annotations}}
        self.world.cluster.create(body, manager=manager)

    def pods(self) -> dict[str, tuple[str, int]]:
        """UID and restarts by name."""
        return {
            pod["metadata"]["name"]: (
                pod["metadata"]["uid"],
                sum(c["restartCount"] for c in pod["status"].get("containerStatuses") or ()),
            )
            for pod in self.world.objects("", "Pod", "llm")
        }

    def ready(self, count: int) -> bool:
        self.world.cluster_step()
        return len(self.world.ready_pods()) == count

    def applied(self) -> bool:
        self.world.cluster_step()
        self.world.one_pass()
        status = fleet_status(self.world)
        return bool(status) and (
            status["lastAppliedRevision"] == status["lastAttemptedRevision"]
            and conditions(status)["Ready"][0] == "True"
        )

    def live(self, name: str) -> dict[str, Any]:
        return self.world.cluster.get(ObjectRef("apps", "Deployment", "llm", name))


@pytest.fixture
def village(tmp_path: Path, own_control_plane: ControlPlane) -> Iterator[Village]:
    world = World(tmp_path, (WorldNode("cpu-1"),), plane=own_control_plane, speed=20.0)
    try:
        yield Village(world)
    finally:
        world.close()


def test_adopted_deployments_keep_pods_uids_and_counts_and_so_does_a_fleet_that_leaves(
    village, own_control_plane, capsys
):
    """Issue B: each adoption path walked with no pod restarted; `uninstall` restarts nothing."""
    world = village.world
    world.cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}, manager="kubectl"
    )
    village.make("kubectl-client-side-apply", web("by-kubectl", 2))
    village.make("helm", web("by-helm", 3))
    until(lambda: village.ready(5))
    pods = village.pods()
    before = {name: village.live(name) for name in ("by-kubectl", "by-helm")}

    adopt = {names.ADOPT: "enabled"}
    files = {
        "kubectl.yaml": yaml.safe_dump(web("by-kubectl", 2, **adopt)),
        "helm.yaml": yaml.safe_dump(web("by-helm", None, **adopt)),
        "new.yaml": a_config_map("new"),
    }
    tree = the_fleet(side=files)
    space = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: llm, annotations: {json.dumps(adopt)}}}\n"
    world.commit("Adopt", {**tree, "bundles/base/namespace.yaml": space})
    until(village.applied)

    for name, was in before.items():
        now = village.live(name)
        assert was["metadata"]["uid"] == now["metadata"]["uid"]
        assert was["spec"] == now["spec"]
        assert "true" == now["metadata"]["annotations"][names.ADOPTED]
    assert pods == village.pods()

    # A field that leaves Git afterwards leaves the object, although kubectl wrote it first.
    less = web("by-kubectl", 2, **adopt)
    less["metadata"]["labels"] = {"team": "a"}
    world.commit("Label", {"bundles/side/kubectl.yaml": yaml.safe_dump(less)})
    until(village.applied)
    assert {"team": "a"} == village.live("by-kubectl")["metadata"]["labels"]
    assert [] == unit_status(world, "Bundle/llm/side")["errors"]
    assert pods == village.pods()

    world.stop_controller()
    standing = {name: village.live(name)["spec"] for name in before}
    code = run(
        [
            *("uninstall", "--yes", "--path", str(world.work_tree)),
            *("--kubeconfig", str(own_control_plane.kubeconfig_path)),
        ]
    )
    printed = capsys.readouterr()
    assert 0 == int(code), printed.err
    assert "kept 4 objects in 1 namespaces; released field manager; 0 pods restarted" in printed.out
    SystemClock().wait(2.0)
    world.cluster_step()
    assert pods == village.pods()
    manager = names.manager_of(names.fleet_id_of(world.cluster_uid, "local"))
    for name, spec in standing.items():
        now = village.live(name)
        assert spec == now["spec"]
        assert names.OWNER not in now["metadata"]["annotations"]
        assert manager not in {e["manager"] for e in now["metadata"]["managedFields"]}
    assert {"key": "value"} == world.cluster.get(ObjectRef("", "ConfigMap", "llm", "new"))["data"]
