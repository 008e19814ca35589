"""Random changes of a fleet from a fixed seed: in Git and, by hand, in the cluster.

One `act` is one change; the soak does one every two seconds, the virtual day one every two minutes.
"""

from __future__ import annotations

import random
from pathlib import Path

import w1

from stoker.kube.errors import Conflict, NotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef

__all__ = ["Churn"]

SEED = 20261130


class Churn:
    """Changes to a work tree of w1 and to the objects made from it."""

    def __init__(
        self, work: Path, cluster: Cluster, *, units: int, namespace: str, remote: Path
    ) -> None:
        self._work = work
        self._cluster = cluster
        self._units = units
        self._namespace = namespace
        self._remote = remote
        self._random = random.Random(SEED)  # noqa: S311 - the same changes every time
        self._absent: tuple[Path, str] | None = None
        self._number = 0

    def act(self) -> None:
        """Change one thing."""
        self._number += 1
        acts = (self._commit, self._commit, self._leave_or_return, self._edit, self._delete)
        self._random.choice(acts)()

    def _commit(self) -> None:
        """Another CPU request of one Deployment."""
        unit = self._any()
        cpu = f"{1 + self._number % 400}m"
        for path, text in w1.unit_files(unit, namespace=self._namespace, cpu=cpu).items():
            (self._work / path).write_text(text, encoding="utf-8")
        self._push("change")

    def _leave_or_return(self) -> None:
        """One unit leaves Git; the next time it is back."""
        if self._absent is not None:
            path, text = self._absent
            path.write_text(text, encoding="utf-8")
            self._absent = None
            self._push("return")
            return
        path = self._work / "bundles" / f"{self._name()}.yaml"
        self._absent = path, path.read_text("utf-8")
        path.unlink()
        self._push("leave")

    def _edit(self) -> None:
        """Somebody changes a label that Git says."""
        label = {"metadata": {"labels": {"app.kubernetes.io/name": "by-hand"}}}
        try:
            self._cluster.patch(self._service(), "merge", label, manager="kubectl-edit")
        except (NotFound, Conflict):
            return

    def _delete(self) -> None:
        """Somebody deletes an object that Git says."""
        try:
            self._cluster.delete(self._service())
        except (NotFound, Conflict):
            return

    def _push(self, message: str) -> None:
        w1.commit(self._work, message, remote=self._remote)

    def _any(self) -> int:
        return self._random.randint(1, self._units)

    def _name(self) -> str:
        return f"u{self._any():05d}"

    def _service(self) -> ObjectRef:
        return ObjectRef("", "Service", self._namespace, self._name(), "v1")
