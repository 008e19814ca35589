"""A small cluster for decide's tests: Deployments, ReplicaSets, scheduler and kubelet as loops.

`World.act` carries a plan out and checks what must never happen; `World.tick` lets
the cluster move on. Capacity is counted here in its own way, not with decide's code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from builders import GPU, NOW_MS, a_node, a_ref, some_resources
from stoker.model.plan import Placement, Plan, Retirement, RetireStage, ServiceDecision
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources
from stoker.model.snapshot import (
    DrainState,
    LivePlacement,
    Node,
    Replica,
    ReplicaPhase,
    ServiceState,
    Snapshot,
)

TICK_MS = 10_000
WARM_TICKS = 2
STUCK_AFTER_TICKS = 6
TERMINATING_TICKS = 2


@dataclass
class Pod:
    name: str
    node: str = ""
    age: int = 0
    phase: ReplicaPhase = ReplicaPhase.PENDING
    traffic: bool = True
    drain_since_ms: int | None = None
    in_flight: int = 3
    left: int = TERMINATING_TICKS
    created_ms: int = 0

    def seen(self) -> Replica:
        since = self.drain_since_ms
        return Replica(
            name=self.name,
            uid=self.name,
            node=self.node,
            phase=self.phase,
            since_ms=self.created_ms,
            created_ms=self.created_ms,
            reason="CrashLoopBackOff" if self.phase is ReplicaPhase.STUCK else "",
            traffic=self.traffic,
            drain=None if since is None else DrainState(since, self.in_flight),
        )


@dataclass
class Deployment:
    ref: UnitRef
    name: str
    rev: str
    node: str
    replicas: int
    requests: Resources
    pods: list[Pod] = field(default_factory=list)
    made: int = 0
    acted_on: int = 0
    """The count that its controller saw last."""

    def active(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.phase is not ReplicaPhase.TERMINATING]


class World:
    """`nodes` carry what foreign pods use; bad revs, and pods on bad nodes, never become Ready."""

    def __init__(self, nodes: list[Node], requests: Callable[[UnitRef], Resources] | None = None):
        self.nodes = {node.name: node for node in nodes}
        self.requests = requests or (lambda _: some_resources())
        self.deployments: dict[str, Deployment] = {}
        self.orphans: list[tuple[Pod, Resources]] = []
        self.now_ms = NOW_MS
        self.bad_revs: set[str] = set()
        self.bad_nodes: set[str] = set()
        self.pools = {"l4"}
        self.pinned = False
        """Whether pods run on their decided node or nowhere (`pin: Required`)."""

    # ---- what decide sees
    def snapshot(self) -> Snapshot:
        states: dict[UnitRef, list[LivePlacement]] = {}
        for deployment in self.deployments.values():
            states.setdefault(deployment.ref, []).append(self._seen(deployment))
        return Snapshot(
            taken_at_ms=self.now_ms,
            cluster_uid="",
            nodes=tuple(
                replace(node, used=node.used.plus(self._bound(node.name)))
                for node in sorted(self.nodes.values(), key=lambda node: node.name)
            ),
            services=tuple(
                ServiceState(ref, tuple(sorted(found, key=lambda live: live.name)))
                for ref, found in sorted(states.items())
            ),
        )

    def _seen(self, deployment: Deployment) -> LivePlacement:
        return LivePlacement(
            name=deployment.name,
            uid=f"uid-{deployment.name}",
            rev=deployment.rev,
            node=deployment.node,
            node_uid=f"uid-{deployment.node}" if deployment.node else "",
            replicas=deployment.replicas,
            pods=tuple(sorted((pod.seen() for pod in deployment.pods), key=lambda pod: pod.name)),
            requests=deployment.requests,
            unsettled=deployment.acted_on != deployment.replicas,
        )

    def _bound(self, node: str) -> Resources:
        total = Resources()
        for deployment in self.deployments.values():
            here = sum(1 for pod in deployment.pods if pod.node == node)
            total = total.plus(deployment.requests, here)
        for pod, requests in self.orphans:
            if pod.node == node:
                total = total.plus(requests)
        return total

    # ---- what a plan does
    def act(self, plan: Plan) -> bool:
        """Carry it out; gives whether anything was written."""
        changed = False
        before = {name: self.asked(name) for name in self.nodes}
        for decision in plan.decisions:
            names = [p.name for p in decision.placements]
            assert len(names) == len(set(names))
            ours = {d.name for d in self.deployments.values() if d.ref == decision.ref}
            assert ours <= set(decision.deployment_names), "a Deployment would be pruned"
            for placement in decision.placements:
                changed |= self._write(decision, placement)
            for retirement in decision.retirements:
                changed |= self._retire(retirement)
        for name, node in self.nodes.items():
            asked = self.asked(name)
            fits = node.allocatable.holds(asked) or before[name].holds(asked)
            assert fits, f"{name} is asked for {asked} of {node.allocatable}"
        return changed

    def _write(self, decision: ServiceDecision, placement: Placement) -> bool:
        live = self.deployments.get(placement.name)
        assert (live is not None and live.rev == placement.rev) == placement.exists or (
            not placement.node
        )
        if live is None:
            self.deployments[placement.name] = Deployment(
                decision.ref,
                placement.name,
                placement.rev,
                placement.node,
                placement.count,
                self.requests(decision.ref),
            )
            return True
        assert live.node == placement.node
        changed = live.replicas != placement.count or live.rev != placement.rev
        if live.rev != placement.rev:
            live.rev = placement.rev
        live.replicas = placement.count
        return changed

    def _retire(self, retirement: Retirement) -> bool:
        live = self.deployments[retirement.name]
        pods = {pod.name: pod for pod in live.active()}
        match retirement.stage:
            case RetireStage.STOP_TRAFFIC:
                for name in set(retirement.pods) & set(pods):
                    pods[name].traffic = False
                    pods[name].drain_since_ms = self.now_ms
                return True
            case RetireStage.DRAIN:
                return False
            case RetireStage.SCALE_TO_ZERO:
                changed = live.replicas != retirement.keep
                live.replicas = retirement.keep
                return changed
            case RetireStage.DELETE:
                assert live.replicas == 0
                assert retirement.keep == 0
                self.orphans += [(pod, live.requests) for pod in live.pods]
                del self.deployments[retirement.name]
                return True

    def asked(self, name: str) -> Resources:
        """What is asked of a node, pods still to come counted where they were decided."""
        total = self.nodes[name].used.plus(self._bound(name))
        for deployment in self.deployments.values():
            if deployment.node == name:
                bound = sum(1 for pod in deployment.active() if pod.node)
                total = total.plus(deployment.requests, max(0, deployment.replicas - bound))
        return total

    # ---- what the cluster does by itself
    def tick(self) -> None:
        self.now_ms += TICK_MS
        for deployment in sorted(self.deployments.values(), key=lambda d: d.name):
            self._replica_set(deployment)
        for deployment in sorted(self.deployments.values(), key=lambda d: d.name):
            for pod in deployment.active():
                self._kubelet(deployment, pod)
            deployment.pods = [pod for pod in deployment.pods if self._remains(pod)]
        self.orphans = [(pod, r) for pod, r in self.orphans if self._remains(pod, orphan=True)]

    def _replica_set(self, deployment: Deployment) -> None:
        active = deployment.active()
        deployment.acted_on = deployment.replicas
        for _ in range(deployment.replicas - len(active)):
            deployment.made += 1
            name = f"{deployment.name}-{deployment.made:03}"
            deployment.pods.append(Pod(name, created_ms=self.now_ms))
        surplus = sorted(
            active,
            key=lambda pod: (
                bool(pod.node),
                pod.phase is ReplicaPhase.READY,
                pod.traffic,
                -pod.created_ms,
                pod.name,
            ),
        )
        for pod in surplus[: max(0, len(active) - deployment.replicas)]:
            pod.phase = ReplicaPhase.TERMINATING

    def _kubelet(self, deployment: Deployment, pod: Pod) -> None:
        pod.age += 1
        if not pod.node:
            if not self._schedule(deployment, pod) and pod.age > STUCK_AFTER_TICKS:
                pod.phase = ReplicaPhase.STUCK
            return
        if pod.drain_since_ms is not None:
            pod.in_flight = max(0, pod.in_flight - 1)
        if deployment.rev in self.bad_revs or pod.node in self.bad_nodes:
            pod.phase = ReplicaPhase.STUCK
        elif pod.age > WARM_TICKS:
            pod.phase = ReplicaPhase.READY

    def _schedule(self, deployment: Deployment, pod: Pod) -> bool:
        wished = [self.nodes[deployment.node]] if deployment.node in self.nodes else []
        others = [] if self.pinned else sorted(self.nodes.values(), key=lambda node: node.name)
        for node in (*wished, *others):
            if node.cordoned or dict(node.labels)["pool"] not in self.pools:
                continue
            asked = node.used.plus(self._bound(node.name)).plus(deployment.requests)
            if node.allocatable.holds(asked):
                pod.node = node.name
                pod.phase = ReplicaPhase.STARTING
                return True
        return False

    def _remains(self, pod: Pod, *, orphan: bool = False) -> bool:
        if pod.phase is ReplicaPhase.TERMINATING or orphan:
            pod.left -= 1
        return pod.left > 0

    # ---- what tests ask
    def ready(self, ref: UnitRef, rev: str | None = None) -> int:
        return sum(
            1
            for deployment in self.deployments.values()
            for pod in deployment.pods
            if deployment.ref == ref
            and rev in {None, deployment.rev}
            and pod.phase is ReplicaPhase.READY
            and pod.traffic
        )

    def pods(self, ref: UnitRef) -> list[Pod]:
        return [
            pod
            for deployment in self.deployments.values()
            if deployment.ref == ref
            for pod in deployment.active()
        ]

    def draining(self, ref: UnitRef) -> int:
        return sum(1 for pod in self.pods(ref) if not pod.traffic)


def some_nodes(*free: int, gpus: int = 8) -> list[Node]:
    """Nodes n1, n2, … with that many GPUs free."""
    return [
        a_node(f"n{number}", gpus=gpus, used=gpus - count)
        for number, count in enumerate(free, start=1)
    ]


__all__ = [
    "GPU",
    "NOW_MS",
    "TICK_MS",
    "Deployment",
    "Pod",
    "World",
    "a_ref",
    "some_nodes",
]
