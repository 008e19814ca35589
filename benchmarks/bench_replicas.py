"""Counts of replicas on the simulator, section replicas: seed 000's experiment, and its speed.

Figure 1: 2 requests/s, four times as many from 120 s on, 600 s, 2 requests/s a replica, a start
of 60 s and 2 s until its pod is bound (research 3.2), a look each 5 s. Figure 4: an hour of Azure's conversation trace at a peak need of 8
replicas (STOKER_TRACES names the folder of traces; without it, that row is left out).
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from measure import row

from stoker.model.scaling import CapacityPrior, ScaleDown, Scaling, ScrapeQuery, Slo
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.fleet_ground import ENGINES, FleetGround
from stoker.sim.fleet_run import simulate
from stoker.sim.instrument import Instrument
from stoker.sim.own_policy import StokerPolicy
from stoker.sim.policy import Policy
from stoker.sim.run_result import RunResult
from stoker.sim.trace_files import read_trace
from stoker.sim.traffic import Request, peak_need, scaled

SERVER = BatchProfile(
    max_sequences=1, step_seconds=0.5, sequence_seconds=0.0, prefill_tokens_per_second=1e9
)
"""Two requests a second, one after the other."""
PUBLISHED_HELD = 12_364
EXPERIMENT = FleetGround(SERVER, cold_start_s=62.0, scrape_ms=5_000, slo=Slo(ttft_p95_ms=5_000))
PUBLISHED = replace(EXPERIMENT, first=2)
"""Both published arms stand at two before the step: a closed window of 5 s sees 11 requests, which
is 2.2 a second, at the first tick only. With one, the ready-only arm would run into its fuse."""
CONVERSATION = "requests/azure-llm-2023-conv.csv.gz"
PEAK = 8
HOUR_ENGINE = "8b-l4"


def run() -> list[dict[str, Any]]:
    """Rows of both figures."""
    return [*seed_rows(), *hour_rows()]


def experiment() -> list[Request]:
    """The frozen trace: evenly spaced, 4,080 requests."""
    slow = [number / 2 for number in range(240)]
    fast = [120 + number / 8 for number in range(3_840)]
    return [Request(at_s, 1, 1) for at_s in (*slow, *fast)]


def seed_rows() -> list[dict[str, Any]]:
    """Figure 1: both arms of the instrument, and the default policy with no capacity told."""
    requests = experiment()
    blind = _played(requests, Instrument(2.0, counts_warming=False), PUBLISHED)
    told = _experiment_scaling(
        headroom_percent=0,
        drain_window_ms=0,
        capacity=CapacityPrior(2.0, 2.0),
        scale_down=ScaleDown(window_ms=60_000),
    )
    sees = _played(requests, StokerPolicy(told, "told, counts warming"), PUBLISHED)
    default = _played(requests, StokerPolicy(_experiment_scaling(), "default"), EXPERIMENT)
    held_off = 100 * abs(blind.replica_seconds - PUBLISHED_HELD) / PUBLISHED_HELD
    late = 100 * default.waited_over_5s / default.requests
    unserved = sum(found.requests - _served(found) for found in (blind, sees, default))
    figures = (
        ("ready only: peak", blind.peak, "replicas", 28),
        ("ready only: lacking of a peak of 26", max(0, 26 - blind.peak), "replicas", 0),
        ("ready only: held, off 12,364 replica-s", held_off, "%", 3),
        ("ready plus warming: peak", sees.peak, "replicas", 4),
        ("ready plus warming: held", sees.replica_seconds, "replica-s", 2_113),
        ("not served, of 4,080, in all three", unserved, "", 0),
        ("default policy: waited over 5 s", late, "%", 20),
        ("default policy: held", default.replica_seconds, "replica-s", 5_000),
        ("default policy: waiting at the end", default.points[-1].waiting, "", 0),
    )
    return [
        row(f"seed's experiment, {name}", value, unit, bar, section="replicas")
        for name, value, unit, bar in figures
    ]


def _experiment_scaling(**of: Any) -> Scaling:
    return Scaling(
        min_replicas=1, max_replicas=40, interval_ms=5_000, load=ScrapeQuery("gateway"), **of
    )


def hour_rows() -> list[dict[str, Any]]:
    """Figure 4: the reading of the trace is not part of it."""
    folder = os.environ.get("STOKER_TRACES", "")
    if not folder:
        print("STOKER_TRACES is not set: the simulated hour is left out", file=sys.stderr)
        return []
    known = list(read_trace(Path(folder) / CONVERSATION))
    engine = ENGINES[HOUR_ENGINE]
    requests = list(scaled(known, PEAK / peak_need(known, engine), seed=1))
    ground = FleetGround(engine, first=4)
    scaling = Scaling(min_replicas=1, max_replicas=100, slo=ground.slo, load=ScrapeQuery("any"))
    before = time.process_time()
    _played(requests, StokerPolicy(scaling), ground)
    took = time.process_time() - before
    return [row("a simulated hour of 8 replicas", took, "s of CPU", 10, section="replicas")]


def _played(requests: list[Request], policy: Policy, ground: FleetGround) -> RunResult:
    found = simulate(requests, policy, ground)
    print(
        f"{policy.name}: {found.requests} requests, kept {found.attainment:.4f}, "
        f"{found.replica_seconds:.0f} replica-s, peak {found.peak}, bought {found.bought}, "
        f"P95 TTFT {found.ttft_p95_ms} ms",
        file=sys.stderr,
    )
    return found


def _served(found: RunResult) -> int:
    return found.requests - found.unanswered - found.refused - found.broken
