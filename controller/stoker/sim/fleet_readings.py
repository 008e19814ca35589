"""What a controller reads of simulated replicas, as `signals` makes it of real ones.

In: the replicas that serve, at one second. Out: a `ServiceReadings` of the time since the last
look, less what the ground's blindness hides. Called by `sim.fleet_run` at each scrape.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from stoker.model.readings import (
    EngineReading,
    LoadReading,
    Reading,
    Sample,
    ServiceReadings,
    Unmeasurable,
)
from stoker.model.refs import UnitRef
from stoker.sim.fleet_ground import Blindness, FleetGround
from stoker.sim.fleet_replica import Replica
from stoker.sim.jumping import Counters, percentile_ms

__all__ = ["Reader"]

REF = UnitRef("ModelService", "simulated", "service")
GATEWAY = "gateway"
"""The name of its wake source: requests that no replica has taken."""
VALID_SCRAPES = 3
"""A sample may be used for as long as three scrapes take, as `signals` does."""
KEPT_STARTS = 20
"""Starts of which the P90 is made, the last ones."""


class Reader:
    """Keeps what is needed between two looks."""

    def __init__(self, ground: FleetGround) -> None:
        self._ground = ground
        self._looks = 0
        self._looked_s = 0.0
        self._starts_ms: deque[int] = deque(maxlen=KEPT_STARTS)
        self.arrivals = 0
        """Requests since the last look; counted by the gateway."""
        self.preemptions = 0
        """Of replicas that are gone."""

    def started(self, took_ms: int) -> None:
        """A cold start is over."""
        self._starts_ms.append(took_ms)

    def forget(self, replica: Replica) -> None:
        """It is gone."""
        self.preemptions += replica.engine.counters.preemptions

    @property
    def cold_start_p90_ms(self) -> int | None:
        """Of the last starts; None before the first."""
        if not self._starts_ms:
            return None
        ordered = sorted(self._starts_ms)
        return ordered[-(-9 * len(ordered) // 10) - 1]

    def read(
        self, at_s: float, now_ms: int, ready: Sequence[Replica], outside: int
    ) -> ServiceReadings:
        """One round; the counts begin anew with it."""
        passed_s = at_s - self._looked_s
        self._looks += 1
        self._looked_s = at_s
        valid_ms = VALID_SCRAPES * self._ground.scrape_ms
        blind = {b.of for b in self._ground.blind if b.period.holds(at_s)}
        before = [replica.seen for replica in ready]
        engines = [self._engine(at_s, now_ms, replica) for replica in ready]
        arrivals = self._arrivals(passed_s, now_ms, valid_ms)
        prompt, output = _means(ready, before)
        held: Reading = Sample(float(outside), now_ms, valid_ms, "requests")
        if Blindness.ALL in blind:
            gone = Unmeasurable("unreachable", "the simulated network is away", now_ms)
            load = LoadReading(gone, estimated=False)
            return ServiceReadings(REF, load=load, wake=((GATEWAY, gone),))
        if Blindness.ONE in blind and engines:
            del engines[self._looks % len(engines)]
        if Blindness.NOT_A_NUMBER in blind:
            engines = [_without_rates(engine) for engine in engines]
            prompt = output = None
        if Blindness.LOAD in blind:
            arrivals = Unmeasurable("unreachable", "the simulated gateway is away", now_ms)
            held = arrivals
        return ServiceReadings(
            REF,
            engines=tuple(engines),
            load=LoadReading(arrivals, False, prompt, output),
            wake=((GATEWAY, held),),
        )

    def _arrivals(self, passed_s: float, now_ms: int, valid_ms: int) -> Reading:
        counted, self.arrivals = self.arrivals, 0
        if passed_s <= 0:
            return Unmeasurable("missing", "no two looks at the counter so far", now_ms)
        return Sample(counted / passed_s, now_ms, valid_ms, "requests/s")

    def _engine(self, at_s: float, now_ms: int, replica: Replica) -> EngineReading:
        replica.engine.settle(at_s)
        batch, before = replica.engine.batch, replica.seen
        after = replica.engine.counters.copy()
        passed_s = at_s - replica.seen_s
        waiting = len(batch.waiting)
        queued = replica.waited and waiting > 0
        replica.seen, replica.seen_s, replica.waited = after, at_s, waiting > 0
        about = EngineReading(
            pod=replica.name,
            pod_uid=replica.name,
            at_ms=now_ms,
            running=float(replica.load - waiting),
            waiting=float(waiting),
            kv_usage=min(1.0, batch.kv_share),
        )
        if before is None or passed_s <= 0:
            return about
        return EngineReading(
            pod=about.pod,
            pod_uid=about.pod_uid,
            at_ms=now_ms,
            window_ms=round(passed_s * 1000),
            running=about.running,
            waiting=about.waiting,
            kv_usage=about.kv_usage,
            queued=queued,
            prefill_tokens_per_second=(after.prefill_tokens - before.prefill_tokens) / passed_s,
            decode_tokens_per_second=(after.decode_tokens - before.decode_tokens) / passed_s,
            finished_per_second=(after.finished - before.finished) / passed_s,
            ttft_p95_ms=percentile_ms(before.first_token, after.first_token, 0.95),
            itl_p95_ms=percentile_ms(before.inter_token, after.inter_token, 0.95),
        )


def _without_rates(engine: EngineReading) -> EngineReading:
    """What a first look gives: no rates and no percentiles."""
    return EngineReading(
        pod=engine.pod,
        pod_uid=engine.pod_uid,
        at_ms=engine.at_ms,
        running=engine.running,
        waiting=engine.waiting,
        kv_usage=engine.kv_usage,
    )


def _means(
    ready: Sequence[Replica], before: Sequence[Counters | None]
) -> tuple[float | None, float | None]:
    """Prompt tokens that no cache held, and answer tokens, of one finished request; None where
    none finished.
    """
    finished = prompts = outputs = computed = queried = 0
    for replica, early in zip(ready, before, strict=True):
        late = replica.seen
        if early is None or late is None:
            continue
        finished += late.finished - early.finished
        prompts += late.finished_prompt_tokens - early.finished_prompt_tokens
        outputs += late.finished_output_tokens - early.finished_output_tokens
        computed += late.prefill_tokens - early.prefill_tokens
        queried += late.admitted_tokens - early.admitted_tokens
    if not finished:
        return None, None
    # As signals does it: the prompts of the finished times the share that no cache held.
    share = min(1.0, computed / queried) if queried else 1.0
    return prompts / finished * share, outputs / finished
