"""A small cluster that runs groups: LeaderWorkerSets of one group each, scheduler and kubelets.

`act` carries a plan out and checks what must never happen, `tick` lets the cluster move on.
Rooms are counted here in their own way, in GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from builders import GPU, NOW_MS, a_node, a_ref, some_resources
from stoker.model.plan import Placement, Plan, Retirement, RetireStage
from stoker.model.shape import Resources
from stoker.model.snapshot import (
    DrainState,
    LivePlacement,
    Node,
    Replica,
    ReplicaPhase,
    ServiceState,
    Snapshot,
    Worker,
)

ZONE = "topology.kubernetes.io/zone"
TICK_MS = 10_000
WARM_TICKS = 2
GONE_TICKS = 2


@dataclass
class Group:
    """One LeaderWorkerSet. `pods` are nodes by worker index, empty while not bound."""

    name: str
    rev: str
    nodes: tuple[str, ...]
    domain: str
    gpus: int
    replicas: int = 1
    pods: list[str] = field(default_factory=list)
    age: int = 0
    traffic: bool = True
    drain_since_ms: int | None = None
    leaving: int = 0
    """Ticks until its pods are gone; 0 while they stay."""

    @property
    def whole(self) -> bool:
        return len(self.pods) == len(self.nodes) and all(self.pods)

    def phase(self, lost: set[str]) -> ReplicaPhase:
        if self.leaving:
            return ReplicaPhase.TERMINATING
        if not self.whole:
            return ReplicaPhase.PENDING
        up = self.age >= WARM_TICKS and lost.isdisjoint(self.pods)
        return ReplicaPhase.READY if up else ReplicaPhase.STARTING

    def seen(self, lost: set[str]) -> tuple[Replica, ...]:
        if not self.pods:
            return ()
        since = self.drain_since_ms
        leader, *workers = self.pods
        return (
            Replica(
                name=f"{self.name}-0",
                uid=f"{self.name}-0",
                node=leader,
                phase=self.phase(lost),
                since_ms=NOW_MS,
                created_ms=NOW_MS,
                traffic=self.traffic,
                drain=None if since is None else DrainState(since, 0),
                workers=tuple(
                    Worker(f"{self.name}-0-{number}", f"{self.name}-0-{number}", node)
                    for number, node in enumerate(workers, 1)
                ),
            ),
        )


class GroupWorld:
    """`nodes` by name; `lost` ones do not answer."""

    def __init__(self, nodes: list[Node], size: int) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.size = size
        self.groups: dict[str, Group] = {}
        self.lost: set[str] = set()
        self.now_ms = NOW_MS

    def snapshot(self) -> Snapshot:
        places = [
            LivePlacement(
                name=group.name,
                uid=f"uid-{group.name}",
                rev=group.rev,
                node=group.nodes[0],
                node_uid=f"uid-{group.nodes[0]}",
                replicas=group.replicas,
                pods=group.seen(self.lost),
                requests=some_resources(group.gpus),
                size=self.size,
                nodes=group.nodes,
                domain=group.domain,
            )
            for group in sorted(self.groups.values(), key=lambda each: each.name)
        ]
        services = (ServiceState(a_ref("qwen"), tuple(places)),) if places else ()
        return Snapshot(
            taken_at_ms=self.now_ms,
            cluster_uid="",
            nodes=tuple(
                replace(
                    node,
                    ready=name not in self.lost,
                    used=node.used.plus(self._bound(name)),
                )
                for name, node in sorted(self.nodes.items())
            ),
            services=services,
        )

    def _bound(self, name: str) -> Resources:
        total = Resources()
        for group in self.groups.values():
            total = total.plus(some_resources(group.gpus), group.pods.count(name))
        return total

    def asked(self, name: str) -> int:
        """GPUs asked of a node: foreign, bound, and of groups that are not whole what is decided."""
        total = self.nodes[name].used.device(GPU)
        for group in self.groups.values():
            waits = group.replicas and not group.whole and not group.leaving
            here = group.pods.count(name)
            total += group.gpus * (here or int(bool(waits) and name in group.nodes))
        return total

    def over(self) -> set[str]:
        return {n for n, node in self.nodes.items() if self.asked(n) > node.allocatable.device(GPU)}

    def serving(self) -> list[str]:
        return sorted(
            group.name
            for group in self.groups.values()
            if group.traffic and group.phase(self.lost) is ReplicaPhase.READY
        )

    def act(self, plan: Plan) -> bool:
        (decision,) = plan.decisions
        changed, before = False, self.over()
        assert set(self.groups) <= set(decision.deployment_names), "a group would be pruned"
        assert set(self.groups) <= set(decision.groups)
        for placement in decision.placements:
            changed |= self._write(placement)
        for retirement in decision.retirements:
            changed |= self._retire(retirement)
        assert self.over() <= before, "GPUs are given away twice"
        return changed

    def _write(self, placement: Placement) -> bool:
        live = self.groups.get(placement.name)
        assert placement.exists == (live is not None)
        assert 1 == placement.count
        assert placement.nodes[0] == placement.node
        if live is not None:
            assert live.nodes == placement.nodes
            changed, live.replicas = live.replicas != 1, 1
            return changed
        assert self.size == len(set(placement.nodes)), "a group starts whole"
        places = {
            tuple(dict(self.nodes[n].labels)[k] for k in (ZONE, "pool")) for n in placement.nodes
        }
        assert 1 == len(places), "in one domain of one pool"
        assert placement.domain in next(iter(places))
        assert not any(self.nodes[n].cordoned or self.nodes[n].notice for n in placement.nodes)
        made = Group(placement.name, placement.rev, placement.nodes, placement.domain, self._gpus)
        self.groups[placement.name] = made
        return True

    _gpus = 1

    def _retire(self, retirement: Retirement) -> bool:
        live = self.groups[retirement.name]
        assert retirement.grouped
        match retirement.stage:
            case RetireStage.STOP_TRAFFIC:
                assert (f"{live.name}-0",) == retirement.pods, "the leader, and nobody else"
                live.traffic, live.drain_since_ms = False, self.now_ms
                return True
            case RetireStage.DRAIN:
                return False
            case RetireStage.SCALE_TO_ZERO:
                changed, live.replicas = live.replicas != 0, 0
                return changed
            case RetireStage.DELETE:
                assert not live.pods
                assert not live.replicas
                del self.groups[live.name]
                return True

    def tick(self, random: Random) -> None:
        self.now_ms += TICK_MS
        for group in sorted(self.groups.values(), key=lambda each: each.name):
            gone = [name for name in group.pods if name and name not in self.nodes]
            if (not group.replicas or gone) and group.pods and not group.leaving:
                group.leaving = GONE_TICKS
            if group.leaving:
                group.leaving -= 1
                if not group.leaving:
                    group.pods, group.age, group.traffic = [], 0, True
                    group.drain_since_ms = None
                continue
            if not group.replicas:
                continue
            group.pods = group.pods or [""] * len(group.nodes)
            for number, name in enumerate(group.pods):
                if not name:
                    group.pods[number] = self._schedule(group, group.nodes[number], random)
            group.age += int(group.whole)

    def _schedule(self, group: Group, wish: str, random: Random) -> str:
        """The decided node if it can, else any other of the domain; sometimes a tick later."""
        if random.random() < 0.2:
            return ""
        others = sorted(n for n in self.nodes if dict(self.nodes[n].labels)[ZONE] == group.domain)
        for name in (wish, *others):
            node = self.nodes.get(name)
            if node is None or node.cordoned or name in self.lost or name in group.pods:
                continue
            used = node.used.device(GPU) + self._bound(name).device(GPU)
            if used + group.gpus <= node.allocatable.device(GPU):
                return name
        return ""


def some_zoned_nodes(random: Random) -> list[Node]:
    """Two to nine nodes over three zones, one or two GPUs each, some in use already."""
    found = []
    for number in range(random.randint(2, 9)):
        gpus = random.randint(1, 2)
        labels = {ZONE: random.choice("abc")}
        found.append(a_node(f"n{number}", gpus=gpus, used=random.randint(0, gpus), labels=labels))
    return found
