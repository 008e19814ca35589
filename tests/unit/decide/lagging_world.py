"""The small cluster of world.py, seen late and out of order, as watches may show it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from stoker.model.plan import Plan, RetireStage
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources
from stoker.model.snapshot import LivePlacement, Node, ServiceState, Snapshot
from unit.decide.world import Pod, World


class LaggingWorld(World):
    """Each pod is seen as it was up to two ticks ago, each its own way, never backwards.

    Own writes are answered and folded, so Deployments are seen as written, and a pod that
    was patched is seen at least as patched. What a node's pods use is summed from the same
    pods, as observe does.
    """

    LAG = 2

    def __init__(self, nodes: list[Node], chance: random.Random, **fields: Any):
        super().__init__(nodes, **fields)
        self.chance = chance
        self.pinned = True
        self.ticks = 0
        self.log: dict[str, list[tuple[str, Resources, Pod | None]]] = {}
        self.counted: dict[str, list[int]] = {}
        self.written_at: dict[str, int] = {}
        self.seen_at: dict[str, int] = {}

    def tick(self) -> None:
        super().tick()
        self.ticks += 1
        self._note()

    def act(self, plan: Plan) -> bool:
        before = {name: d.replicas for name, d in self.deployments.items()}
        changed = super().act(plan)
        for name, deployment in self.deployments.items():
            if before.get(name) != deployment.replicas:
                self.written_at[name] = self.ticks
        patched = {
            name
            for decision in plan.decisions
            for retirement in decision.retirements
            if retirement.stage is RetireStage.STOP_TRAFFIC
            for name in retirement.pods
        }
        self._note()
        self.seen_at.update(dict.fromkeys(patched, self.ticks))
        return changed

    def _note(self) -> None:
        """Write down how every pod is now, None once it is gone, and how many each has."""
        for name, deployment in self.deployments.items():
            counts = self.counted.setdefault(name, [])
            counts.extend([0] * (self.ticks - len(counts)))
            counts[self.ticks :] = [len(deployment.pods)]
        standing = {
            pod.name: (deployment.name, deployment.requests, pod)
            for deployment in self.deployments.values()
            for pod in deployment.pods
        }
        standing |= {pod.name: ("", requests, pod) for pod, requests in self.orphans}
        for name in sorted(standing.keys() | self.log.keys()):
            log = self.log.setdefault(name, [])
            owner, requests, pod = standing.get(name, ("", Resources(), None))
            while len(log) < self.ticks:
                log.append(log[-1] if log else ("", Resources(), None))
            del log[self.ticks :]
            log.append((owner, requests, replace(pod) if pod is not None else None))

    def _is_unsettled(self, name: str, seen: int) -> bool:
        """By a status that lags as well, but is no older than the last write."""
        written = self.written_at.get(name, 0)
        at = self.chance.randint(max(written, self.ticks - self.LAG), self.ticks)
        return at == written or self.counted[name][at] > seen

    def snapshot(self) -> Snapshot:
        views: dict[str, list[Pod]] = {}
        used: dict[str, Resources] = {}
        for name, log in sorted(self.log.items()):
            oldest = max(self.seen_at.get(name, 0), self.ticks - self.LAG)
            self.seen_at[name] = self.chance.randint(min(oldest, self.ticks), self.ticks)
            owner, requests, pod = log[self.seen_at[name]]
            if pod is not None:
                views.setdefault(owner, []).append(pod)
                used[pod.node] = used.get(pod.node, Resources()).plus(requests)
        states: dict[UnitRef, list[LivePlacement]] = {}
        for deployment in self.deployments.values():
            pods = sorted(views.get(deployment.name, []), key=lambda pod: pod.name)
            live = replace(
                self._seen(deployment),
                pods=tuple(pod.seen() for pod in pods),
                unsettled=self._is_unsettled(deployment.name, len(pods)),
            )
            states.setdefault(deployment.ref, []).append(live)
        return replace(
            super().snapshot(),
            nodes=tuple(
                replace(node, used=node.used.plus(used.get(node.name, Resources())))
                for node in sorted(self.nodes.values(), key=lambda node: node.name)
            ),
            services=tuple(
                ServiceState(ref, tuple(sorted(found, key=lambda live: live.name)))
                for ref, found in sorted(states.items())
            ),
        )
