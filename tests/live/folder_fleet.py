"""A fleet of plain files whose passes run in this process against the real API server.

Each pass begins with empty caches, as a fresh controller does. `Writer` sends what other tools
send, under their names.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from stoker.cli.session import Session, Target, local_repo
from stoker.kube.client import Client
from stoker.model.change import Action, Change
from stoker.model.refs import ObjectRef
from stoker.reconcile import Pass, Reach, State, reconcile
from stoker.render import Renderer


def document(kind: str, name: str, spec: dict[str, Any]) -> str:
    """One of our own files."""
    body = {
        "apiVersion": "stoker.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    return yaml.safe_dump(body, sort_keys=False)


class FolderFleet:
    """One Bundle in a namespace of its own. `fleet_id` fixes the id, as an install does."""

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        namespace: str,
        *,
        name: str = "owners",
        fleet_id: str = "",
        renderer: Renderer | None = None,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._renderer = renderer or Renderer(1)
        self._owns_renderer = renderer is None
        self.namespace = namespace
        self.name = name
        self.target = Target(
            kubeconfig=kubeconfig, fleet_path="fleet.yaml", fleet_id=fleet_id, namespace=namespace
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._owns_renderer:
            self._renderer.close()

    def write(self, cluster_uid: str, *bodies: dict[str, Any], **spec: Any) -> None:
        """The files: a Fleet in mode Correct and a Bundle of these objects."""
        fleet = {
            "cluster": {"uid": cluster_uid},
            "mode": "Correct",
            "include": ["/bundle.yaml"],
            "defaults": {"namespace": self.namespace},
            **spec,
        }
        files = {
            "fleet.yaml": document("Fleet", self.name, fleet),
            "bundle.yaml": document("Bundle", "all", {"render": {"manifests": ["all.yaml"]}}),
            "all.yaml": "\n---\n".join(map(json.dumps, bodies)),
        }
        for path, text in files.items():
            (self._folder / path).write_text(text, encoding="utf-8")

    def run(self, reach: Reach = Reach.APPLY) -> Pass:
        """One pass by somebody who has seen nothing before."""
        repo = local_repo(self._folder)
        with Session(repo, self.target, shared_renderer=self._renderer) as session:
            at = session.repo.fetch()
            parts = session.parts(session.desired(at))
            parts.verify = reach is Reach.DIFF
            return reconcile(parts, State(), revision=at, reach=reach)

    def changes(self) -> tuple[Change, ...]:
        """What a pass would do, object by object."""
        found = self.run(Reach.DIFF)
        assert found.changes is not None, found.failure
        return tuple(change for unit in found.changes.units for change in unit.changes)

    def differing(self) -> dict[str, tuple[str, str, str]]:
        """Action, code and note of everything that is not as it should be."""
        return {
            str(c.ref): (str(c.action), c.code, c.note)
            for c in self.changes()
            if c.action is not Action.UNCHANGED
        }


class Writer:
    """Somebody else with rights on one Deployment."""

    def __init__(self, cluster: Client, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.web = ObjectRef("apps", "Deployment", namespace, "web")

    def live(self) -> dict[str, Any]:
        return self.cluster.get(self.web)

    def patch(self, body: dict[str, Any], manager: str) -> None:
        """As `kubectl edit`, helm and most operators write."""
        self.cluster.patch(self.web, "strategic", body, manager=manager)

    def image(self, image: str, manager: str) -> None:
        self.patch(pod({"containers": [{"name": "main", "image": image}]}), manager)

    def apply(self, spec: dict[str, Any], manager: str, *, force: bool = True) -> None:
        """As `kubectl apply --server-side` and GitOps tools write."""
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            **spec,
            "metadata": {
                **spec.get("metadata", {}),
                "name": "web",
                "namespace": self.namespace,
            },
        }
        self.cluster.apply(body, manager=manager, force=force)

    def client_side_apply(self, body: dict[str, Any]) -> None:
        """As `kubectl apply` writes: a patch, and what it applied in an annotation."""
        key = "kubectl.kubernetes.io/last-applied-configuration"
        note = {"metadata": {"annotations": {key: json.dumps(body)}}}
        self.patch({**body, **note}, "kubectl-client-side-apply")

    def scale(self, count: int, manager: str) -> None:
        """As `kubectl scale`, the autoscaler and KEDA write."""
        patch = {"spec": {"replicas": count}}
        self.cluster.patch(self.web, "merge", patch, manager=manager, subresource="scale")

    def create(self, body: dict[str, Any], manager: str) -> None:
        self.cluster.create(body, manager=manager)


def pod(spec: dict[str, Any]) -> dict[str, Any]:
    """A patch of the pod template's spec."""
    return {"spec": {"template": {"spec": spec}}}
