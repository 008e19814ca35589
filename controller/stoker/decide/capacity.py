"""`algorithm: Capacity`: as many replicas as the load needs, bought once (design section 5).

In: the load, what the Ready replicas say, what one of them can do, what is on its way. Out: a
count that is never added to the present one: need is compared with what is bought, Ready plus
warming (semantics 1.15.1). Called by scale.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.decide.count_facts import CountFacts
from stoker.decide.finding import Finding, highest, number, up
from stoker.decide.measured import Engines, named, usable
from stoker.decide.rates import Request, rate_of, request_of, requests_per_second
from stoker.decide.ratio import NOTHING_TO_MEASURE, asked
from stoker.model.readings import Sample, ServiceReadings, Unmeasurable
from stoker.model.scale_history import ScaleHistory
from stoker.model.scale_verdict import Said
from stoker.model.scaling import Scaling

__all__ = ["Sight", "by_capacity", "sight_of", "why_not_fewer"]

KV_FULL = 0.8
"""Share of KV blocks above which a replica counts as full: llm-d's variant autoscaler, V1."""
AHEAD_WINDOWS = 2
"""Drain windows for which a growing backlog is foreseen, at most until a start ends. Ours, measured
on 2026-11-30 (decision 43): with one a step of 4x keeps 21 % of arrivals waiting instead of 18 %;
without a bound noise alone buys a third more at a cold start of 3 minutes."""
SLO_REACHED = 0.8
"""Share of an SLO that fewer replicas may come to (semantics 1.15.2; Dynamo's planner)."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What Capacity sees of a service at one instant.

    `arrivals` are requests a second; `capacity` those that one replica can serve, None while
    nothing is known of it. `learned`: from full replicas or declared; else it is a lower bound.
    """

    facts: CountFacts
    engines: Engines
    arrivals: Sample | Unmeasurable
    capacity: float | None
    learned: bool
    request: Request

    @property
    def nothing_asked(self) -> bool:
        """Whether it is measured that nobody asks for anything."""
        return isinstance(self.arrivals, Sample) and self.arrivals.value == 0 and self.engines.idle


def sight_of(
    spec: Scaling,
    facts: CountFacts,
    engines: Engines,
    readings: ServiceReadings | None,
    past: ScaleHistory,
    now_ms: int,
) -> Sight:
    """Put it together; `past` has learned from these readings already."""
    load = readings.load if readings is not None else None
    request = request_of(load, engines)
    rate = rate_of(past.rates, facts, spec.capacity)
    capacity, learned = None, False
    if rate is not None:
        prefill, decode, learned = rate
        capacity = requests_per_second(prefill, decode, request)
    arrivals = usable(load.arrivals if load is not None else None, now_ms)
    return Sight(facts, engines, arrivals, capacity, learned, request)


def by_capacity(
    spec: Scaling,
    sight: Sight,
    readings: ServiceReadings | None,
    past: ScaleHistory,
    now_ms: int,
) -> Finding:
    """The highest of: what the load needs, what a queue asks for while no capacity is known, an
    SLO that is broken, and the metrics that have targets.
    """
    once_ms = _bought_until_ms(spec, sight.facts, past, now_ms)
    said = [_by_load(spec, sight, once_ms), _by_slo(spec, sight, once_ms)]
    given = readings.metrics if readings is not None else ()
    found = named(given, (metric.name for metric in spec.metrics), now_ms)
    for metric, (_, reading) in zip(spec.metrics, found, strict=True):
        said.append(_guard(asked(metric, reading, sight.facts.ready), sight.facts, once_ms))
    lacking = tuple((e.rule, e.why) for e in said if e.replicas is None and e.rule != "slo")
    top = highest(said)
    keeps = _keeps(sight, found)
    if top is None or top.replicas is None:
        return Finding(None, "", "nothing could be measured", tuple(said), lacking, keeps, once_ms)
    return Finding(top.replicas, top.rule, top.why, tuple(said), lacking, keeps, once_ms)


def why_not_fewer(spec: Scaling, sight: Sight, count: int) -> str:
    """Why that many replicas would not do as well as those that are Ready now (semantics 1.15.2);
    empty where they would. What each of them has to do grows with Ready / count.
    """
    ready = sight.facts.ready
    engines = sight.engines.of
    if not count:
        return "" if sight.nothing_asked or not ready else "requests are under way"
    grown = max(1.0, ready / count)
    if sight.engines.queued or sight.engines.waiting > count:
        return f"{number(sight.engines.waiting)} requests wait"
    kv = max((e.kv_usage for e in engines if e.kv_usage is not None), default=0.0) * grown
    if kv > KV_FULL:
        return f"{count} would fill {number(kv * 100)} % of their KV blocks, over {KV_FULL:.0%}"
    promises = (
        ("TTFT", spec.slo.ttft_p95_ms, [e.ttft_p95_ms for e in engines]),
        ("ITL", spec.slo.itl_p95_ms, [e.itl_p95_ms for e in engines]),
    )
    for name, promised_ms, measured in promises:
        worst_ms = max((ms for ms in measured if ms is not None), default=0.0) * grown
        if promised_ms is not None and worst_ms > promised_ms * SLO_REACHED:
            return f"P95 {name} of {count} would be {number(worst_ms)} ms of {promised_ms} ms"
    return ""


def _by_load(spec: Scaling, sight: Sight, once_ms: int | None) -> Said:
    """Replicas for the load with headroom, and for the backlog within the drain window."""
    facts, engines = sight.facts, sight.engines
    if isinstance(sight.arrivals, Unmeasurable):
        return _by_queue(sight, once_ms, f"the load is not known: {sight.arrivals.why}")
    load = sight.arrivals.value
    if not load and not engines.waiting:
        return Said("load", 0, "no load")
    capacity = sight.capacity
    if capacity is None:
        return _by_queue(sight, once_ms, "what one replica can do is not known yet")
    served = load * (100 + spec.headroom_percent) / 100 / capacity
    backlog = _backlog(spec, sight, load, capacity)
    drained = backlog * 1_000 / (capacity * spec.drain_window_ms) if backlog else 0.0
    need = up(served + drained)
    why = f"{number(load)}/s + {spec.headroom_percent} % over {number(capacity)}/s a replica"
    if backlog:
        why += f", {number(backlog)} waiting in {spec.drain_window_ms // 1_000}s"
    if sight.learned or need <= facts.count or engines.queued:
        return Said("load", need, why)
    # A lower bound from replicas that were never full says how few would surely do, not how many
    # are needed: else a service that idles buys for a tiny rate, and its rate never grows.
    if engines.waiting > facts.ready and once_ms is None:
        return Said("load", facts.count + 1, f"{why}; a first queue, capacity not known yet")
    return Said("load", facts.count, f"{why} at least; no queue says that it is not enough")


def _backlog(spec: Scaling, sight: Sight, load: float, capacity: float) -> float:
    """Requests that wait, and those that will wait on top until more replicas could serve.

    While replicas are full it grows by what they cannot serve; what they will have served before
    a start ends is no reason for one.
    """
    if not spec.drain_window_ms:
        return 0.0
    facts, engines, start_ms = sight.facts, sight.engines, sight.facts.cold_start_p90_ms
    growth = load - capacity * (facts.ready + facts.warming)
    if growth > 0:
        ahead_ms = min(AHEAD_WINDOWS * spec.drain_window_ms, start_ms) if engines.queued else 0
        return engines.waiting + growth * ahead_ms / 1_000
    # What warms up serves for half of that time on average.
    surplus = max(0.0, capacity * (facts.ready + facts.warming / 2) - load)
    return max(0.0, engines.waiting - surplus * start_ms / 1_000)


def _by_queue(sight: Sight, once_ms: int | None, why: str) -> Said:
    """Without a rate a queue asks for one replica more in each P90 of a cold start."""
    if not sight.engines.queued:
        return Said("load", None, why)
    if once_ms is not None:
        return Said("load", sight.facts.count, f"{why}; the last purchase is on its way")
    return Said("load", sight.facts.count + 1, f"{why}; requests wait all the time")


def _by_slo(spec: Scaling, sight: Sight, once_ms: int | None) -> Said:
    """One more in each P90 of a cold start while clients wait longer than promised."""
    worst_ms = max((e.ttft_p95_ms or 0.0 for e in sight.engines.of), default=0.0)
    promised_ms = spec.slo.ttft_p95_ms
    if promised_ms is None:
        return Said("slo", None, "no TTFT is promised")
    if worst_ms <= promised_ms or not sight.engines.queued:
        return Said("slo", None, f"P95 TTFT {number(worst_ms)} ms of {promised_ms} ms")
    why = f"P95 TTFT {number(worst_ms)} ms, promised {promised_ms} ms"
    return Said("slo", sight.facts.count + (once_ms is None), why)


def _guard(said: Said, facts: CountFacts, once_ms: int | None) -> Said:
    """A metric beside the load: what it measures grows while its replicas warm up, so it buys
    once, and not again before that purchase can have shown.
    """
    if said.replicas is None or once_ms is None or said.replicas <= facts.count:
        return said
    return Said(said.rule, facts.count, f"{said.why}; the last purchase is on its way")


def _bought_until_ms(
    spec: Scaling, facts: CountFacts, past: ScaleHistory, now_ms: int
) -> int | None:
    """Until when a purchase is under way that signals cannot show yet; None for none."""
    if past.scaled_up_ms is None:
        return None
    ends_ms = past.scaled_up_ms + max(facts.cold_start_p90_ms, spec.interval_ms)
    return ends_ms if now_ms < ends_ms else None


def _keeps(sight: Sight, found: tuple[tuple[str, Sample | Unmeasurable], ...]) -> str:
    """Why the count may not fall: an update, or anything that is not known."""
    facts = sight.facts
    if facts.rolling:
        return "an update is under way"
    if isinstance(sight.arrivals, Unmeasurable):
        return f"the load is not known: {sight.arrivals.why}"
    if sight.engines.missing:
        return sight.engines.missing
    if sight.arrivals.value > 0 and sight.capacity is None:
        return "what one replica can do is not known yet"
    for name, reading in found:
        if not isinstance(reading, Unmeasurable):
            continue
        if reading.code != NOTHING_TO_MEASURE or not sight.nothing_asked:
            return f"metric {name} could not be measured: {reading.why}"
    return ""
