"""The controllers of the in-memory cluster: what kube-controller-manager and scheduler do.

In: the Cluster port and a time. Out: a cluster one step further. Level-based and without
threads or memory, so that virtual time, tests and the demo can drive it; it works on a real
API server as well, which is how the contract suite checks it.
"""

from __future__ import annotations

from collections.abc import Callable

from stoker.errors import Bug
from stoker.kube.transport import Transport
from stoker.model.ports import Cluster
from stoker.sim.budgets import budgets
from stoker.sim.deployments import deployments
from stoker.sim.endpoints import endpoints
from stoker.sim.garbage import LostPods, collect_garbage, delete_namespaces
from stoker.sim.groups import leader_worker_sets
from stoker.sim.pod_calls import PodCalls
from stoker.sim.replicasets import replica_sets
from stoker.sim.scheduler import Scheduler
from stoker.sim.view import KINDS, Kind, View

__all__ = ["Loop", "Workloads"]

Loop = Callable[[View, Cluster, int], int]
"""One controller's round over a view at a time in ms; gives the number of writes."""


class Workloads:
    """All controllers, one round a `step`.

    `transport` is the one under `cluster`, for what the port lacks. `kinds` is what garbage
    collection and namespace deletion look at; give more kinds for clusters that have more.
    `version_of` tells the version of a kind's last write, where the server can say it: then
    only what changed is listed again.
    """

    def __init__(
        self,
        cluster: Cluster,
        transport: Transport,
        *,
        kinds: tuple[Kind, ...] = KINDS,
        version_of: Callable[[str, str], int] | None = None,
    ) -> None:
        calls = PodCalls(transport)
        self._cluster = cluster
        self._kinds = kinds
        self._version_of = version_of
        self._versions: dict[Kind, int] = {}
        self._view: View | None = None
        self._loops: tuple[Loop, ...] = (
            delete_namespaces,
            collect_garbage,
            LostPods(calls).collect,
            deployments,
            replica_sets,
            leader_worker_sets,
            Scheduler(calls).schedule,
            budgets,
            endpoints,
        )

    def step(self, now_ms: int) -> int:
        """One round of every controller over one look at the cluster; gives the writes."""
        view = self._look()
        return sum(loop(view, self._cluster, now_ms) for loop in self._loops)

    def _look(self) -> View:
        if self._version_of is None:
            return View.read(self._cluster, self._kinds)
        versions = {kind: self._version_of(kind.group, kind.kind) for kind in self._kinds}
        changed = frozenset(k for k, at in versions.items() if self._versions.get(k) != at)
        view = View.read(self._cluster, self._kinds, before=self._view, changed=changed)
        self._versions, self._view = versions, view
        return view

    def settle(self, now_ms: int, *, rounds: int = 200) -> int:
        """Step until a round changes nothing; gives the number of rounds.

        Raises Bug when controllers still write after that many: they fight.
        """
        for done in range(1, rounds + 1):
            if not self.step(now_ms):
                return done
        message = f"the simulated controllers still write after {rounds} rounds"
        raise Bug(message)
