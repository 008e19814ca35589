"""What is known of single nodes in one pass: labels, pools, room, and how soon a start is Ready.

Base of `place.Index`, which builds it and chooses between nodes.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.decide.booking import Room
from stoker.decide.case import Case
from stoker.decide.eligible import must_move, pool_of
from stoker.decide.estimates import Estimates
from stoker.decide.ready_in import P90_PERCENT, PROVISION_MS, Facts
from stoker.decide.warmth import Warmth
from stoker.model.plan import Readiness
from stoker.model.snapshot import Node, Replica
from stoker.objects.names import pool_of_place

__all__ = ["Known"]


class Known:
    """The nodes of one pass, each by itself."""

    estimates: Estimates
    _nodes: dict[str, Node]
    _labels: dict[str, dict[str, str]]
    _rooms: dict[str, Room]
    _warmth: Warmth
    _now_ms: int

    def node(self, name: str) -> Node | None:
        """That node; None when it is not in the snapshot."""
        return self._nodes.get(name)

    def pool(self, case: Case, name: str) -> str:
        """Name of the service's pool that the node is in; empty for none."""
        if asked := pool_of_place(name):
            return next((pool.name for pool in case.ask.pools if pool.name == asked), "")
        found = pool_of(self._labels.get(name, {}), case.ask.pools)
        return found[1] if found is not None else ""

    def domain(self, case: Case, name: str) -> str:
        """The domain of that node for the service's spread; empty for none."""
        return self.label(name, case.ask.spread_key)

    def label(self, name: str, key: str) -> str:
        """The value of a label of that node; empty for none."""
        return self._labels.get(name, {}).get(key, "")

    def free_gpus(self, case: Case, name: str) -> int:
        """Free GPUs of that node."""
        return self._rooms[name].device(case.spec.gpu_resource)

    def readiness_next(self, case: Case, name: str) -> Readiness:
        """The estimate for one more start there, behind those under way."""
        return self.estimates.next(case, self._warmth.facts(case, name), self._labels[name])

    def must_move(self, case: Case, name: str) -> str:
        """Why a replica of the service on that node has to move some day; empty: it may stay."""
        return must_move(self._nodes[name], self._labels[name], case.ask)

    def readiness(self, case: Case, name: str) -> Readiness:
        """The estimate for a start of the service there, were it the only one."""
        return self.estimates.of(case, self._warmth.facts(case, name), self._labels[name])

    def facts(self, case: Case, name: str) -> Facts:
        """What a start of the service would find there."""
        return self._warmth.facts(case, name)

    def readiness_of_new(self, case: Case) -> Readiness:
        """The estimate for a start on a node that has to be added first."""
        cold = self.estimates.next(case, Facts(), {})
        return replace(
            cold,
            p50_ms=cold.p50_ms + PROVISION_MS,
            p90_ms=cold.p90_ms + PROVISION_MS * P90_PERCENT // 100,
            facts=f"a new node, {cold.facts}",
        )

    def begin(self, case: Case, name: str, pod: Replica | None = None) -> None:
        """Let a start there take its place in the queues of its sources; a pod stands already."""
        facts = self._warmth.facts(case, name)
        self.estimates.begin(case, facts, self._labels[name], pod, self._now_ms)

    def start_key(self, case: Case, name: str) -> str:
        """The kind of a start of the service there now; empty where the node is not known."""
        if name not in self._nodes:
            return ""
        return self.estimates.key(case, self._warmth.facts(case, name), self._labels[name])
