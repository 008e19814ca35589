"""The controller's own rule in a closed loop: what may go wrong around it lowers no count."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from stoker.model.scaling import Algorithm, ScaleDown, Scaling, ScrapeQuery, Slo
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.fleet_ground import Blind, Blindness, FleetGround, Period
from stoker.sim.fleet_run import simulate
from stoker.sim.own_policy import StokerPolicy
from stoker.sim.policy import Watched
from stoker.sim.traffic import Request, peak_need

ENGINE = BatchProfile(max_sequences=8, kv_blocks=600, prefill_tokens_per_second=4_000.0)
SCALING = Scaling(1, 30, slo=Slo(ttft_p95_ms=5_000), load=ScrapeQuery("gateway"))
GROUND = FleetGround(ENGINE, slo=SCALING.slo, max_replicas=30)


def surge(seed: int, *, base: float = 1.5, top: float = 9.0, ends_s: float = 900.0):
    """A quarter of an hour, with a surge in the middle."""
    chance, at_s, requests = random.Random(seed), 0.0, []
    while at_s < ends_s:
        rate = top if 200 <= at_s < 450 else base
        at_s += chance.expovariate(rate)
        requests.append(Request(at_s, chance.randrange(50, 600), chance.randrange(10, 120)))
    return requests


def test_a_surge_is_bought_and_let_go_again():
    requests = surge(1)
    run = simulate(requests, StokerPolicy(SCALING), GROUND)

    assert peak_need(requests, ENGINE) > 2
    assert 2 < run.peak < GROUND.max_replicas
    assert run.points[-1].wanted < run.peak
    assert 0 == run.unanswered


@pytest.mark.parametrize("of", list(Blindness))
@pytest.mark.parametrize("seed", range(6))
def test_no_count_falls_while_something_cannot_be_seen(of, seed):
    """An outage anywhere in the trace; figure 3 of the benchmarks plays a thousand."""
    chance = random.Random(seed)
    begins = chance.uniform(0, 800)
    outage = Period(begins, begins + chance.uniform(30, 300))
    watched = Watched(StokerPolicy(SCALING))
    simulate(surge(seed), watched, replace(GROUND, blind=(Blind(outage, of),)))
    began = watched.told[0][0].now_ms
    blind = [
        (seen, count)
        for seen, count in watched.told
        if outage.holds((seen.now_ms - began) / 1000) and (of is not Blindness.ONE or seen.ready)
    ]

    assert blind
    assert [] == [(seen.wanted, count) for seen, count in blind if count < seen.wanted]


@pytest.mark.parametrize("begins", [0, 150, 220, 400])
def test_what_crashes_while_it_starts_is_not_bought_over_and_over(begins):
    """All starts of 200 s come to nothing: at most what the load needs, and one for each stuck."""
    requests = surge(3)
    watched = Watched(StokerPolicy(SCALING))
    ground = replace(GROUND, crashing=(Period(begins, begins + 200.0),))
    run = simulate(requests, watched, ground)
    need = 1.2 * peak_need(requests, ENGINE)
    stuck = max(seen.stuck for seen, _ in watched.told)

    assert run.bought <= 3 * need + stuck + 1


def test_ratio_is_played_by_the_same_rule():
    scaling = replace(SCALING, algorithm=Algorithm.RATIO, scale_down=ScaleDown(window_ms=60_000))
    run = simulate(surge(1), StokerPolicy(scaling, "ratio"), GROUND)

    # It has no metric: nothing can be measured, and everything stays.
    assert ("stoker ratio", 1, 0) == (run.policy, run.peak, run.ups)
