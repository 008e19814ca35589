"""`algorithm: Capacity`: as many replicas as the load needs, bought once (design section 5).

In: the load, what the Ready replicas say, what one of them can do, what is on its way. Out: a
count that is never added to the present one: need is compared with what is bought, Ready plus
warming (semantics 1.15.1). Called by scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from stoker.decide.count_facts import CountFacts
from stoker.decide.finding import Finding, highest, number, up
from stoker.decide.measured import Engines, named, usable
from stoker.decide.rates import Request, rate_of, requests_per_second
from stoker.decide.ratio import NOTHING_TO_MEASURE, asked
from stoker.model.readings import EngineReading, Sample, ServiceReadings, Unmeasurable
from stoker.model.scale_history import ScaleHistory
from stoker.model.scale_verdict import Said
from stoker.model.scaling import Scaling

__all__ = ["Sight", "by_capacity", "sight_of", "why_not_fewer"]

KV_FULL = 0.8
"""Share of KV blocks above which a replica counts as full: llm-d's variant autoscaler, V1."""
YOUNG_MORE = 8
"""Replicas more than are Ready that a capacity which is no more than a lower bound may buy; twice as
many, from 8 on. Ours, after HPA's default of the larger of 4 and 100 % in 15 s."""
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
    outside: float = 0.0
    """Requests that wait before the replicas, as wake sources count them."""

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
    request = Request(past.prefill_tokens, past.output_tokens)
    rate = rate_of(past.rates, facts, spec.capacity)
    capacity, learned = None, False
    if rate is not None:
        prefill, decode, learned = rate
        capacity = requests_per_second(prefill, decode, request)
        if capacity is not None and not learned:
            capacity = _as_finished(capacity, engines)
    arrivals = usable(load.arrivals if load is not None else None, now_ms)
    names = [source.name for source in spec.scale_to_zero.wake if source.query is not None]
    wake = named(readings.wake if readings is not None else (), names, now_ms)
    outside = math.fsum(each.value for _, each in wake if isinstance(each, Sample))
    return Sight(facts, engines, arrivals, capacity, learned, request, outside)


def _as_finished(capacity: float, engines: Engines) -> float:
    """A lower bound, corrected by what full replicas finish now: the first requests to end are the
    short ones, by whose size a rate in tokens is worth too many. Half of it holds in any case.
    """
    ended = [e.finished_per_second for e in engines.of if e.queued and e.finished_per_second]
    if not ended:
        return capacity
    return max(capacity / 2, min(capacity, math.fsum(ended) / len(ended)))


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
    if lacking := next(filter(None, (_not_told(spec, e) for e in engines)), ""):
        return lacking
    kv = _mean(e.kv_usage for e in engines) * grown
    if kv > KV_FULL:
        return f"{count} would fill {number(kv * 100)} % of their KV blocks, over {KV_FULL:.0%}"
    # Where nothing waits a first token takes as long as its prompt, on any number of replicas.
    waits = sight.engines.waiting > 0
    promises = (
        ("TTFT", spec.slo.ttft_p95_ms, [e.ttft_p95_ms for e in engines if waits]),
        ("ITL", spec.slo.itl_p95_ms, [e.itl_p95_ms for e in engines]),
    )
    for name, promised_ms, measured in promises:
        mean_ms = _mean(measured) * grown
        if promised_ms is not None and mean_ms > promised_ms * SLO_REACHED:
            return f"P95 {name} of {count} would be {number(mean_ms)} ms of {promised_ms} ms"
    return ""


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else 0.0


def _not_told(spec: Scaling, engine: EngineReading) -> str:
    """What an engine does not say although it has to be known; empty for nothing.

    A percentile of a window in which there was nothing to measure is no failed read.
    """
    if engine.kv_usage is None:
        return f"how full the KV blocks of {engine.pod} are is not known"
    began = engine.prefill_tokens_per_second != 0 and engine.finished_per_second != 0
    if spec.slo.ttft_p95_ms is not None and engine.ttft_p95_ms is None and began:
        return f"the TTFT of {engine.pod} is not known"
    decoded = engine.decode_tokens_per_second != 0
    if spec.slo.itl_p95_ms is not None and engine.itl_p95_ms is None and decoded:
        return f"the ITL of {engine.pod} is not known"
    return ""


def _by_load(spec: Scaling, sight: Sight, once_ms: int | None) -> Said:
    """Replicas for the load with headroom, and for the backlog within the drain window."""
    facts, engines = sight.facts, sight.engines
    if isinstance(sight.arrivals, Unmeasurable):
        return _by_queue(sight, once_ms, f"the load is not known: {sight.arrivals.why}")
    load = sight.arrivals.value
    if not load and not engines.waiting and not sight.outside:
        return Said("load", 0, "no load")
    capacity = sight.capacity
    if capacity is None:
        return _by_queue(sight, once_ms, "what one replica can do is not known yet")
    backlog = _backlog(spec, sight, load, capacity)
    kept, need = (
        up(load * (100 + percent) / 100 / capacity + backlog)
        for percent in (spec.headroom_percent / 2, spec.headroom_percent)
    )
    why = f"{number(load)}/s + {spec.headroom_percent} % over {number(capacity)}/s a replica"
    if backlog:
        why += f", {number(backlog)} for what waits"
    # Half of the headroom is for what the load does within a round: only beyond it is more
    # bought, and all of it is asked for then.
    if kept <= facts.count:
        need = min(need, facts.count) if need > facts.count else kept
    if sight.learned or need <= facts.count:
        return Said("load", need, why)
    if engines.queued:
        return Said("load", min(need, max(facts.count, _trusted(facts.ready))), why)
    # A lower bound from replicas that were never full says how few would surely do, not how many
    # are needed: else a service that idles buys for a tiny rate, and its rate never grows.
    if engines.waiting > facts.ready and once_ms is None:
        return Said("load", facts.count + 1, f"{why}; a first queue, capacity not known yet")
    return Said("load", facts.count, f"{why} at least; no queue says that it is not enough")


def _trusted(ready: int) -> int:
    """Most replicas that are bought on a capacity which is only a lower bound: it may be off by
    any factor, and those that become Ready say more.
    """
    return max(2 * ready, ready + YOUNG_MORE)


def _backlog(spec: Scaling, sight: Sight, load: float, capacity: float) -> float:
    """Replicas for what waits, to be served within the drain window.

    What waits in an engine stays there: it asks for one replica at most, in the place of one that
    is busy with it. Of what waits before them (a gateway) any number may take its part. What will
    have been served before a start ends is no reason for one.
    """
    if not spec.drain_window_ms:
        return 0.0
    facts, engines = sight.facts, sight.engines
    inside = [each.waiting for each in engines.of if each.waiting]
    total = math.fsum(inside) + sight.outside
    if not total:
        return 0.0
    # What warms up serves for half of that time on average.
    surplus = max(0.0, capacity * (facts.ready + facts.warming / 2) - load)
    left = max(0.0, 1.0 - surplus * facts.cold_start_p90_ms / 1_000 / total)
    one = capacity * spec.drain_window_ms / 1_000
    waits = [min(1.0, left * waiting / one) for waiting in inside]
    return math.fsum((*waits, left * sight.outside / one))


def _by_queue(sight: Sight, once_ms: int | None, why: str) -> Said:
    """Without a rate a queue asks for one replica more in each P90 of a cold start."""
    if not sight.engines.queued:
        return Said("load", None, why)
    if once_ms is not None:
        return Said("load", sight.facts.count, f"{why}; the last purchase is on its way")
    return Said("load", sight.facts.count + 1, f"{why}; requests wait all the time")


def _by_slo(spec: Scaling, sight: Sight, once_ms: int | None) -> Said:
    """One more in each P90 of a cold start while most replicas are full and late. A single one that
    works off its own queue is no reason: what waits in it stays there.
    """
    promised_ms = spec.slo.ttft_p95_ms
    if promised_ms is None:
        return Said("slo", None, "no TTFT is promised")
    late = sum(1 for e in sight.engines.of if e.queued and (e.ttft_p95_ms or 0.0) > promised_ms)
    why = f"{late} of {sight.facts.ready} are full and break {promised_ms} ms P95 TTFT"
    if 2 * late <= sight.facts.ready:
        return Said("slo", None, why)
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
