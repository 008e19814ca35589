"""What goes wrong around the default policy, section replicas (figure 3 of the issue on counts).

Outages of metrics, of one replica's, of the gateway's, and percentiles that are not numbers, at
random places of ten-minute cuts of the public traces (STOKER_TRACES; else of a surge): no count
may fall meanwhile. Revisions that crash: what they make it buy. OUTAGES makes it smaller.
"""

from __future__ import annotations

import os
import random
from bisect import bisect_left
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_frontier import GROUNDS
from measure import row

from stoker.model.scaling import Scaling, ScrapeQuery, Slo
from stoker.sim.fleet_ground import ENGINES, Blind, Blindness, FleetGround, Period
from stoker.sim.fleet_run import simulate
from stoker.sim.own_policy import StokerPolicy
from stoker.sim.policy import Watched
from stoker.sim.trace_files import read_trace
from stoker.sim.traffic import Request, peak_need, scaled

OUTAGES = int(os.environ.get("OUTAGES", "1000"))
CUT_SECONDS = 600.0
PEAK = 6


def run() -> list[dict[str, Any]]:
    """Rows of outages by kind, and of starts that crash."""
    grounds = _grounds()
    chance = random.Random(7)
    falls = dict.fromkeys(Blindness, 0)
    for number in range(OUTAGES):
        requests, ground = _cut(grounds, chance)
        begins = chance.uniform(0, 500)
        outage = Period(begins, begins + chance.uniform(15, 300))
        of = list(Blindness)[number % len(Blindness)]
        watched = Watched(_policy(ground))
        simulate(requests, watched, replace(ground, blind=(Blind(outage, of),)))
        falls[of] += _fell(watched, outage)
    beyond = max(_beyond(*_cut(grounds, chance), chance) for _ in range(OUTAGES // 10))
    return [
        *(
            row(f"falls in {OUTAGES // len(falls)} outages: {of}", count, "", 0, section="replicas")
            for of, count in falls.items()
        ),
        row(
            f"bought in {OUTAGES // 10} crashes, beyond an even run's and one for each stuck",
            beyond,
            "replicas",
            0,
            section="replicas",
        ),
    ]


def _fell(watched: Watched, outage: Period) -> int:
    """How often the count was lowered while something could not be seen."""
    began = watched.told[0][0].now_ms
    return sum(
        count < seen.wanted
        for seen, count in watched.told
        if outage.holds((seen.now_ms - began) / 1000)
    )


def _beyond(requests: list[Request], ground: FleetGround, chance: random.Random) -> int:
    """Purchases more than those of the run without crashes and one for each that got stuck."""
    begins = chance.uniform(0, 500)
    crashing = replace(ground, crashing=(Period(begins, begins + chance.uniform(30, 300)),))
    even = simulate(requests, _policy(ground), ground)
    watched = Watched(_policy(ground))
    found = simulate(requests, watched, crashing)
    stuck = max(seen.stuck for seen, _ in watched.told)
    return max(0, found.bought - max(even.bought, even.peak) - stuck)


def _policy(ground: FleetGround) -> StokerPolicy:
    scaling = Scaling(1, ground.max_replicas, slo=ground.slo, load=ScrapeQuery("gateway"))
    return StokerPolicy(scaling, expected_start_ms=round(ground.cold_start_s * 1000))


def _grounds() -> list[tuple[list[Request], FleetGround]]:
    """Whole traces, each with what it is played on."""
    folder = os.environ.get("STOKER_TRACES", "")
    found = []
    for on in GROUNDS.values() if folder else ():
        engine = ENGINES[on.engine]
        known = list(read_trace(Path(folder) / "requests" / on.file))
        requests = list(scaled(known, PEAK / peak_need(known, engine), seed=1))
        slo = Slo(ttft_p95_ms=on.ttft_ms)
        found.append((requests, FleetGround(engine, slo=slo, router=on.router, first=3)))
    if not found:
        chance = random.Random(1)
        requests, at_s = [], 0.0
        while at_s < 3_600:
            at_s += chance.expovariate(6.0 if 1_200 <= at_s < 2_000 else 2.0)
            requests.append(Request(at_s, chance.randrange(50, 3_000), chance.randrange(10, 400)))
        found.append((requests, FleetGround(ENGINES["8b-l4"], first=3)))
    return found


def _cut(
    grounds: list[tuple[list[Request], FleetGround]], chance: random.Random
) -> tuple[list[Request], FleetGround]:
    """Ten minutes of one of them, from any instant on, with a cold start of 20 to 180 s."""
    requests, ground = chance.choice(grounds)
    begins = chance.uniform(0, max(0.0, requests[-1].at_s - CUT_SECONDS))
    first = bisect_left(requests, begins, key=lambda request: request.at_s)
    last = bisect_left(requests, begins + CUT_SECONDS, key=lambda request: request.at_s)
    cut = [replace(request, at_s=request.at_s - begins) for request in requests[first:last]]
    return cut, replace(ground, cold_start_s=chance.choice((20.0, 60.0, 180.0)))
