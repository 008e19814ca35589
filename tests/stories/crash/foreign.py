"""Objects of other people that look like ours: copied labels, copied and typed marks.

None of them may ever be changed or deleted, whatever the controller remembers or forgets
(cases.md row 71; kustomize-controller issues 192 and 315).
"""

from __future__ import annotations

from typing import Any

from stoker.cli.world import World
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects import names
from stories.crash.oracle import TYPED, fleet_id


def plant(world: World) -> None:
    """Create them all in namespace llm, which is theirs too."""
    fleet = fleet_id(world)
    side = UnitRef("Bundle", "llm", "side")
    labels = {
        names.FLEET_LABEL: fleet,
        names.SERVICE_LABEL: "tiny",
        names.PLACEMENT_LABEL: "00000000",
        names.MANAGED_BY: "stoker",
        names.TRAFFIC_LABEL: "true",
    }
    moved = ObjectRef("", "ConfigMap", "llm", "side", "v1")
    bodies = [
        _config_map("copied-labels", labels=labels),
        _config_map("copied-mark", labels, names.owner_mark(fleet, side, moved)),
        _config_map("typed-mark", labels, names.owner_mark(fleet, side, TYPED)),
        _config_map("other-fleet", labels, "other" + names.owner_mark(fleet, side, moved)),
        _lookalike(labels, names.owner_mark(fleet, side, moved)),
    ]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}
    world.cluster.create(space, manager="kubectl-create")
    for body in bodies:
        world.cluster.create(body, manager="kubectl-create")
    parent = world.cluster.get(ObjectRef("", "ConfigMap", "llm", "copied-labels", "v1"))
    world.cluster.create(_child(labels, parent["metadata"]["uid"]), manager="operator")


def _config_map(name: str, labels: dict[str, str], mark: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "llm", "labels": labels}
    if mark:
        metadata["annotations"] = {names.OWNER: mark}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"their": "own"}}


def _lookalike(labels: dict[str, str], mark: str) -> dict[str, Any]:
    container = {"name": "engine", "image": "registry.example/other:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "lookalike",
            "namespace": "llm",
            "labels": labels,
            "annotations": {names.OWNER: mark},
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "lookalike"}},
            "template": {
                "metadata": {"labels": {"app": "lookalike"}},
                "spec": {"containers": [container]},
            },
        },
    }


def _child(labels: dict[str, str], parent_uid: str) -> dict[str, Any]:
    """What an operator made and gave all labels of its parent."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "copied-labels", "uid": parent_uid}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "child",
            "namespace": "llm",
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {"selector": {"app": "lookalike"}, "ports": [{"port": 80}]},
    }
