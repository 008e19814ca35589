"""When the last replica may leave, and when a service without any wakes.

In: what is measured of a service, what it remembers. Out: whether zero is allowed now, what asks
for it, and what to remember of idle times. Called by scale, for both algorithms. What is not
known keeps a replica, and keeps a service at zero where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.decide.break_even import MOST_GAPS, break_even
from stoker.decide.capacity import Sight
from stoker.decide.finding import number
from stoker.decide.measured import named
from stoker.model.readings import Sample, ServiceReadings, Unmeasurable
from stoker.model.scale_history import ScaleHistory
from stoker.model.scaling import Algorithm, Scaling, ZeroPolicy

__all__ = ["Zero", "woken_by", "zero_of"]

BLIND_MS = 600_000
"""How long Capacity stays at zero while nothing can be measured, where `blindFor` is not given:
as long as `idle` is by default. Ours."""


@dataclass(frozen=True, slots=True)
class Zero:
    """`allowed`: the count may be zero now; `why` says why, or why not.

    `asks` names what asks for the service, empty for nothing. `blind`: nothing could be measured.
    `looks_ms` is when `allowed` may change by itself.
    """

    past: ScaleHistory
    allowed: bool
    why: str
    asks: str = ""
    blind: bool = False
    looks_ms: int | None = None


def zero_of(
    spec: Scaling,
    sight: Sight,
    readings: ServiceReadings | None,
    past: ScaleHistory,
    now_ms: int,
) -> Zero:
    """Judge it; `past` in the answer has the idle times and the blind time of this pass."""
    names = [source.name for source in spec.scale_to_zero.wake if source.query is not None]
    wake = named(readings.wake if readings is not None else (), names, now_ms)
    asks = _asks(sight, wake)
    silent = next((f"{n}: {r.why}" for n, r in wake if isinstance(r, Unmeasurable)), "")
    nothing_known = not _any_known(spec, sight, readings, now_ms) and all(
        isinstance(reading, Unmeasurable) for _, reading in wake
    )
    known = _remembered(spec, sight, past, asks=bool(asks), silent=silent, now_ms=now_ms)
    blind_ms = past.blind_since_ms if past.blind_since_ms is not None else now_ms
    known = replace(known, blind_since_ms=blind_ms if nothing_known else None)
    why, looks_ms = _why_not(spec, sight, known, silent, now_ms)
    allowed = not why
    told = _told(spec, sight, known) if allowed else why
    return Zero(known, allowed, told, asks, nothing_known, looks_ms)


def woken_by(spec: Scaling, zero: Zero, now_ms: int) -> tuple[str, int | None]:
    """Why a service at zero starts one replica, empty for not; and when being blind will."""
    if zero.asks:
        return zero.asks, None
    if not zero.blind:
        return "", None
    blind_for_ms = spec.blind_for_ms
    if blind_for_ms is None and spec.algorithm is Algorithm.CAPACITY:
        blind_for_ms = BLIND_MS
    since_ms = zero.past.blind_since_ms
    if blind_for_ms is None or since_ms is None:
        return "", None
    ends_ms = since_ms + blind_for_ms
    if now_ms >= ends_ms:
        return f"nothing could be measured for {blind_for_ms // 1_000}s", None
    return "", ends_ms


def _asks(sight: Sight, wake: tuple[tuple[str, Sample | Unmeasurable], ...]) -> str:
    for name, reading in wake:
        if isinstance(reading, Sample) and reading.value > 0:
            return f"{number(reading.value)} wait at {name}"
    if isinstance(sight.arrivals, Sample) and sight.arrivals.value > 0:
        return f"{number(sight.arrivals.value)} requests a second"
    if any(each.running or each.waiting for each in sight.engines.of):
        return "requests are under way"
    return ""


def _any_known(spec: Scaling, sight: Sight, readings: ServiceReadings | None, now_ms: int) -> bool:
    given = readings.metrics if readings is not None else ()
    metrics = named(given, (metric.name for metric in spec.metrics), now_ms)
    measured = (sight.arrivals, *(reading for _, reading in metrics))
    return any(isinstance(reading, Sample) for reading in measured)


def _remembered(
    spec: Scaling, sight: Sight, past: ScaleHistory, *, asks: bool, silent: str, now_ms: int
) -> ScaleHistory:
    """The idle time goes on, ends, or is not known any more: an outage is none."""
    facts = sight.facts
    past = replace(past, served=past.served or facts.ready > 0)
    since_ms = past.idle_since_ms
    if asks:
        gap_ms = now_ms - since_ms if since_ms is not None else 0
        gaps = (*past.gaps_ms, gap_ms)[-MOST_GAPS:] if gap_ms >= spec.interval_ms else past.gaps_ms
        return replace(past, idle_since_ms=None, gaps_ms=gaps)
    if facts.count == 0 and not facts.ready:
        return past
    idle = sight.nothing_asked and not silent
    since_ms = since_ms if since_ms is not None else now_ms
    return replace(past, idle_since_ms=since_ms if idle else None)


def _why_not(
    spec: Scaling, sight: Sight, past: ScaleHistory, silent: str, now_ms: int
) -> tuple[str, int | None]:
    """Why the last replica stays, empty where it may leave; and when that changes by itself."""
    facts, zero = sight.facts, spec.scale_to_zero
    if facts.count and not (past.served and facts.ready):
        return "never to zero before it was Ready", None
    if zero.policy is ZeroPolicy.NEVER:
        if spec.algorithm is Algorithm.RATIO:
            return "", None
        return "scaleToZero.policy is Never", None
    if not facts.count:
        return "", None
    if silent:
        return f"nobody could wake it: {silent}", None
    if past.idle_since_ms is None:
        return "it is not known to be idle", None
    wait_ms = _wait_ms(spec, sight, past)
    if wait_ms is None:
        return "no price of its pools is known, so nothing breaks even", None
    ends_ms = past.idle_since_ms + wait_ms
    if now_ms >= ends_ms:
        return "", None
    why = f"idle for {(now_ms - past.idle_since_ms) // 1_000}s of {wait_ms // 1_000}s"
    if zero.policy is ZeroPolicy.BREAK_EVEN:
        why += f"; {_told(spec, sight, past)}"
    return why, ends_ms


def _wait_ms(spec: Scaling, sight: Sight, past: ScaleHistory) -> int | None:
    """How long it must be idle: never less than a cold start takes (semantics 6)."""
    start_ms = sight.facts.cold_start_p90_ms
    if spec.scale_to_zero.policy is ZeroPolicy.AFTER_IDLE:
        return max(spec.scale_to_zero.idle_ms, start_ms)
    price = sight.facts.price_per_hour
    if not price:
        return None
    found = break_even(past.gaps_ms, start_ms, spec.scale_to_zero.breach_cost, price)
    return max(found.wait_ms, start_ms)


def _told(spec: Scaling, sight: Sight, past: ScaleHistory) -> str:
    price = sight.facts.price_per_hour
    if spec.scale_to_zero.policy is ZeroPolicy.BREAK_EVEN and price:
        cost = spec.scale_to_zero.breach_cost
        return break_even(past.gaps_ms, sight.facts.cold_start_p90_ms, cost, price).told
    return "idle for long enough" if past.idle_since_ms is not None else "may be at zero"
