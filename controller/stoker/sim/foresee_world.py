"""The small model of a cluster that a forecast is played on; pure.

Plans come in and are carried out at once; starts take their estimated time, drains none
beyond what decide waits for. Used by sim.foresee only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stoker.decide.eligible import pool_of
from stoker.model.fleet import Desired, ModelService
from stoker.model.plan import Placement, Plan, Retirement, RetireStage, ServiceDecision
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources, UnitShape
from stoker.model.snapshot import (
    DrainState,
    LivePlacement,
    Replica,
    ReplicaPhase,
    ServiceState,
    Snapshot,
    Worker,
)
from stoker.objects.names import pool_of_place

__all__ = [
    "Standing",
    "Step",
    "World",
    "act",
    "advance",
    "gpus",
    "pools_of",
    "ready",
    "snapshot_of",
    "starting",
    "world_from",
]


@dataclass(frozen=True, slots=True)
class Step:
    """One start. `replaced` names the node it takes over from, empty for an addition."""

    placement: Placement
    replaced: str = ""
    free_before: int = 0


@dataclass(slots=True)
class Standing:
    """One Deployment of the model."""

    ref: UnitRef
    live: LivePlacement
    node: str
    gpus: int
    requests: Resources
    ready_at_ms: int | None = None


@dataclass(slots=True)
class World:
    """The whole model; `slow` takes the P90 of each start."""

    desired: Desired
    shapes: dict[UnitRef, UnitShape]
    base: Snapshot
    now_ms: int
    slow: bool
    standing: dict[tuple[UnitRef, str], Standing] = field(default_factory=dict)
    departed: dict[UnitRef, list[str]] = field(default_factory=dict)
    """Nodes of Deployments that are gone and that no start has taken over from yet."""
    named: set[tuple[UnitRef, str]] = field(default_factory=set)
    """Deployments whose going is accounted for already."""


def world_from(
    desired: Desired,
    shapes: tuple[UnitShape, ...],
    snapshot: Snapshot,
    now_ms: int,
    *,
    slow: bool,
) -> World:
    """The cluster of a snapshot, with what stands of each service taken out of its nodes."""
    by_ref = {shape.ref: shape for shape in shapes}
    world = World(desired, by_ref, snapshot, now_ms, slow)
    nodes = {node.name: node for node in snapshot.nodes}
    for state in snapshot.services:
        for live in state.placements:
            requests = live.requests or _requests(by_ref, state.ref)
            bound = [node for pod in live.pods for node in pod.nodes]
            node = bound[0] if bound else live.node
            gpus = _device_count(desired, state.ref) * live.size
            world.standing[state.ref, live.name] = Standing(state.ref, live, node, gpus, requests)
            for name in bound:
                if name in nodes:
                    nodes[name] = replace(nodes[name], used=nodes[name].used.plus(requests, -1))
    world.base = replace(snapshot, nodes=tuple(sorted(nodes.values(), key=lambda n: n.name)))
    return world


def _requests(shapes: dict[UnitRef, UnitShape], ref: UnitRef) -> Resources:
    return shapes[ref].shape.requests if ref in shapes else Resources()


def _device_count(desired: Desired, ref: UnitRef) -> int:
    unit = desired.unit(ref)
    return unit.spec.gpu_count if unit and isinstance(unit.spec, ModelService) else 0


def snapshot_of(world: World) -> Snapshot:
    """The model as decide sees it."""
    used: dict[str, Resources] = {}
    services: dict[UnitRef, list[LivePlacement]] = {}
    for (ref, _), item in sorted(world.standing.items(), key=lambda entry: entry[0]):
        services.setdefault(ref, []).append(item.live)
        for node in (node for pod in item.live.pods for node in pod.nodes):
            used[node] = used.get(node, Resources()).plus(item.requests)
    return replace(
        world.base,
        taken_at_ms=world.now_ms,
        nodes=tuple(
            replace(node, used=node.used.plus(used[node.name])) if node.name in used else node
            for node in world.base.nodes
        ),
        services=tuple(
            ServiceState(ref, tuple(sorted(found, key=lambda live: live.name)))
            for ref, found in sorted(services.items())
        ),
    )


def act(world: World, plan: Plan, steps: dict[UnitRef, list[Step]]) -> set[UnitRef]:
    """Carry the plan out; gives the services that changed."""
    changed: set[UnitRef] = set()
    for decision in plan.decisions:
        leaving = {r.name: world.standing.get((decision.ref, r.name)) for r in decision.retirements}
        for placement in decision.placements:
            if _place(world, decision.ref, placement, steps, leaving):
                changed.add(decision.ref)
        for retirement in decision.retirements:
            if _retire(world, decision.ref, retirement):
                changed.add(decision.ref)
    return changed


def _place(
    world: World,
    ref: UnitRef,
    placement: Placement,
    steps: dict[UnitRef, list[Step]],
    leaving: dict[str, Standing | None],
) -> bool:
    standing = world.standing.get((ref, placement.name))
    if standing is not None:
        missing = placement.count - len(standing.live.pods)
        same = standing.live.replicas == placement.count and standing.live.rev == placement.rev
        if same and missing <= 0:
            return False
        kept = standing.live.pods[: placement.count]
        new = tuple(_pod(world, placement, n) for n in range(len(kept), placement.count))
        live = replace(
            standing.live, replicas=placement.count, rev=placement.rev, pods=(*kept, *new)
        )
        if new:
            standing.ready_at_ms = world.now_ms + _start_ms(world, placement)
        standing.live = live
        return True
    requests = _requests(world.shapes, ref)
    live = LivePlacement(
        name=placement.name,
        uid=f"forecast-{placement.name}",
        rev=placement.rev,
        node=placement.node,
        node_uid=placement.node_uid,
        replicas=placement.count,
        pods=tuple(_pod(world, placement, n) for n in range(placement.count)),
        requests=requests,
        size=placement.size,
        nodes=placement.nodes,
        domain=placement.domain,
    )
    gone = leaving.get(placement.replaces) or world.standing.get((ref, placement.replaces))
    waiting = world.departed.get(ref) or []
    replaced = gone.node if gone else waiting.pop(0) if waiting else ""
    if gone is not None:
        world.named.add((ref, gone.live.name))
    steps.setdefault(ref, []).append(
        Step(placement, replaced=replaced, free_before=_free(world, placement))
    )
    world.standing[ref, placement.name] = Standing(
        ref,
        live,
        placement.node,
        _device_count(world.desired, ref) * placement.size,
        requests,
        world.now_ms + _start_ms(world, placement),
    )
    return True


def _free(world: World, placement: Placement) -> int:
    node = next((n for n in snapshot_of(world).nodes if n.name == placement.node), None)
    if node is None:
        return 0
    names = sorted({name for name, _ in node.allocatable.extended})
    return sum(node.allocatable.device(name) - node.used.device(name) for name in names)


def _start_ms(world: World, placement: Placement) -> int:
    readiness = placement.readiness
    if readiness is None:
        return 60_000
    return readiness.p90_ms if world.slow else readiness.p50_ms


def _pod(world: World, placement: Placement, number: int) -> Replica:
    return Replica(
        name=f"{placement.name}-{number}",
        uid=f"forecast-{placement.name}-{number}",
        node=placement.node,
        phase=ReplicaPhase.STARTING,
        since_ms=world.now_ms,
        created_ms=world.now_ms,
        scheduled_ms=world.now_ms,
        workers=tuple(
            Worker(
                f"{placement.name}-{number}-{n}", f"forecast-{placement.name}-{number}-{n}", node
            )
            for n, node in enumerate(_workers(placement), 1)
        ),
    )


def _workers(placement: Placement) -> tuple[str, ...]:
    """Nodes of the workers of a group; in mode Scheduler nobody knows them."""
    return placement.nodes[1:] or ("",) * (placement.size - 1)


def _retire(world: World, ref: UnitRef, retirement: Retirement) -> bool:
    standing = world.standing.get((ref, retirement.name))
    if standing is None:
        return False
    match retirement.stage:
        case RetireStage.STOP_TRAFFIC:
            standing.live = replace(
                standing.live,
                pods=tuple(
                    replace(pod, traffic=False, drain=DrainState(world.now_ms, 0))
                    if pod.name in retirement.pods
                    else pod
                    for pod in standing.live.pods
                ),
            )
            return True
        case RetireStage.DRAIN:
            return False
        case RetireStage.SCALE_TO_ZERO:
            staying = sorted(standing.live.pods, key=lambda p: (not p.traffic, p.name))
            standing.live = replace(
                standing.live,
                replicas=retirement.keep,
                pods=tuple(sorted(staying[: retirement.keep], key=lambda p: p.name)),
            )
            if not retirement.keep:
                _depart(world, ref, standing)
            return True
        case RetireStage.DELETE:
            _depart(world, ref, standing)
            del world.standing[ref, retirement.name]
            return True


def _depart(world: World, ref: UnitRef, standing: Standing) -> None:
    """Note a place that the next start without another takes over from; once each."""
    key = (ref, standing.live.name)
    if key not in world.named:
        world.named.add(key)
        world.departed.setdefault(ref, []).append(standing.node)


def advance(world: World, plan: Plan) -> bool:
    """Move on to the next instant at which something happens; False when nothing will."""
    starts = [s.ready_at_ms for s in world.standing.values() if s.ready_at_ms is not None]
    wishes = [*starts, *([plan.wake_at_ms] if plan.wake_at_ms is not None else [])]
    later = [wish for wish in wishes if wish > world.now_ms]
    waits = any(d.retirements or _is_paused(d) for d in plan.decisions)
    if not later or (not starts and not waits):
        return False
    world.now_ms = min(later)
    for standing in world.standing.values():
        if standing.ready_at_ms is not None and standing.ready_at_ms <= world.now_ms:
            standing.ready_at_ms = None
            standing.live = replace(
                standing.live,
                pods=tuple(
                    replace(pod, phase=ReplicaPhase.READY, since_ms=world.now_ms)
                    if pod.phase.warming
                    else pod
                    for pod in standing.live.pods
                ),
            )
    return True


def _is_paused(decision: ServiceDecision) -> bool:
    """Whether its update goes on by itself later."""
    return any(hold.code == "UpdatePaused" for hold in decision.holds)


def ready(world: World, ref: UnitRef) -> int:
    """Ready replicas of a service that take traffic."""
    return sum(item.live.ready for (unit, _), item in world.standing.items() if unit == ref)


def pools_of(world: World, ref: UnitRef) -> tuple[str, ...]:
    """Pool of each replica of a service, sorted; empty for a node in none."""
    labels = {node.name: dict(node.labels) for node in world.base.nodes}
    places = [
        pod.node
        for (unit, _), item in world.standing.items()
        if unit == ref
        for pod in item.live.pods
    ]
    found = [(p, pool_of(labels.get(p, {}), world.desired.fleet.pools)) for p in places]
    return tuple(sorted(at[1] if at is not None else pool_of_place(p) for p, at in found))


def starting(world: World, ref: UnitRef) -> bool:
    """Whether a replica of the service is on its way."""
    return any(
        unit == ref and item.ready_at_ms is not None for (unit, _), item in world.standing.items()
    )


def gpus(world: World) -> int:
    """GPUs that the services hold now."""
    return sum(item.gpus * len(item.live.pods) for item in world.standing.values())
