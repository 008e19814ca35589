"""A count that follows load, carried out pass by pass in a small cluster."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import REV, a_desired, a_pool, a_ref, a_shape, a_unit
from stoker.decide import decide
from stoker.model.fleet import PlacementMode
from stoker.model.history import History
from stoker.model.readings import (
    EngineReading,
    LoadReading,
    Sample,
    ServiceReadings,
    Unmeasurable,
)
from stoker.model.scaling import ScaleDown, ScaleToZero, Scaling, ScalingMode, ZeroPolicy
from stoker.model.snapshot import ReplicaPhase
from unit.decide.scaling import PRIOR
from unit.decide.world import TICK_MS, World, some_nodes

REF = a_ref("qwen")
SPEC = Scaling(1, 8, capacity=PRIOR, interval_ms=TICK_MS, scale_down=ScaleDown(window_ms=30_000))


@dataclass
class Loop:
    """Passes over a world; a replica serves 2 requests a second, so load L needs L x 1.2 / 2."""

    world: World
    spec: Scaling = SPEC
    mode: PlacementMode = PlacementMode.NODES
    known: History = field(default_factory=History)
    counts: list[int] = field(default_factory=list)
    bought: int = 0
    stuck: int = 0

    def passes(self, number: int, load: float | None) -> None:
        """So many, with a load; None for readings that fail."""
        unit = a_unit(
            replicas=None,
            scaling_mode=ScalingMode.STOKER,
            scaling=self.spec,
            placement_mode=self.mode,
        )
        desired = a_desired(unit, pools=(a_pool("l4"),))
        for _ in range(number):
            seen = replace(self.world.snapshot(), readings=(self._readings(load),))
            plan = decide(desired, (a_shape(unit, rev=REV),), seen, self.known, self.world.now_ms)
            self.known = History.from_records(plan.history, plan.starts)
            found = plan.decisions[0].replicas
            assert found is not None
            self.counts.append(found)
            self.world.act(plan)
            self.world.tick()
            pods = self.world.pods(REF)
            stuck = sum(1 for pod in pods if pod.phase is ReplicaPhase.STUCK)
            self.stuck = max(self.stuck, stuck)
            self.bought = max(self.bought, len(pods))

    def _readings(self, load: float | None) -> ServiceReadings:
        now_ms = self.world.now_ms
        if load is None:
            silent = Unmeasurable("unreachable", "connection refused", now_ms)
            return ServiceReadings(REF, load=LoadReading(silent, False))
        ready = [p for p in self.world.pods(REF) if p.phase is ReplicaPhase.READY and p.traffic]
        each = load / len(ready) if ready else 0.0
        engines = tuple(
            EngineReading(
                pod.name,
                pod.name,
                now_ms,
                window_ms=TICK_MS,
                running=min(each, 2.0),
                waiting=max(0.0, each - 2.0),
                kv_usage=0.1,
                queued=each > 2.0,
                prefill_tokens_per_second=min(each, 2.0) * 500,
                decode_tokens_per_second=min(each, 2.0) * 100,
            )
            for pod in ready
        )
        arrivals = LoadReading(Sample(load, now_ms, TICK_MS * 3), False, 500.0, 100.0)
        return ServiceReadings(REF, engines=engines, load=arrivals)


@pytest.mark.parametrize("mode", list(PlacementMode))
def test_a_count_follows_load_up_and_down(mode):
    """From one to five and back, with drains in between."""
    loop = Loop(World(some_nodes(4, 4)), mode=mode)
    loop.passes(6, 1.0)
    loop.passes(12, 8.0)
    high = loop.world.ready(REF)
    loop.passes(150, 1.0)

    assert high >= 5
    assert loop.world.ready(REF) == 1 == len(loop.world.pods(REF))


@given(
    st.sampled_from(["rev", "one node", "two nodes"]),
    st.integers(0, 10),
    st.lists(st.tuples(st.integers(1, 12), st.floats(0, 6)), min_size=1, max_size=4),
)
def test_starts_that_crash_buy_one_each_at_most(what, healthy, loads):
    """Issue D figure 3: from any point on, at most need plus one for each that is stuck."""
    loop = Loop(World(some_nodes(4, 4, 4)))
    loop.passes(healthy, loads[0][1])
    if what == "rev":
        loop.world.bad_revs = {REV}
    else:
        loop.world.bad_nodes = {"n1"} if what == "one node" else {"n1", "n2"}
    for number, load in loads:
        loop.passes(number, load)

    assert loop.bought <= max(loop.counts) + loop.stuck


@given(st.lists(st.tuples(st.integers(1, 8), st.sampled_from([None, 0.0, 1.0, 4.0, 9.0]))))
def test_an_outage_at_any_point_lowers_nothing(steps):
    """Not in the pass in which it begins, and not while it lasts."""
    loop = Loop(World(some_nodes(4, 4)))
    loop.passes(4, 2.0)
    for number, load in steps:
        before = loop.counts[-1]
        loop.passes(number, load)
        if load is None:
            assert loop.counts[-number:] == [before] * number


def test_an_idle_service_goes_to_zero_and_wakes():
    """Its last replica drains, and a request at the gateway's counter starts one."""
    idle = ScaleToZero(ZeroPolicy.AFTER_IDLE, 60_000)
    loop = Loop(World(some_nodes(4)), replace(SPEC, min_replicas=0, scale_to_zero=idle))
    loop.passes(6, 1.0)
    loop.passes(120, 0.0)
    asleep = loop.counts[-1], len(loop.world.pods(REF))
    loop.passes(6, 0.5)

    assert (0, 0) == asleep
    assert loop.world.ready(REF) == 1
