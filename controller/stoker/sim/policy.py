"""What the simulator asks for a count: the port of policies, and what they are shown.

`sim.fleet_run` makes a `Seen` at each scrape; the controller's own rules (`sim.own_policy`)
and the restated ones of others (`sim.baselines`, …) answer. Times are integer milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from stoker.model.readings import EngineReading, Sample, ServiceReadings
from stoker.sim.fleet_readings import GATEWAY

__all__ = ["EngineSize", "Policy", "Seen", "Watched", "waiting_outside"]


@dataclass(frozen=True, slots=True)
class EngineSize:
    """What an engine says of itself: room for tokens, seats, and the chunk of a prefill."""

    kv_tokens: int
    max_sequences: int
    max_batched_tokens: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A service at one instant, as a controller could see it.

    `wanted` is the count asked for last; of it, `ready` serve, `warming` are on their way and
    `stuck` will not come. `rounds` are the readings of the last minutes, oldest first; the
    last one is of now, or its readings are unmeasurable.
    """

    now_ms: int
    wanted: int
    ready: int
    warming: int
    stuck: int
    min_replicas: int
    max_replicas: int
    cold_start_p90_ms: int | None
    """Measured starts so far; None before the first."""
    rounds: tuple[ServiceReadings, ...]
    size: EngineSize
    ready_pods: tuple[tuple[str, int], ...] = ()
    """Name of each that serves, and since when; sorted by name."""

    @property
    def readings(self) -> ServiceReadings:
        """The newest round."""
        return self.rounds[-1]

    @property
    def engines(self) -> tuple[EngineReading, ...]:
        """The replicas that could be read now."""
        return self.readings.engines

    def clamped(self, count: int) -> int:
        """The count within its bounds."""
        return min(max(count, self.min_replicas), self.max_replicas)

    def since(self, window_ms: int) -> Iterator[ServiceReadings]:
        """The rounds of the last window, oldest first."""
        for round_ in self.rounds:
            at_ms = max((engine.at_ms for engine in round_.engines), default=None)
            if at_ms is not None and at_ms > self.now_ms - window_ms:
                yield round_


class Policy(Protocol):
    """A rule for counts. Pure: what it remembers goes out and comes back as `past`."""

    @property
    def name(self) -> str:
        """What reports call it, with its knob."""
        ...

    @property
    def interval_ms(self) -> int:
        """How often it is asked; whole scrapes."""
        ...

    @property
    def cache_aware(self) -> bool:
        """Whether the replica with the least in its cache leaves first, else the newest."""
        ...

    def begin(self) -> Any:
        """What it remembers at first."""
        ...

    def decide(self, seen: Seen, past: Any) -> tuple[int, Any]:
        """The count that is wanted now, and what it remembers."""
        ...


@dataclass(slots=True)
class Watched:
    """A policy, and each of its answers with what it was shown."""

    policy: Policy
    told: list[tuple[Seen, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The policy's own; so are the two that follow."""
        return self.policy.name

    @property
    def interval_ms(self) -> int:
        """How often it is asked."""
        return self.policy.interval_ms

    @property
    def cache_aware(self) -> bool:
        """Who leaves first."""
        return self.policy.cache_aware

    def begin(self) -> Any:
        """What it remembers at first."""
        return self.policy.begin()

    def decide(self, seen: Seen, past: Any) -> tuple[int, Any]:
        """Its answer, kept."""
        count, past = self.policy.decide(seen, past)
        self.told.append((seen, count))
        return count, past


def waiting_outside(readings: ServiceReadings) -> float:
    """Requests at the gateway; 0 where that could not be read."""
    for name, reading in readings.wake:
        if name == GATEWAY and isinstance(reading, Sample):
            return reading.value
    return 0.0
