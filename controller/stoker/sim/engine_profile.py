"""What an engine stand-in serves, how fast, what goes wrong with it, and one request of it.

Plain data between `sim.engine`, `sim.engine_http` and whoever starts engines.
"""

from __future__ import annotations

import queue
from dataclasses import dataclass, field
from enum import StrEnum

from stoker.sim.engine_batch import BatchProfile, Sequence

__all__ = ["EngineFaults", "EngineProfile", "MetricsFault", "SleepLevel", "Ticket"]


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """What the engine serves and how fast.

    `load_seconds` pass between start and the first answer (weights and init together);
    `speed` divides every simulated duration, 10 makes it ten times as fast. The sleep
    endpoints exist only in `dev_mode`, as with VLLM_SERVER_DEV_MODE=1.
    """

    models: tuple[str, ...] = ("model",)
    load_seconds: float = 0.0
    batch: BatchProfile = field(default_factory=BatchProfile)
    speed: float = 1.0
    dev_mode: bool = True
    wake_seconds: float = 0.5
    reload_seconds: float = 3.0


class MetricsFault(StrEnum):
    """What /metrics does."""

    NONE = "none"
    HANG = "hang"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class EngineFaults:
    """What goes wrong; may change while the engine runs.

    `completions_fail_seconds`: /health says 200 after the load, but completions answer 500
    for that long (cases.md row 91). `stuck_start`: the load never ends.
    """

    completions_fail_seconds: float = 0.0
    stuck_start: bool = False
    metrics: MetricsFault = MetricsFault.NONE


class SleepLevel(StrEnum):
    """Named as vLLM's metric names them; level 1 keeps weights in RAM, level 2 nothing."""

    AWAKE = "awake"
    WEIGHTS_OFFLOADED = "weights_offloaded"
    DISCARD_ALL = "discard_all"


@dataclass(slots=True, eq=False)
class Ticket:
    """A request being served: `events` gives the tokens emitted so far, then a finish reason.

    Times are seconds of the engine's monotonic clock.
    """

    sequence: Sequence
    arrived: float
    last_token: float = 0.0
    events: queue.SimpleQueue[int | str] = field(default_factory=queue.SimpleQueue)
