"""What a plan leads to: `decide` asked again and again while a small model of the cluster obeys.

Desired, shapes and a snapshot come in; per service its steps, the lowest count of Ready
replicas on the way and the time until done go out. Pure: `stoker plan` and tests call it.
Requests are taken to drain within `endpointSync`; starts take their estimated time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stoker.decide import decide
from stoker.model.fleet import Desired, ModelService
from stoker.model.history import History
from stoker.model.plan import Placement, Plan, Retirement, RetireStage
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources, UnitShape
from stoker.model.snapshot import (
    DrainState,
    LivePlacement,
    Replica,
    ReplicaPhase,
    ServiceState,
    Snapshot,
)

__all__ = ["Forecast", "ServiceForecast", "Step", "foresee"]

MAX_PASSES = 2000
"""A forecast that needs more gives up and says so."""


@dataclass(frozen=True, slots=True)
class Step:
    """One start. `replaced` names the node it takes over from, empty for an addition."""

    placement: Placement
    replaced: str = ""
    free_before: int = 0


@dataclass(frozen=True, slots=True)
class ServiceForecast:
    """One service. Times are milliseconds from now; `done_ms` None = it never gets there."""

    ref: UnitRef
    steps: tuple[Step, ...] = ()
    lowest_ready: int = 0
    done_ms: int | None = 0


@dataclass(frozen=True, slots=True)
class Forecast:
    """All services, sorted by ref. `gave_up` when the model did not come to rest."""

    services: tuple[ServiceForecast, ...]
    gpus_peak: int = 0
    gave_up: bool = False

    def of(self, ref: UnitRef) -> ServiceForecast:
        """The forecast of that service; an empty one when nothing is known."""
        return next((s for s in self.services if s.ref == ref), ServiceForecast(ref))


@dataclass(slots=True)
class _Standing:
    """One Deployment of the model."""

    ref: UnitRef
    live: LivePlacement
    node: str
    gpus: int
    requests: Resources
    ready_at_ms: int | None = None


@dataclass(slots=True)
class _World:
    desired: Desired
    shapes: dict[UnitRef, UnitShape]
    base: Snapshot
    now_ms: int
    slow: bool
    standing: dict[tuple[UnitRef, str], _Standing] = field(default_factory=dict)


def foresee(
    desired: Desired,
    shapes: tuple[UnitShape, ...],
    snapshot: Snapshot,
    history: History,
    now_ms: int,
    *,
    slow: bool = False,
) -> Forecast:
    """Play the plan until nothing more happens; `slow` takes the P90 of each start."""
    world = _world(desired, shapes, snapshot, now_ms, slow=slow)
    steps: dict[UnitRef, list[Step]] = {}
    lowest = {ref: _ready(world, ref) for ref in world.shapes}
    done: dict[UnitRef, int] = {}
    # 1. ask, 2. obey, 3. note what is lowest and what is done, 4. move on to the next event.
    peak = _gpus(world)
    for _ in range(MAX_PASSES):
        plan = decide(desired, shapes, _snapshot(world), history, world.now_ms)
        history = History.from_records(plan.history)
        changed = _act(world, plan, steps)
        peak = max(peak, _gpus(world))
        for ref in world.shapes:
            lowest[ref] = min(lowest[ref], _ready(world, ref))
            if ref in changed or _starting(world, ref):
                done.pop(ref, None)
            done.setdefault(ref, world.now_ms)
        if not changed and not _advance(world, plan):
            return _forecast(world, plan, steps, lowest, done, now_ms, peak)
    return replace(_forecast(world, plan, steps, lowest, {}, now_ms, peak), gave_up=True)


def _world(
    desired: Desired,
    shapes: tuple[UnitShape, ...],
    snapshot: Snapshot,
    now_ms: int,
    *,
    slow: bool,
) -> _World:
    by_ref = {shape.ref: shape for shape in shapes}
    world = _World(desired, by_ref, snapshot, now_ms, slow)
    nodes = {node.name: node for node in snapshot.nodes}
    for state in snapshot.services:
        for live in state.placements:
            requests = live.requests or _requests(by_ref, state.ref)
            bound = [pod.node for pod in live.pods if pod.node]
            node = bound[0] if bound else live.node
            gpus = _device_count(desired, state.ref)
            world.standing[state.ref, live.name] = _Standing(state.ref, live, node, gpus, requests)
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


def _snapshot(world: _World) -> Snapshot:
    """The model as decide sees it."""
    used: dict[str, Resources] = {}
    services: dict[UnitRef, list[LivePlacement]] = {}
    for (ref, _), item in sorted(world.standing.items(), key=lambda entry: entry[0]):
        services.setdefault(ref, []).append(item.live)
        for pod in item.live.pods:
            if pod.node:
                used[pod.node] = used.get(pod.node, Resources()).plus(item.requests)
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


def _act(world: _World, plan: Plan, steps: dict[UnitRef, list[Step]]) -> set[UnitRef]:
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
    world: _World,
    ref: UnitRef,
    placement: Placement,
    steps: dict[UnitRef, list[Step]],
    leaving: dict[str, _Standing | None],
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
    )
    gone = leaving.get(placement.replaces) or world.standing.get((ref, placement.replaces))
    steps.setdefault(ref, []).append(
        Step(placement, replaced=gone.node if gone else "", free_before=_free(world, placement))
    )
    world.standing[ref, placement.name] = _Standing(
        ref,
        live,
        placement.node,
        _device_count(world.desired, ref),
        requests,
        world.now_ms + _start_ms(world, placement),
    )
    return True


def _free(world: _World, placement: Placement) -> int:
    node = next((n for n in _snapshot(world).nodes if n.name == placement.node), None)
    if node is None:
        return 0
    names = sorted({name for name, _ in node.allocatable.extended})
    return sum(node.allocatable.device(name) - node.used.device(name) for name in names)


def _start_ms(world: _World, placement: Placement) -> int:
    readiness = placement.readiness
    if readiness is None:
        return 60_000
    return readiness.p90_ms if world.slow else readiness.p50_ms


def _pod(world: _World, placement: Placement, number: int) -> Replica:
    return Replica(
        name=f"{placement.name}-{number}",
        uid=f"forecast-{placement.name}-{number}",
        node=placement.node,
        phase=ReplicaPhase.STARTING,
        since_ms=world.now_ms,
        created_ms=world.now_ms,
    )


def _retire(world: _World, ref: UnitRef, retirement: Retirement) -> bool:
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
            return True
        case RetireStage.DELETE:
            del world.standing[ref, retirement.name]
            return True


def _advance(world: _World, plan: Plan) -> bool:
    """Move on to the next instant at which something happens; False when nothing will."""
    starts = [s.ready_at_ms for s in world.standing.values() if s.ready_at_ms is not None]
    wishes = [*starts, *([plan.wake_at_ms] if plan.wake_at_ms is not None else [])]
    later = [wish for wish in wishes if wish > world.now_ms]
    if not later or (not starts and not any(d.retirements for d in plan.decisions)):
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


def _ready(world: _World, ref: UnitRef) -> int:
    return sum(item.live.ready for (unit, _), item in world.standing.items() if unit == ref)


def _starting(world: _World, ref: UnitRef) -> bool:
    return any(
        unit == ref and item.ready_at_ms is not None for (unit, _), item in world.standing.items()
    )


def _gpus(world: _World) -> int:
    return sum(item.gpus * len(item.live.pods) for item in world.standing.values())


def _forecast(
    world: _World,
    plan: Plan,
    steps: dict[UnitRef, list[Step]],
    lowest: dict[UnitRef, int],
    done: dict[UnitRef, int],
    began_ms: int,
    peak: int,
) -> Forecast:
    services = []
    for ref in sorted(world.shapes):
        decision = plan.decision(ref)
        reached = decision is not None and not decision.holds
        services.append(
            ServiceForecast(
                ref,
                tuple(steps.get(ref, ())),
                lowest.get(ref, 0),
                done.get(ref, world.now_ms) - began_ms if reached else None,
            )
        )
    return Forecast(tuple(services), peak)
