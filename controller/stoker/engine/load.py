"""How busy an engine is: requests running plus requests waiting, from its metrics page.

In: an address. Out: a count, or None for every kind of failure, since an engine that does
not answer counts as busy. Asked while a replica drains.
"""

from __future__ import annotations

import math

from stoker.fetch import Answer, fetch

__all__ = ["in_flight", "in_flight_from_metrics"]

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""A vLLM page is some 100 KB; more than this is not one."""

_RUNNING = "num_requests_running"
_WAITING = "num_requests_waiting"
# Some proxies and recording rules cannot keep the colon. The first prefix with a whole
# pair wins, so that a page that carries both is not counted twice.
_PREFIXES = ("vllm:", "vllm_")


def in_flight(address: str, timeout_seconds: float) -> int | None:
    """Requests running and waiting, summed over the engines behind `host:port`.

    None when the page did not come whole within the time, or doesn't say both. Never raises.
    """
    page = _fetch(f"http://{address}/metrics", timeout_seconds)
    return None if page is None else in_flight_from_metrics(page)


def in_flight_from_metrics(page: str) -> int | None:
    """The same from the text of a page (Prometheus format 0.0.4 or OpenMetrics)."""
    sums: dict[str, float] = {}
    for line in page.splitlines():
        sample = _sample(line)
        if sample is None:
            continue
        name, value = sample
        if not math.isfinite(value) or value < 0:
            return None
        sums[name] = sums.get(name, 0.0) + value
    for prefix in _PREFIXES:
        if prefix + _RUNNING in sums and prefix + _WAITING in sums:
            return math.ceil(sums[prefix + _RUNNING] + sums[prefix + _WAITING])
    return None


def _sample(line: str) -> tuple[str, float] | None:
    """Name and value of one of our samples; NaN where the value can't be read."""
    if not line.startswith(_PREFIXES):
        return None
    name, labels, rest = line.partition("{")
    if labels:
        # Label values may hold spaces and braces; the value follows the last brace.
        rest = rest.rpartition("}")[2]
    else:
        name, _, rest = line.partition(" ")
    if not name.endswith((_RUNNING, _WAITING)):
        return None
    words = rest.split()
    try:
        return name, float(words[0])
    except (IndexError, ValueError):
        return name, math.nan


def _fetch(url: str, timeout_seconds: float) -> str | None:
    """The page, if all of it came in time and with status 200."""
    answer = fetch(url, timeout_seconds, most_bytes=MAX_PAGE_BYTES)
    return answer.text if isinstance(answer, Answer) and answer.status == 200 else None
