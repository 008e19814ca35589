"""What a simulated service runs on, and what goes wrong there. Read by `sim.fleet_run`.

Plain data from `stoker simulate` and the benchmarks. Seconds count from the begin of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stoker.model.scaling import Slo
from stoker.sim.engine_batch import BatchProfile
from stoker.sim.routing import RouterName
from stoker.sim.trace_files import SpotTrace

__all__ = ["ENGINES", "Blind", "Blindness", "FleetGround", "Period"]

ENGINES = {
    "8b-l4": BatchProfile(
        max_sequences=64,
        max_batched_tokens=2048,
        kv_blocks=2_750,
        step_seconds=0.060,
        sequence_seconds=0.00025,
        prefill_tokens_per_second=3_500.0,
        context_seconds=4.4e-7,
    ),
    "8b-h100": BatchProfile(
        max_sequences=256,
        max_batched_tokens=8192,
        kv_blocks=27_000,
        step_seconds=0.0085,
        sequence_seconds=0.00004,
        prefill_tokens_per_second=25_000.0,
        context_seconds=4.0e-8,
    ),
    "70b-8h100": BatchProfile(
        max_sequences=256,
        max_batched_tokens=8192,
        kv_blocks=80_000,
        step_seconds=0.019,
        sequence_seconds=0.00006,
        prefill_tokens_per_second=12_000.0,
        context_seconds=1.3e-8,
    ),
}
"""Engines by name, from arithmetic on data sheets rather than measured [ours, 2026-11]: a step
reads the weights once (16 GB at 300 GB/s on L4, at 3.35 TB/s on H100; 140 GB over eight) and the
contexts (128 KiB a token of 8B, 320 of 70B over eight); prefill at half of the dense 16-bit peak
(2 FLOP a weight and token), rounded down. KV blocks of 16 tokens: what 90 % of the memory leaves.
The 8b-h100 step agrees with llm-d-inference-sim's preset (12 +-2 ms a token)."""


class Blindness(StrEnum):
    """What a controller does not get to see."""

    ALL = "all"
    """Nothing: the network, or the server of metrics, is away."""
    ONE = "one"
    """One replica does not answer; which one changes from round to round."""
    LOAD = "load"
    """The gateway's counter is away."""
    NOT_A_NUMBER = "not-a-number"
    """Percentiles and rates of the engines are not known, as after a restart of Prometheus."""


@dataclass(frozen=True, slots=True)
class Period:
    """From one second to another."""

    from_s: float
    until_s: float

    def holds(self, at_s: float) -> bool:
        """Whether that second is in it."""
        return self.from_s <= at_s < self.until_s


@dataclass(frozen=True, slots=True)
class Blind:
    """A period in which readings are missing."""

    period: Period
    of: Blindness = Blindness.ALL


@dataclass(frozen=True, slots=True)
class FleetGround:
    """One service: engine, starts, bounds, promises, price, and what goes wrong.

    Replicas asked for in a period of `crashing` never become Ready; `spot` bounds how many can
    be had at once: what is beyond it waits, and what runs beyond it dies without notice.
    """

    engine: BatchProfile
    cold_start_s: float = 60.0
    slo: Slo = field(default_factory=lambda: Slo(ttft_p95_ms=5_000))
    first: int = 1
    """Replicas that serve at second 0."""
    min_replicas: int = 1
    max_replicas: int = 100
    gpus: int = 1
    """GPUs of one replica."""
    price: float = 0.0
    """Of one GPU for an hour; 0 is not known."""
    router: RouterName = RouterName.LEAST_QUEUE
    scrape_ms: int = 15_000
    start_spread: float = 0.0
    """By which share starts take longer or shorter, evenly; drawn from `seed`."""
    seed: int = 1
    spot: SpotTrace | None = None
    blind: tuple[Blind, ...] = ()
    crashing: tuple[Period, ...] = ()
