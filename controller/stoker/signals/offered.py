"""What is offered to a service: requests a second, and the tokens of one. Pure.

In: what a configured query gave, if there is one, and a Look a pod. Out: a LoadReading. A query
comes first, since only a gateway sees what no engine took; else it is estimated from what the
engines finished and how their backlog changed. Used by signals.reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from stoker.engine.series import total
from stoker.model.readings import LoadReading, Reading, Sample, Unmeasurable
from stoker.signals.engine_reading import growth, uncached_tokens
from stoker.signals.scrape import Look, Scraped

__all__ = ["offered"]

_HTTP = "http_requests_total"
_REJECTED = re.compile(r'(?:^|,)\s*status="(?:5\d\d|5xx|429)"')
_COMPLETIONS = re.compile(r'(?:^|,)\s*handler="/v1/')
"""vLLM counts answers by handler and status, by default in classes (prometheus-fastapi-
instrumentator): of 4xx nobody can tell what was bad input, so only 429 by its number counts."""
_BACKLOG = ("vllm:num_requests_running", "vllm:num_requests_waiting")


def offered(
    asked: Reading | None, looks: Sequence[Look], now_ms: int, valid_ms: int
) -> LoadReading:
    """Arrivals and tokens a request. `asked` None: no query is configured.

    A query that failed is not replaced by an estimate: the two differ by what was rejected, and
    a count that follows first one and then the other would fall with a server.
    """
    ready = [look for look in looks if look.pod.ready]
    windows = [look for look in ready if look.seconds > 0]
    arrivals = _estimated(ready, now_ms, valid_ms) if asked is None else asked
    return LoadReading(
        arrivals=arrivals,
        estimated=asked is None,
        prefill_tokens=_uncached_of_one(windows),
        output_tokens=_of_one(windows, "vllm:request_generation_tokens"),
    )


def _estimated(ready: Sequence[Look], now_ms: int, valid_ms: int) -> Reading:
    """Completions plus the change in running and waiting plus what was rejected, over all Ready
    pods; Unmeasurable when one of them is not known.
    """
    if not ready:
        return Unmeasurable("missing", "no pod is Ready", now_ms)
    rates = []
    for look in ready:
        if look.after is None:
            return Unmeasurable("unreachable", f"pod {look.pod.name}: {look.why}", now_ms)
        arrived = _arrived(look)
        if arrived is None or look.seconds <= 0:
            why = f"pod {look.pod.name}: no two looks at its requests so far"
            return Unmeasurable("missing", why, now_ms)
        rates.append(arrived / look.seconds)
    found = _sum(rates)
    if found is None or not math.isfinite(found):
        return Unmeasurable("not-a-number", "the pods' arrivals have no finite sum", now_ms)
    at_ms = min(look.after.at_ms for look in ready if look.after is not None)
    return Sample(found, at_ms, valid_ms, unit="requests/s")


def _arrived(look: Look) -> float | None:
    """Requests that came to a pod between its looks; at least 0, since a page is not written in
    one instant.
    """
    if look.before is None or look.after is None:
        return None
    finished = growth(look, "vllm:request_success_total")
    backlog = [_backlog(page) for page in (look.before, look.after)]
    if finished is None or backlog[0] is None or backlog[1] is None:
        return None
    return max(0.0, finished + backlog[1] - backlog[0]) + _rejected(look.before, look.after)


def _backlog(page: Scraped) -> float | None:
    running, waiting = (total(page.series(name)) for name in _BACKLOG)
    return None if running is None or waiting is None else running + waiting


def _rejected(before: Scraped, after: Scraped) -> float:
    """Answers that say come later. A series appears with its first answer, so one that was not
    there counted 0; an engine that does not tell rejects nothing that anybody knows of.
    """
    return max(0.0, _turned_away(after) - _turned_away(before))


def _turned_away(page: Scraped) -> float:
    series = page.series(_HTTP) or {}
    kept = {
        labels: value
        for labels, value in series.items()
        if _REJECTED.search(labels) and _COMPLETIONS.search(labels)
    }
    return total(kept) or 0.0


def _of_one(windows: Sequence[Look], histogram: str) -> float | None:
    """The mean of a histogram's observations in all windows; None without any."""
    sums = [growth(look, f"{histogram}_sum") for look in windows]
    counts = [growth(look, f"{histogram}_count") for look in windows]
    return _quotient(sums, counts)


def _uncached_of_one(windows: Sequence[Look]) -> float | None:
    """Prompt tokens of one finished request, times the share of all that no cache held."""
    prompt = _of_one(windows, "vllm:request_prompt_tokens")
    prompts = [growth(look, "vllm:prompt_tokens_total") for look in windows]
    share = _quotient([uncached_tokens(look) for look in windows], prompts)
    if prompt is None or share is None:
        return None
    found = prompt * share
    return found if math.isfinite(found) else None


def _quotient(upper: Sequence[float | None], lower: Sequence[float | None]) -> float | None:
    """Sum over sum, of the pods of which both are known."""
    pairs = [
        (up, low)
        for up, low in zip(upper, lower, strict=True)
        if up is not None and low is not None
    ]
    above, below = _sum([up for up, _ in pairs]), _sum([low for _, low in pairs])
    if above is None or below is None or below <= 0:
        return None
    found = above / below
    return found if math.isfinite(found) else None


def _sum(values: Sequence[float]) -> float | None:
    try:
        return math.fsum(values)
    except OverflowError:
        return None
