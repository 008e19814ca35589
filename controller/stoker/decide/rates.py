"""What one replica can do, in tokens a second, learned from replicas that serve.

In: what was learned before, what the Ready replicas say. Out: a rate for each rev and accelerator
(design section 5). Called by scale before its rules; read by capacity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from stoker.decide.count_facts import CountFacts, ReadyPod
from stoker.decide.measured import Engines
from stoker.model.readings import EngineReading, LoadReading
from stoker.model.scale_history import LearnedRate, ScaleHistory
from stoker.model.scaling import CapacityPrior

__all__ = ["Request", "learned_rates", "rate_of", "request_of", "requests_per_second", "smoothed"]

SETTLED_MS = 180_000
"""Ready for so long before a full replica teaches its capacity (design section 5): before that
caches are cold and kernels are still compiled."""
WEIGHT = 0.25
"""Of a full window against what was known: about the last eight count. Ours."""
SIZE_WEIGHT = 0.2
"""Of the requests of one round in the size of an average one: about the last ten rounds count. Ours."""
DECODE_WEIGHT = 4
"""A token that is decoded costs a full replica as much as so many that are prefilled: 2 to 6 on the
engine profiles of the simulator (16-bit 8B on L4 and H100, 70B on eight H100), by data sheets. One
number for all, so that a rate learned from one mix of requests holds for another (decision 43)."""
MOST_RATES = 6
"""Rates kept, the newest: a few revs on a few accelerators."""


@dataclass(frozen=True, slots=True)
class Request:
    """Tokens of an average request: to prefill that no cache holds, and to decode. None: unknown."""

    prefill: float | None = None
    decode: float | None = None


def request_of(load: LoadReading | None, engines: Engines) -> Request:
    """The average request: as the load says, else as the replicas finish them."""
    prefill = _sane(load.prefill_tokens) if load is not None else None
    decode = _sane(load.output_tokens) if load is not None else None
    finished = _total(each.finished_per_second for each in engines.of)
    if finished > 0:
        if prefill is None:
            prefill = _total(each.prefill_tokens_per_second for each in engines.of) / finished
        if decode is None:
            decode = _total(each.decode_tokens_per_second for each in engines.of) / finished
    return Request(prefill, decode)


def smoothed(past: ScaleHistory, request: Request) -> Request:
    """Sizes over the last rounds: those of one round are of a few requests only, and a count that
    follows them follows noise.
    """
    return Request(
        _mixed(past.prefill_tokens, request.prefill), _mixed(past.output_tokens, request.decode)
    )


def _mixed(before: float | None, now: float | None) -> float | None:
    if before is None or now is None:
        return before if now is None else round(now, 1)
    return round(before + (now - before) * SIZE_WEIGHT, 1)


def requests_per_second(prefill_rate: float, decode_rate: float, request: Request) -> float | None:
    """How many such requests a second work at these rates is; None where that is not known."""
    prefill = request.prefill if request.prefill is not None else 0.0
    decode = request.decode if request.decode is not None else 0.0
    done = _work(
        prefill_rate if request.prefill is not None else 0.0,
        decode_rate if request.decode is not None else 0.0,
    )
    asked = _work(prefill, decode)
    return done / asked if done > 0 and asked > 0 else None


def _work(prefill: float, decode: float) -> float:
    """Tokens in terms of those that are prefilled."""
    return prefill + DECODE_WEIGHT * decode


def rate_of(
    rates: Sequence[LearnedRate], facts: CountFacts, prior: CapacityPrior | None
) -> tuple[float, float, bool] | None:
    """Prefill and decode rate of one replica on average over those that are Ready, and whether it
    is more than a lower bound; None while nothing is known.

    What Git declares holds until full replicas were seen, or more was. Of a rev that nothing is
    known of the newest other one stands in, as a lower bound.
    """
    accelerators = [pod.accelerator for pod in facts.pods if pod.rev == facts.rev]
    own = {each.accelerator: each for each in rates if each.rev == facts.rev}
    found = [own[name] for name in accelerators if name in own] or _newest(own.values())
    if found:
        pairs = [(each.prefill_tokens_per_second, each.decode_tokens_per_second) for each in found]
        if all(each.saturated for each in found):
            return (*_average(pairs), True)
        if prior is None:
            return (*_average(pairs), False)
        declared = (prior.prefill_tokens_per_second, prior.decode_tokens_per_second)
        higher = [(max(p, declared[0]), max(d, declared[1])) for p, d in pairs]
        return (*_average(higher), True)
    if prior is not None:
        return prior.prefill_tokens_per_second, prior.decode_tokens_per_second, True
    others = _newest(rates)
    if not others:
        return None
    return others[0].prefill_tokens_per_second, others[0].decode_tokens_per_second, False


def learned_rates(
    past: Sequence[LearnedRate],
    facts: CountFacts,
    engines: Engines,
    prior: CapacityPrior | None,
    now_ms: int,
) -> tuple[LearnedRate, ...]:
    """What is known after these readings, sorted by rev and accelerator.

    Replicas that were full for a whole window, and Ready for three minutes, say what one can do.
    All others only say what it can do at least.
    """
    known = {(each.rev, each.accelerator): each for each in past}
    pods = {pod.uid: pod for pod in facts.pods}
    seen: dict[tuple[str, str], list[tuple[ReadyPod, EngineReading]]] = {}
    for engine in engines.of:
        pod = pods.get(engine.pod_uid)
        if pod is not None and _works(engine):
            seen.setdefault((pod.rev, pod.accelerator), []).append((pod, engine))
    for key in sorted(seen):
        known[key] = _bounded(_learned(known.get(key), key, seen[key], now_ms), prior)
    newest = sorted(known.values(), key=lambda each: (each.at_ms, each.rev, each.accelerator))
    kept = newest[-MOST_RATES:]
    return tuple(sorted(kept, key=lambda each: (each.rev, each.accelerator)))


def _learned(
    past: LearnedRate | None,
    key: tuple[str, str],
    seen: list[tuple[ReadyPod, EngineReading]],
    now_ms: int,
) -> LearnedRate:
    full = [(pod, e) for pod, e in seen if e.queued]
    settled = [e for pod, e in full if now_ms - pod.ready_since_ms >= SETTLED_MS]
    if settled:
        return _averaged(past, key, settled)
    if full and past is not None and not past.saturated:
        # The best burst of a replica that was not full is more than it can do for long.
        young = _averaged(past, key, [e for _, e in full])
        return replace(young, saturated=False)
    # A lower bound of one replica is the best of them; what was found of full ones, where more
    # than one replica's luck has to speak against it, is raised by their average.
    best = max((e for _, e in seen), key=lambda e: (_work(*_pair(e)), e.pod))
    raised = _pair(best) if past is None or not past.saturated else _mean([e for _, e in seen])
    if past is None:
        return LearnedRate(*key, *_rounded(*raised), saturated=False, at_ms=best.at_ms)
    before_pair = (past.prefill_tokens_per_second, past.decode_tokens_per_second)
    if _work(*_rounded(*raised)) <= _work(*before_pair):
        return past
    return LearnedRate(*key, *_rounded(*raised), saturated=past.saturated, at_ms=best.at_ms)


def _averaged(
    past: LearnedRate | None, key: tuple[str, str], full: list[EngineReading]
) -> LearnedRate:
    """One more full window; each reading counts once."""
    newest_ms = max(each.at_ms for each in full)
    now = _mean(full)
    if past is None:
        return LearnedRate(*key, *_rounded(*now), saturated=True, at_ms=newest_ms)
    if newest_ms <= past.at_ms:
        return past
    before = (past.prefill_tokens_per_second, past.decode_tokens_per_second)
    mixed = (b + (n - b) * WEIGHT for b, n in zip(before, now, strict=True))
    return LearnedRate(*key, *_rounded(*mixed), saturated=True, at_ms=newest_ms)


def _bounded(rate: LearnedRate, prior: CapacityPrior | None) -> LearnedRate:
    """Within half and double of what Git declares."""
    if prior is None:
        return rate
    least = (prior.prefill_tokens_per_second / 2, prior.decode_tokens_per_second / 2)
    prefill, decode = _rounded(
        min(max(rate.prefill_tokens_per_second, least[0]), least[0] * 4),
        min(max(rate.decode_tokens_per_second, least[1]), least[1] * 4),
    )
    return replace(rate, prefill_tokens_per_second=prefill, decode_tokens_per_second=decode)


def _works(engine: EngineReading) -> bool:
    prefill, decode = engine.prefill_tokens_per_second, engine.decode_tokens_per_second
    return prefill is not None and decode is not None and prefill + decode > 0


def _pair(engine: EngineReading) -> tuple[float, float]:
    return engine.prefill_tokens_per_second or 0.0, engine.decode_tokens_per_second or 0.0


def _mean(engines: list[EngineReading]) -> tuple[float, float]:
    return _average([_pair(each) for each in engines])


def _average(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    return _total(p for p, _ in pairs) / len(pairs), _total(d for _, d in pairs) / len(pairs)


def _rounded(*rates: float) -> tuple[float, float]:
    """To thousandths of a token, so that a steady fleet writes the same history again."""
    prefill, decode = (round(each, 3) for each in rates)
    return prefill, decode


def _newest(rates: Iterable[LearnedRate]) -> list[LearnedRate]:
    newest = max(rates, key=lambda each: (each.at_ms, each.rev, each.accelerator), default=None)
    return [] if newest is None else [newest]


def _sane(tokens: float | None) -> float | None:
    """A size that is finite and not negative, else not known."""
    return tokens if tokens is not None and 0 <= tokens < math.inf else None


def _total(values: Iterable[float | None]) -> float:
    return math.fsum(value for value in values if value is not None)
