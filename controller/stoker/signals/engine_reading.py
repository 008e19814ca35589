"""What one pod's engines do, from two looks at it: an `EngineReading`. Pure.

In: a Look. Out: rates and percentiles over the time between, None where they are not known.
Used by signals.reader; signals.offered reads the same growth.
"""

from __future__ import annotations

import math

from stoker.engine.series import grown, mean, percentile, total
from stoker.model.readings import EngineReading
from stoker.signals.scrape import Look, Scraped

__all__ = ["engine_reading", "growth", "rate", "uncached_tokens"]

_SHARE = 0.95
_WAITING = "vllm:num_requests_waiting"
_CACHED = ("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total")
"""Prompt tokens that a cache held: the first that both pages have. The newer one knows of caches
outside the engine, too."""


def engine_reading(look: Look) -> EngineReading | None:
    """The reading of a pod; None where it gave nothing this time."""
    after = look.after
    if after is None:
        return None
    return EngineReading(
        pod=look.pod.name,
        pod_uid=look.pod.uid,
        at_ms=after.at_ms,
        window_ms=round(look.seconds * 1000),
        running=total(after.series("vllm:num_requests_running")),
        waiting=total(after.series(_WAITING)),
        kv_usage=mean(after.series("vllm:kv_cache_usage_perc")),
        queued=_waits(look.before) and _waits(after),
        prefill_tokens_per_second=rate(look, uncached_tokens(look)),
        decode_tokens_per_second=rate(look, growth(look, "vllm:generation_tokens_total")),
        finished_per_second=rate(look, growth(look, "vllm:request_success_total")),
        ttft_p95_ms=_p95_ms(look, "vllm:time_to_first_token_seconds_bucket"),
        itl_p95_ms=_p95_ms(look, "vllm:inter_token_latency_seconds_bucket"),
    )


def growth(look: Look, metric: str) -> float | None:
    """By how much a counter grew between the looks; None without two pages that spell it alike."""
    if look.before is None or look.after is None:
        return None
    name = look.after.name_of(metric)
    return grown(look.before.samples.get(name), look.after.samples.get(name))


def uncached_tokens(look: Look) -> float | None:
    """Prompt tokens of the time between that no cache held; None where one of both is not known.

    At least 0: hits are counted when a request is admitted, prompts when they are done.
    """
    prompts = growth(look, "vllm:prompt_tokens_total")
    cached = next((n for n in (growth(look, name) for name in _CACHED) if n is not None), None)
    if prompts is None or cached is None:
        return None
    return max(0.0, prompts - cached)


def rate(look: Look, amount: float | None) -> float | None:
    """The amount a second of the time between the looks."""
    if amount is None or look.seconds <= 0:
        return None
    found = amount / look.seconds
    return found if math.isfinite(found) else None


def _waits(page: Scraped | None) -> bool:
    waiting = None if page is None else total(page.series(_WAITING))
    return waiting is not None and waiting > 0


def _p95_ms(look: Look, metric: str) -> float | None:
    if look.before is None or look.after is None:
        return None
    name = look.after.name_of(metric)
    seconds = percentile(look.before.samples.get(name), look.after.samples.get(name), _SHARE)
    milliseconds = None if seconds is None else seconds * 1000
    return milliseconds if milliseconds is not None and math.isfinite(milliseconds) else None
