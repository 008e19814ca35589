"""What came of a simulated run: promises kept, what it cost, starts and changes of the count.

Made by `sim.fleet_run`, printed by `stoker simulate` and the benchmarks. Times in seconds from
the begin of the trace.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Point", "RunResult", "percentile"]


@dataclass(frozen=True, slots=True)
class Point:
    """One look at the fleet. `held` is what is paid for, leaving replicas too."""

    at_s: float
    wanted: int
    ready: int
    held: int
    arrivals_per_second: float
    waiting: int
    """In engines and at the gateway."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One policy on one trace. Percentiles are None without an answer.

    A request keeps its promise when it was answered whole and its first token, and the mean
    time between the later ones, came within the SLO.
    """

    policy: str
    requests: int
    kept: int
    unanswered: int
    """Not answered when the run ended."""
    refused: int
    """Larger than an engine."""
    broken: int
    """Lost with their replica."""
    ttft_p50_ms: float | None
    ttft_p95_ms: float | None
    ttft_p99_ms: float | None
    itl_p95_ms: float | None
    waited_over_5s: int
    """Requests whose first token took over 5 s, or never came."""
    replica_seconds: float
    gpu_hours: float
    cost: float | None
    """None where no price is known."""
    bought: int
    """Replicas asked for after the begin."""
    cold_starts: int
    """Of those, replicas that became Ready."""
    lost: int
    ups: int
    downs: int
    peak: int
    """The most replicas held at once."""
    end_s: float
    preemptions: int
    points: tuple[Point, ...]

    @property
    def attainment(self) -> float:
        """Share of the requests that kept their promise, 0 to 1; 1 without any."""
        return self.kept / self.requests if self.requests else 1.0


def percentile(ordered: list[float], share: float) -> float | None:
    """The nearest rank of rising values; None of none."""
    if not ordered:
        return None
    return ordered[
        min(len(ordered) - 1, max(0, -(-round(share * 1e6) * len(ordered) // 10**6) - 1))
    ]
