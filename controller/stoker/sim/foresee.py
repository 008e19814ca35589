"""What a plan leads to: `decide` asked again and again while a small model of the cluster obeys.

Desired, shapes and a snapshot come in; per service its steps, the lowest count of Ready
replicas on the way and the time until done go out. Pure: `stoker plan` and tests call it.
Requests are taken to drain within `endpointSync`; starts take their estimated time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.decide import decide
from stoker.model.fleet import Desired
from stoker.model.history import History
from stoker.model.plan import Plan
from stoker.model.refs import UnitRef
from stoker.model.shape import UnitShape
from stoker.model.snapshot import Snapshot
from stoker.sim.foresee_world import (
    Step,
    World,
    act,
    advance,
    gpus,
    pools_of,
    ready,
    snapshot_of,
    starting,
    world_from,
)

__all__ = ["Forecast", "ServiceForecast", "Step", "foresee"]

MAX_PASSES = 2000
"""A forecast that needs more gives up and says so."""


@dataclass(frozen=True, slots=True)
class ServiceForecast:
    """One service. Times are milliseconds from now; `done_ms` None = it never gets there."""

    ref: UnitRef
    steps: tuple[Step, ...] = ()
    lowest_ready: int = 0
    done_ms: int | None = 0
    pools_before: tuple[str, ...] = ()
    """Pool of each replica that stands, sorted; of those in none, an empty name."""
    pools_after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """All services, sorted by ref. `gave_up` when the model did not come to rest."""

    services: tuple[ServiceForecast, ...]
    gpus_peak: int = 0
    gave_up: bool = False

    def of(self, ref: UnitRef) -> ServiceForecast:
        """The forecast of that service; an empty one when nothing is known."""
        return next((s for s in self.services if s.ref == ref), ServiceForecast(ref))


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
    world = world_from(desired, shapes, snapshot, now_ms, slow=slow)
    steps: dict[UnitRef, list[Step]] = {}
    lowest = {ref: ready(world, ref) for ref in world.shapes}
    before = {ref: pools_of(world, ref) for ref in world.shapes}
    done: dict[UnitRef, int] = {}
    # 1. ask, 2. obey, 3. note what is lowest and what is done, 4. move on to the next event.
    peak = gpus(world)
    for _ in range(MAX_PASSES):
        plan = decide(desired, shapes, snapshot_of(world), history, world.now_ms)
        history = History.from_records(plan.history, plan.starts)
        changed = act(world, plan, steps)
        peak = max(peak, gpus(world))
        for ref in world.shapes:
            lowest[ref] = min(lowest[ref], ready(world, ref))
            if ref in changed or starting(world, ref):
                done.pop(ref, None)
            else:
                done.setdefault(ref, world.now_ms)
        if not changed and not advance(world, plan):
            return _forecast(world, plan, steps, lowest, done, before, now_ms, peak)
    return replace(_forecast(world, plan, steps, lowest, {}, before, now_ms, peak), gave_up=True)


def _forecast(
    world: World,
    plan: Plan,
    steps: dict[UnitRef, list[Step]],
    lowest: dict[UnitRef, int],
    done: dict[UnitRef, int],
    before: dict[UnitRef, tuple[str, ...]],
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
                before[ref],
                pools_of(world, ref),
            )
        )
    return Forecast(tuple(services), peak)
