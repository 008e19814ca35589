"""The books of a simulated run: requests, replicas held, starts, changes. Kept by
`sim.fleet_run`; out comes a `RunResult`.
"""

from __future__ import annotations

from stoker.sim.fleet_ground import FleetGround
from stoker.sim.jumping import Answer
from stoker.sim.run_result import Point, RunResult, percentile

__all__ = ["Tally"]

LONG_WAIT_SECONDS = 5.0
"""The wait of figure 1 of the benchmarks, and of the table in research 3.2."""


class Tally:
    """Counts on until `close`, which ends what is paid for."""

    def __init__(self, ground: FleetGround) -> None:
        self._ground = ground
        self._answers: list[Answer] = []
        self._points: list[Point] = []
        self._held = 0
        self._held_since_s = 0.0
        self._replica_seconds = 0.0
        self._end_s: float | None = None
        self.refused = self.broken = self.lost = 0
        self.bought = self.cold_starts = self.ups = self.downs = 0
        self.peak = 0
        self.preemptions = 0

    def arrived(self, answer: Answer) -> None:
        """A request came in."""
        self._answers.append(answer)

    def hold(self, at_s: float, count: int) -> None:
        """So many replicas are paid for from now on."""
        if self._end_s is not None:
            return
        self._replica_seconds += self._held * (at_s - self._held_since_s)
        self._held, self._held_since_s = count, at_s
        self.peak = max(self.peak, count)

    def look(
        self, at_s: float, wanted: int, ready: int, held: int, arrivals: float, waiting: int
    ) -> None:
        """A point for the picture."""
        if self._end_s is None:
            self._points.append(Point(at_s, wanted, ready, held, arrivals, waiting))

    def close(self, at_s: float) -> None:
        """The trace is over."""
        self.hold(at_s, self._held)
        self._end_s = at_s

    def result(self, policy: str) -> RunResult:
        """What it came to."""
        slo, price = self._ground.slo, self._ground.price
        firsts, between, kept, unanswered, late = [], [], 0, 0, 0
        for answer in self._answers:
            first_s, itl_s = _latencies(answer)
            if first_s is not None:
                firsts.append(first_s)
            if itl_s is not None:
                between.append(itl_s)
            late += first_s is None or first_s > LONG_WAIT_SECONDS
            if answer.ended_s is None:
                unanswered += 1
                continue
            kept += _within(first_s, slo.ttft_p95_ms) and _within(itl_s, slo.itl_p95_ms)
        firsts.sort()
        between.sort()
        gpu_hours = self._replica_seconds * self._ground.gpus / 3600
        return RunResult(
            policy=policy,
            requests=len(self._answers),
            kept=kept,
            unanswered=unanswered - self.refused - self.broken,
            refused=self.refused,
            broken=self.broken,
            ttft_p50_ms=_ms(percentile(firsts, 0.50)),
            ttft_p95_ms=_ms(percentile(firsts, 0.95)),
            ttft_p99_ms=_ms(percentile(firsts, 0.99)),
            itl_p95_ms=_ms(percentile(between, 0.95)),
            waited_over_5s=late,
            replica_seconds=self._replica_seconds,
            gpu_hours=gpu_hours,
            cost=gpu_hours * price if price else None,
            bought=self.bought,
            cold_starts=self.cold_starts,
            lost=self.lost,
            ups=self.ups,
            downs=self.downs,
            peak=self.peak,
            end_s=self._end_s or 0.0,
            preemptions=self.preemptions,
            points=tuple(self._points),
        )


def _latencies(answer: Answer) -> tuple[float | None, float | None]:
    """Seconds to the first token, and between the later ones on average."""
    if answer.first_s is None:
        return None, None
    first_s = answer.first_s - answer.request.at_s
    tokens = answer.request.output_tokens - 1
    if answer.ended_s is None or tokens < 1:
        return first_s, None
    return first_s, (answer.ended_s - answer.first_s) / tokens


def _within(seconds: float | None, most_ms: int | None) -> bool:
    return seconds is None or most_ms is None or seconds * 1000 <= most_ms


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000
