"""Builders of what scaling rules are asked with; each shows only what matters."""

from __future__ import annotations

from dataclasses import replace

from stoker.decide.count_facts import CountFacts, ReadyPod
from stoker.decide.scale import ScaleAnswer, scale
from stoker.model.readings import (
    EngineReading,
    LoadReading,
    Reading,
    Sample,
    ServiceReadings,
    Unmeasurable,
)
from stoker.model.refs import UnitRef
from stoker.model.scale_history import NO_SCALE, LearnedRate, ScaleHistory
from stoker.model.scaling import (
    Algorithm,
    CapacityPrior,
    DecisionQuery,
    Metric,
    ScaleDown,
    Scaling,
    ScrapeQuery,
)

NOW_MS = 1_750_000_000_000
SECOND = 1_000
REF = UnitRef("ModelService", "llm", "qwen")
GONE = Unmeasurable("unreachable", "connection refused", NOW_MS)
NAN = Unmeasurable("not-a-number", "NaN", NOW_MS)
PRIOR = CapacityPrior(1_000.0, 200.0)
"""With requests of 500 and 100 tokens: 2 a second and replica."""


def sample(value, age_ms=0, valid_ms=60_000):
    """A value, measured so long ago."""
    return Sample(float(value), NOW_MS - age_ms, valid_ms)


def metric(name="queue", target: float | None = 5.0):
    """A scraped metric; of a decision server without a target."""
    query = ScrapeQuery("vllm:num_requests_waiting") if target else DecisionQuery("s", "qwen")
    return Metric(name, query, target)


def a_ratio(*metrics, least=1, most=20, window_s=0, step=0, **fields):
    """A scaling block with LLMScaler's rule; one metric with target 5 if none is given."""
    return Scaling(
        least,
        most,
        algorithm=Algorithm.RATIO,
        metrics=metrics or (metric(),),
        scale_down=ScaleDown(window_ms=window_s * SECOND, max_step=step),
        **fields,
    )


def a_capacity(*metrics, least=1, most=20, window_s=60, step=0, prior=PRIOR, **fields):
    """A scaling block with our rule, which is told that a replica serves 2 requests a second."""
    return Scaling(
        least,
        most,
        metrics=metrics,
        capacity=prior,
        scale_down=ScaleDown(window_ms=window_s * SECOND, max_step=step),
        **fields,
    )


def facts(ready=1, *, wanted=None, warming=0, stuck=0, since_s=600, p90_s=60, **fields):
    """So many Ready replicas, p-0 and on, for so long; wanted as many as stand."""
    count = ready + warming + stuck if wanted is None else wanted
    pods = (
        ReadyPod(f"p-{n}", f"uid-{n}", "r1", NOW_MS - since_s * SECOND, "L4") for n in range(ready)
    )
    given = {"standing": count, "rev": "r1", "pods": tuple(pods), **fields}
    return CountFacts(
        wanted=count,
        ready=ready,
        warming=warming,
        stuck=stuck,
        cold_start_p90_ms=p90_s * SECOND,
        **given,
    )


def engine(number=0, *, age_ms=0, running=1.0, waiting=0.0, kv=0.2, rate=1.0, **fields):
    """What one replica says; `rate` are finished requests a second, of 500 and 100 tokens."""
    given = {
        "prefill_tokens_per_second": rate * 500,
        "decode_tokens_per_second": rate * 100,
        "finished_per_second": rate,
        **fields,
    }
    return EngineReading(
        f"p-{number}",
        f"uid-{number}",
        NOW_MS - age_ms,
        window_ms=15_000,
        running=running,
        waiting=waiting,
        kv_usage=kv,
        **given,
    )


def readings(*, load: Reading | float | None = None, engines=(), wake=(), **metrics):
    """Readings: a load in requests a second, engines, and metrics by name (of `_` for `-`)."""
    arrivals = sample(load) if isinstance(load, int | float) else load
    given = {
        name: sample(value) if isinstance(value, int | float) else value
        for name, value in metrics.items()
    }
    return ServiceReadings(
        REF,
        metrics=tuple(given.items()),
        engines=tuple(engines),
        load=None if arrivals is None else LoadReading(arrivals, False, 500.0, 100.0),
        wake=tuple(wake),
    )


def busy(count=1, **fields):
    """So many engines, alike."""
    return tuple(engine(number, **fields) for number in range(count))


def idle(count=1):
    """So many engines with nothing to do."""
    return busy(count, running=0.0, rate=0.0)


def asked(spec, known, given, past: ScaleHistory = NO_SCALE, later_ms=0) -> ScaleAnswer:
    """The answer at NOW_MS, or so much later, with the same readings taken then."""
    given = _taken_later(given, later_ms) if given is not None else None
    return scale(spec, known, given, past, NOW_MS + later_ms)


def _taken_later(given: ServiceReadings, by_ms: int) -> ServiceReadings:
    def moved(reading: Reading) -> Reading:
        return replace(reading, at_ms=reading.at_ms + by_ms)

    load = given.load
    return replace(
        given,
        metrics=tuple((name, moved(each)) for name, each in given.metrics),
        wake=tuple((name, moved(each)) for name, each in given.wake),
        engines=tuple(replace(each, at_ms=each.at_ms + by_ms) for each in given.engines),
        load=replace(load, arrivals=moved(load.arrivals)) if load is not None else None,
    )


def low_for(seconds, **fields) -> ScaleHistory:
    """A past in which one replica was recommended, and would have done, for so long."""
    since_ms = NOW_MS - seconds * SECOND
    given = {"recommended": ((since_ms, 1),), "low_since_ms": since_ms, "served": True}
    return ScaleHistory(**{**given, **fields})


def learned(requests, *, saturated=True, rev="r1") -> LearnedRate:
    """A rate that is worth so many requests a second."""
    return LearnedRate(rev, "L4", requests * 500.0, requests * 100.0, saturated, NOW_MS - 60_000)
