"""A service under load in virtual time, with a rule that decides its count: seed 000's experiment.

Replicas serve `rate` requests a second each, first come first served. A request goes to the Ready
one with the shortest queue and stays there, as in an engine. A replica serves `warm_up_ms` after it
was bought; one that is let go takes no more requests and serves what waits in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stoker.decide.count_facts import CountFacts, ReadyPod
from stoker.model.readings import EngineReading, LoadReading, Sample, ServiceReadings
from stoker.model.refs import UnitRef

REF = UnitRef("ModelService", "llm", "qwen")
TOKENS = 100.0
STEP_MS = 125

Rule = Callable[[CountFacts, ServiceReadings, int], int]


@dataclass
class Server:
    name: str
    ready_ms: int
    free_ms: int = 0
    served: int = 0
    waited: bool = False
    queue: deque[int] = field(default_factory=deque)


@dataclass
class Run:
    """What a run came to. `replica_seconds` are those held until the end of the load."""

    peak: int = 0
    replica_seconds: float = 0.0
    waits_ms: list[int] = field(default_factory=list)
    backlog: int = 0
    counts: list[int] = field(default_factory=list)

    def late(self, most_ms: int = 5_000) -> float:
        """Share of arrivals that waited for longer; those that still wait count by now."""
        return sum(1 for wait in self.waits_ms if wait > most_ms) / len(self.waits_ms)


def experiment() -> list[int]:
    """2 requests a second, four times as many from 120 s on, until 600 s; the first at 0."""
    slow = range(0, 120_000, 500)
    return [*slow, *range(120_000, 600_000, 125)]


def play(
    rule: Rule,
    arrivals: Iterable[int],
    *,
    tick_ms: int = 5_000,
    warm_up_ms: int = 60_000,
    rate: float = 2.0,
    ends_ms: int = 600_000,
    window_ms: int = 10_000,
) -> Run:
    """Play it; arrivals are rising instants. What waits at the end is served after it."""
    run, coming = Run(), deque(arrivals)
    seen: deque[int] = deque()
    servers, leaving = [Server("r-0", 0)], list[Server]()
    service_ms = round(1_000 / rate)
    bought = 1
    for now_ms in range(0, ends_ms, STEP_MS):
        ready = [s for s in servers if s.ready_ms <= now_ms]
        while coming and coming[0] <= now_ms:
            seen.append(coming[0])
            least = min(ready, key=lambda s: (len(s.queue) + (s.free_ms > now_ms), s.name))
            least.queue.append(coming.popleft())
        for server in (*ready, *leaving):
            while server.queue and server.free_ms <= now_ms:
                server.free_ms = now_ms + service_ms
                run.waits_ms.append(now_ms - server.queue.popleft())
                server.served += 1
        leaving = [s for s in leaving if s.queue]
        if now_ms % tick_ms == 0:
            while seen and seen[0] <= now_ms - window_ms:
                seen.popleft()
            span_ms = min(window_ms, max(now_ms, tick_ms))
            facts = CountFacts(
                wanted=len(servers),
                standing=len(servers),
                ready=len(ready),
                warming=len(servers) - len(ready),
                cold_start_p90_ms=warm_up_ms,
                rev="r1",
                pods=tuple(ReadyPod(s.name, s.name, "r1", s.ready_ms) for s in ready),
            )
            load = Sample(len(seen) * 1_000 / span_ms, now_ms, tick_ms)
            engines = tuple(_engine(s, now_ms, tick_ms) for s in ready)
            readings = ServiceReadings(
                REF, engines=engines, load=LoadReading(load, False, TOKENS, TOKENS)
            )
            count = rule(facts, readings, now_ms)
            run.counts.append(count)
            for _ in range(len(servers), count):
                servers.append(Server(f"r-{bought}", now_ms + warm_up_ms))
                bought += 1
            leaving += [s for s in servers[count:] if s.queue]
            del servers[count:]
        run.peak = max(run.peak, len(servers))
        run.replica_seconds += len(servers) * STEP_MS / 1_000
    for server in (*servers, *leaving):
        run.backlog += len(server.queue)
        at_ms = max(server.free_ms, ends_ms)
        for arrived_ms in server.queue:
            run.waits_ms.append(at_ms - arrived_ms)
            at_ms += service_ms
    return run


def _engine(server: Server, now_ms: int, tick_ms: int) -> EngineReading:
    waiting = float(len(server.queue))
    queued, server.waited = server.waited and waiting > 0, waiting > 0
    served, server.served = server.served, 0
    rate = served * 1_000 / tick_ms
    return EngineReading(
        server.name,
        server.name,
        now_ms,
        window_ms=tick_ms,
        running=float(server.free_ms > now_ms),
        waiting=waiting,
        kv_usage=0.1,
        queued=queued,
        prefill_tokens_per_second=rate * TOKENS,
        decode_tokens_per_second=rate * TOKENS,
        finished_per_second=rate,
    )
