"""How busy an engine is: requests running plus requests waiting, from its metrics page.

In: an address. Out: a count, or None for every kind of failure, since an engine that does
not answer counts as busy. Asked while a replica drains.
"""

from __future__ import annotations

import math

from stoker.engine.page import PREFIXES, samples_of
from stoker.engine.series import total
from stoker.fetch import Answer, fetch

__all__ = ["in_flight", "in_flight_from_metrics"]

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""A vLLM page is some 100 KB; more than this is not one."""

_RUNNING = "num_requests_running"
_WAITING = "num_requests_waiting"


def in_flight(address: str, timeout_seconds: float) -> int | None:
    """Requests running and waiting, summed over the engines behind `host:port`.

    None when the page did not come whole within the time, or doesn't say both. Never raises.
    """
    page = _fetch(f"http://{address}/metrics", timeout_seconds)
    return None if page is None else in_flight_from_metrics(page)


def in_flight_from_metrics(page: str) -> int | None:
    """The same from the text of a page (Prometheus format 0.0.4 or OpenMetrics)."""
    for prefix in PREFIXES:
        samples = samples_of(page, (_RUNNING, _WAITING), prefix)
        if len(samples) == 2:
            running, waiting = total(samples[_RUNNING]), total(samples[_WAITING])
            if running is None or waiting is None or not math.isfinite(running + waiting):
                return None
            return math.ceil(running + waiting)
    return None


def _fetch(url: str, timeout_seconds: float) -> str | None:
    """The page, if all of it came in time and with status 200."""
    answer = fetch(url, timeout_seconds, most_bytes=MAX_PAGE_BYTES)
    return answer.text if isinstance(answer, Answer) and answer.status == 200 else None
