"""What an engine has counted so far: tokens generated, prefix cache asked and hit, and its load.

In: an address. Out: `EngineCounters`, by old and new metric names of vLLM, or why there are
none. Used by node.engine_scrape, which turns two of them into rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoker.engine.load import MAX_PAGE_BYTES
from stoker.engine.page import PREFIXES, Samples, samples_of
from stoker.engine.series import Series, is_sane, total
from stoker.fetch import Answer, NoAnswer, fetch

__all__ = ["EngineCounters", "counters_from_metrics", "engine_counters"]

_TOKENS = ("generation_tokens_total", "generation_tokens")
_CACHE = (
    ("prefix_cache_queries_total", "prefix_cache_hits_total"),
    ("prefix_cache_queries", "prefix_cache_hits"),
    ("gpu_prefix_cache_queries_total", "gpu_prefix_cache_hits_total"),
    ("gpu_prefix_cache_queries", "gpu_prefix_cache_hits"),
)
"""Queries and hits in tokens, always of one generation of names (vLLM renamed them in 0.9)."""
_RUNNING, _WAITING = "num_requests_running", "num_requests_waiting"
_ALL = frozenset({*_TOKENS, *(name for pair in _CACHE for name in pair), _RUNNING, _WAITING})


@dataclass(frozen=True, slots=True)
class EngineCounters:
    """One page. None is absent, which is not zero; counters are kept series by series, since
    one of several engines behind a page may start anew while their sum still grows.
    """

    generation_tokens: Series | None = None
    cache_queries: Series | None = None
    cache_hits: Series | None = None
    running: int | None = None
    waiting: int | None = None


def engine_counters(address: str, timeout_seconds: float) -> EngineCounters | NoAnswer:
    """Ask the engine at `host:port`; never raises. A page that is not an engine's is no answer."""
    answer = fetch(f"http://{address}/metrics", timeout_seconds, most_bytes=MAX_PAGE_BYTES)
    if not isinstance(answer, Answer):
        return answer
    if answer.status != 200:
        return NoAnswer(f"HTTP {answer.status}")
    found = counters_from_metrics(answer.text)
    return NoAnswer("not the metrics of an engine") if found == EngineCounters() else found


def counters_from_metrics(page: str) -> EngineCounters:
    """The counters of a page; all None when it is another page."""
    for prefix in PREFIXES:
        samples = samples_of(page, _ALL, prefix)
        if samples:
            pairs = ((_series(samples, q), _series(samples, h)) for q, h in _CACHE)
            whole = ((q, h) for q, h in pairs if q is not None and h is not None)
            queries, hits = next(whole, (None, None))
            tokens = (_series(samples, name) for name in _TOKENS)
            return EngineCounters(
                generation_tokens=next((found for found in tokens if found is not None), None),
                cache_queries=queries,
                cache_hits=hits,
                running=_count(samples, _RUNNING),
                waiting=_count(samples, _WAITING),
            )
    return EngineCounters()


def _series(samples: Samples, name: str) -> Series | None:
    """All series of a name; None when there is none, or one is no count."""
    series = samples.get(name)
    return series if series and is_sane(series) else None


def _count(samples: Samples, name: str) -> int | None:
    found = total(samples.get(name))
    return None if found is None else math.ceil(found)
