"""A service in virtual time: a trace comes in, a policy says how many replicas, they start, serve
and drain.

In: requests in order of time, a policy, a ground. Out: a `RunResult`. One thread, no clock: the
next event is an arrival, an engine whose work ends, a replica that gets Ready, or a look of the
policy. Called by `stoker simulate` and the benchmarks; the same inputs give the same result.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Iterable
from typing import Any

from stoker.model.readings import ServiceReadings
from stoker.sim.clock import DEFAULT_START_MS
from stoker.sim.fleet_ground import FleetGround
from stoker.sim.fleet_readings import Reader
from stoker.sim.fleet_replica import Replica, ReplicaState
from stoker.sim.fleet_tally import Tally
from stoker.sim.jumping import Answer
from stoker.sim.policy import EngineSize, Policy, Seen
from stoker.sim.routing import router_named
from stoker.sim.run_result import RunResult
from stoker.sim.traffic import Request

__all__ = ["simulate"]

TAIL_SECONDS = 900.0
"""How long answers may take after the last request before they count as not given."""
ROUNDS_MS = 240_000
"""For how long readings are kept: the longest window of a baseline is 3 minutes."""

_ENGINE, _READY, _LOOK = range(3)
"""What happens at one instant, in this order."""


def simulate(requests: Iterable[Request], policy: Policy, ground: FleetGround) -> RunResult:
    """Play the trace to its end, and what is under way then."""
    run = _Run(policy, ground)
    for request in requests:
        run.until(request.at_s)
        run.arrive(request)
    run.finish()
    return run.tally.result(policy.name)


class _Run:
    """The state of one run; `now` only grows."""

    def __init__(self, policy: Policy, ground: FleetGround) -> None:
        profile = ground.engine
        self.policy, self.ground = policy, ground
        self.tally = Tally(ground)
        self.reader = Reader(ground)
        self.router = router_named(ground.router)
        self.now = 0.0
        self.agenda: list[tuple[float, int, int]] = [(0.0, _LOOK, 0)]
        self.live: dict[int, Replica] = {}
        """All that are not gone, by number, which is the order of purchase."""
        self.ready: list[Replica] = []
        self.outside: deque[Answer] = deque()
        self.open = 0
        """Requests that are neither answered nor lost."""
        self.wanted = 0
        self.past: Any = policy.begin()
        self.next_policy_ms = 0
        self.rounds: deque[tuple[int, ServiceReadings]] = deque()
        self.size = EngineSize(
            profile.kv_blocks * profile.block_tokens,
            profile.max_sequences,
            profile.max_batched_tokens,
        )
        self.numbers = 0
        self.chance = random.Random(ground.seed)  # noqa: S311 - no secret
        self._grow(ground.first, cold=False)
        self.wanted = ground.first

    # ------------------------------------------------------------------------- time

    def until(self, at_s: float) -> None:
        """Let everything happen that comes before that second."""
        agenda = self.agenda
        while agenda[0][0] <= at_s:
            when, kind, number = heapq.heappop(agenda)
            self.now = when
            if kind == _ENGINE:
                replica = self.live.get(number)
                if replica is not None and replica.engine.until == when:
                    self._complete(replica)
            elif kind == _READY:
                self._become_ready(number)
            else:
                self._look()
        self.now = at_s

    def arrive(self, request: Request) -> None:
        """One request comes in now."""
        answer = Answer(request)
        self.tally.arrived(answer)
        self.reader.arrivals += 1
        self.open += 1
        if self.ready:
            self._send(answer)
        else:
            self.outside.append(answer)

    def finish(self) -> None:
        """Nothing more comes: close the books, and let what is under way end."""
        self.tally.close(self.now)
        limit = self.now + TAIL_SECONDS
        while self.open and self.agenda[0][0] <= limit:
            self.until(self.agenda[0][0])
        self.tally.preemptions = self.reader.preemptions + sum(
            replica.engine.counters.preemptions for replica in self.live.values()
        )

    # --------------------------------------------------------------------- requests

    def _send(self, answer: Answer) -> None:
        replica = self.ready[self.router.choose(answer.request, self.ready)]
        engine = replica.engine
        before = engine.until
        if not engine.add(self.now, answer):
            self.tally.refused += 1
            self.open -= 1
        elif engine.until != before:
            heapq.heappush(self.agenda, (engine.until, _ENGINE, replica.number))

    def _complete(self, replica: Replica) -> None:
        engine = replica.engine
        self.open -= len(engine.complete())
        if engine.until != math.inf:
            heapq.heappush(self.agenda, (engine.until, _ENGINE, replica.number))
        elif replica.state is ReplicaState.LEAVING:
            self._gone(replica)

    # --------------------------------------------------------------------- replicas

    def _grow(self, count: int, *, cold: bool = True) -> None:
        for _ in range(count):
            number = self.numbers
            self.numbers += 1
            replica = Replica(number, self.now, self.ground.engine)
            self.live[number] = replica
            if not cold:
                self._serve(replica)
                continue
            self.tally.bought += 1
            replica.crashes = any(p.holds(self.now) for p in self.ground.crashing)
        self.tally.hold(self.now, self._held())
        self._start()

    def _start(self) -> None:
        """Begin the starts for which there is an instance, the oldest purchase first."""
        free = self._instances() - self._held()
        for replica in self.live.values():
            if replica.state is ReplicaState.PENDING and free > 0:
                free -= 1
                spread = self.ground.start_spread
                share = 1 + self.chance.uniform(-spread, spread) if spread else 1.0
                replica.state = ReplicaState.STARTING
                replica.started_s = self.now
                ready_s = self.now + self.ground.cold_start_s * share
                heapq.heappush(self.agenda, (ready_s, _READY, replica.number))
        self.tally.hold(self.now, self._held())

    def _become_ready(self, number: int) -> None:
        replica = self.live.get(number)
        if replica is None or replica.state is not ReplicaState.STARTING:
            return
        if replica.crashes:
            replica.state = ReplicaState.STUCK
            return
        self.tally.cold_starts += 1
        self.reader.started(round((self.now - replica.started_s) * 1000))
        self._serve(replica)
        while self.outside:
            self._send(self.outside.popleft())

    def _serve(self, replica: Replica) -> None:
        replica.state = ReplicaState.READY
        replica.ready_s = self.now
        self.ready.append(replica)
        self.ready.sort(key=lambda each: each.number)

    def _shrink(self, count: int) -> None:
        """Let so many leave: what does not serve first, then by the policy's taste."""
        order = {state: rank for rank, state in enumerate(_LEAVE)}
        staying = [r for r in self.live.values() if r.state is not ReplicaState.LEAVING]
        aware = self.policy.cache_aware
        staying.sort(
            key=lambda r: (
                order[r.state],
                r.engine.batch.kv_share if aware and r.state is ReplicaState.READY else 0.0,
                -r.ready_s if r.state is ReplicaState.READY else -r.asked_s,
                -r.number,
            )
        )
        for replica in staying[:count]:
            served = replica.state is ReplicaState.READY
            replica.state = ReplicaState.LEAVING
            if served:
                self.ready.remove(replica)
            if replica.engine.idle:
                self._gone(replica)
        self._start()

    def _gone(self, replica: Replica) -> None:
        del self.live[replica.number]
        self.reader.forget(replica)
        self.tally.hold(self.now, self._held())

    def _lose(self, count: int) -> None:
        """That many instances are taken away without notice, the newest first."""
        running = [r for r in self.live.values() if r.state is not ReplicaState.PENDING]
        for replica in running[::-1][:count]:
            self.tally.lost += 1
            broken = replica.engine.lost()
            self.open -= len(broken)
            self.tally.broken += len(broken)
            left = replica.state is ReplicaState.LEAVING
            if replica.state is ReplicaState.READY:
                self.ready.remove(replica)
            self._gone(replica)
            if not left:  # its workload makes a new one
                self._grow(1)

    def _held(self) -> int:
        return sum(1 for r in self.live.values() if r.state is not ReplicaState.PENDING)

    def _instances(self) -> int:
        spot = self.ground.spot
        return 1_000_000 if spot is None else spot.available(self.now)

    # ------------------------------------------------------------------------- looks

    def _look(self) -> None:
        """A scrape, and the policy where it is its turn."""
        heapq.heappush(self.agenda, (self.now + self.ground.scrape_ms / 1000, _LOOK, 0))
        if self.ground.spot is not None:
            self._lose(max(0, self._held() - self._instances()))
            self._start()
        passed_ms = round(self.now * 1000)
        now_ms = DEFAULT_START_MS + passed_ms
        arrived = self.reader.arrivals
        readings = self.reader.read(self.now, now_ms, self.ready, len(self.outside))
        self.rounds.append((now_ms, readings))
        while self.rounds[0][0] <= now_ms - ROUNDS_MS:
            self.rounds.popleft()
        if passed_ms >= self.next_policy_ms:
            self.next_policy_ms = passed_ms + self.policy.interval_ms
            self._ask(now_ms)
        self.tally.look(
            self.now,
            self.wanted,
            len(self.ready),
            self._held(),
            arrived / (self.ground.scrape_ms / 1000),
            len(self.outside) + sum(len(r.engine.batch.waiting) for r in self.ready),
        )

    def _ask(self, now_ms: int) -> None:
        states = [replica.state for replica in self.live.values()]
        seen = Seen(
            now_ms,
            self.wanted,
            len(self.ready),
            states.count(ReplicaState.STARTING) + states.count(ReplicaState.PENDING),
            states.count(ReplicaState.STUCK),
            self.ground.min_replicas,
            self.ground.max_replicas,
            self.reader.cold_start_p90_ms,
            tuple(readings for _, readings in self.rounds),
            self.size,
            tuple(
                sorted(
                    (replica.name, DEFAULT_START_MS + round(replica.ready_s * 1000))
                    for replica in self.ready
                )
            ),
        )
        count, self.past = self.policy.decide(seen, self.past)
        count = seen.clamped(count)
        if count > self.wanted:
            self.tally.ups += 1
            self._grow(count - self.wanted)
        elif count < self.wanted:
            self.tally.downs += 1
            self._shrink(self.wanted - count)
        self.wanted = count


_LEAVE = (ReplicaState.PENDING, ReplicaState.STUCK, ReplicaState.STARTING, ReplicaState.READY)
"""Who leaves first (ReplicaSet: unassigned, then not ready, then the others)."""
