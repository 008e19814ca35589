"""All names under which engines have given one metric.

vLLM renamed metrics, text 0.0.4 and OpenMetrics differ in `_total`, and proxies turn `vllm:`
into `vllm_` (deps-ux.md 10). In: a name as somebody wrote it. Out: the names to look for. Used
by signals. Source of the names: semantics.md 1.11.
"""

from __future__ import annotations

from functools import cache

from stoker.engine.page import PREFIXES

__all__ = ["spellings"]

_RENAMED = (
    ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
    ("inter_token_latency_seconds", "time_per_output_token_seconds"),
    ("prefix_cache_queries", "gpu_prefix_cache_queries"),
    ("prefix_cache_hits", "gpu_prefix_cache_hits"),
)
_OF_HISTOGRAMS = ("_bucket", "_count", "_sum")
_TOTAL = "_total"


@cache
def spellings(name: str) -> tuple[str, ...]:
    """The names of a metric, the one asked for first; whoever looks takes the first that is
    there, so that a page with both is not counted twice.
    """
    prefix = next((each for each in PREFIXES if name.startswith(each)), "")
    stem, endings = _split(name.removeprefix(prefix))
    pair = next((pair for pair in _RENAMED if prefix and stem in pair), ())
    stems = (stem, *(each for each in pair if each != stem))
    prefixes = (prefix, *(each for each in PREFIXES if prefix and each != prefix))
    return tuple(
        before + middle + after for middle in stems for before in prefixes for after in endings
    )


def _split(bare: str) -> tuple[str, tuple[str, ...]]:
    """The name without its ending, and the endings that may stand there."""
    for ending in _OF_HISTOGRAMS:
        if bare.endswith(ending):
            return bare.removesuffix(ending), (ending,)
    if bare.endswith(_TOTAL):
        return bare.removesuffix(_TOTAL), (_TOTAL, "")
    return bare, ("", _TOTAL)
