"""What was measured of services: samples, or that there is none and why. Input of decide.

Made by signals (and the simulator), carried in the Snapshot. Unmeasurable (missing, NaN,
infinite, negative, stale, many-valued, an error) means one thing everywhere: not known, which is
neither zero nor empty. Times are integer milliseconds, rates a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from stoker.model.refs import UnitRef
from stoker.model.scaling import MetricSource, Scaling

__all__ = [
    "EngineReading",
    "LoadReading",
    "PodTarget",
    "Reading",
    "Sample",
    "ServiceReadings",
    "SignalAsk",
    "Signals",
    "Unmeasurable",
]


@dataclass(frozen=True, slots=True)
class Sample:
    """A finite value of at least 0, when it was measured, and how long it may be used after."""

    value: float
    at_ms: int
    valid_ms: int
    unit: str = ""

    def is_stale(self, now_ms: int) -> bool:
        """Whether it is too old, or from the future."""
        return not 0 <= now_ms - self.at_ms <= self.valid_ms


@dataclass(frozen=True, slots=True)
class Unmeasurable:
    """Nothing usable. `code` is one of missing, not-a-number, negative, stale, many-values,
    unreachable, refused, no-match; `why` is for people.
    """

    code: str
    why: str
    at_ms: int


Reading: TypeAlias = Sample | Unmeasurable


@dataclass(frozen=True, slots=True)
class EngineReading:
    """One pod, over the last two scrapes of it; its engines are summed. None is not known.

    Rates and percentiles are over `window_ms` and None in the first round and after a counter
    went back. `queued` says that requests were waiting at both ends of the window: only then did
    it work as fast as it can. `prefill_tokens_per_second` counts tokens that no cache held.
    """

    pod: str
    pod_uid: str
    at_ms: int
    window_ms: int = 0
    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    queued: bool = False
    prefill_tokens_per_second: float | None = None
    decode_tokens_per_second: float | None = None
    finished_per_second: float | None = None
    ttft_p95_ms: float | None = None
    itl_p95_ms: float | None = None


@dataclass(frozen=True, slots=True)
class LoadReading:
    """What is offered: requests a second, rejected ones too, and tokens a request on average.

    `estimated`: made of completions and the change in running and waiting.
    """

    arrivals: Reading
    estimated: bool
    prefill_tokens: float | None = None
    """Prompt tokens of one request that no cache holds."""
    output_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class ServiceReadings:
    """All readings of one service: metrics and wake sources by name, in the order of the file;
    engines by pod name. `deletion_costs` are values by pod name, sorted.
    """

    ref: UnitRef
    metrics: tuple[tuple[str, Reading], ...] = ()
    engines: tuple[EngineReading, ...] = ()
    load: LoadReading | None = None
    wake: tuple[tuple[str, Reading], ...] = ()
    deletion_costs: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class PodTarget:
    """A live pod that can be scraped at `host:port`; an empty address is not known yet.

    `ready` ones take traffic, since `ready_ms` (0: not known, which is long ago).
    """

    name: str
    uid: str
    address: str
    ready: bool
    ready_ms: int = 0


@dataclass(frozen=True, slots=True)
class SignalAsk:
    """What is wanted of one service: its scaling block and the pods that stand now.

    `selector` is what `$pods` expands to inside a PromQL selector, empty while no pod is Ready.
    `sources` are those of the fleet.
    """

    ref: UnitRef
    scaling: Scaling
    pods: tuple[PodTarget, ...]
    selector: str
    sources: tuple[MetricSource, ...] = ()


class Signals(Protocol):
    """The port: reads what is asked, in the same order; never raises for one that fails."""

    def read(
        self, asks: tuple[SignalAsk, ...], deadline_seconds: float
    ) -> tuple[ServiceReadings, ...]:
        """Readings within that time; what did not come by then is Unmeasurable."""
        ...
