"""When a request may be sent again, and how long to wait first.

Used by `kube.https` for every answer that may pass (429, 5xx, no answer). The budget
bounds what retries add to a failing server; `Retry-After` holds back every request.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from stoker.kube.transport import Request, Response
from stoker.model.ports import Clock

__all__ = ["Patience", "backoff_seconds", "is_repeatable", "may_pass", "retry_after_seconds"]

MAX_RESENDS = 3
LONGEST_WAIT_SECONDS = 5.0
"""A pass never sleeps longer inside a request: longer delays go back to the caller."""
_BUDGET = 10.0
_BUDGET_PER_REQUEST = 0.2
"""In a storm retries add at most a fifth to the load, after the first ten."""
_FIRST_BACKOFF_SECONDS = 0.2
_LONGEST_BACKOFF_SECONDS = 3.0


def is_repeatable(request: Request) -> bool:
    """Whether sending it twice equals sending it once: GET and server-side apply, no other."""
    return request.method == "GET" or (
        request.method == "PATCH" and request.content_type.startswith("application/apply-patch")
    )


def retry_after_seconds(answer: Response, now_ms: int) -> float:
    """How long an answer asks to wait: the longer of header and Status body, 0 for neither.

    The API server writes both, proxies only the header; a date in it counts from the answer's
    own Date, else from `now_ms`. What cannot be read asks for nothing.
    """
    return max(_from_header(answer, now_ms), _from_body(answer))


def _from_header(answer: Response, now_ms: int) -> float:
    value = answer.header("retry-after").strip()
    if value.isascii() and value.isdigit():
        return float(value) if len(value) < 9 else 0.0
    until = _http_date_ms(value)
    if until is None:
        return 0.0
    since = _http_date_ms(answer.header("date"))
    return max(0.0, (until - (now_ms if since is None else since)) / 1000)


def _http_date_ms(value: str) -> int | None:
    try:
        return int(parsedate_to_datetime(value).timestamp() * 1000) if value else None
    except (ValueError, TypeError, OverflowError):
        return None


def _from_body(answer: Response) -> float:
    """`details.retryAfterSeconds` of a Status that says to wait."""
    if answer.status < 400 or b"retryAfterSeconds" not in answer.body:
        return 0.0
    try:
        details = json.loads(answer.body)["details"]
        seconds = details["retryAfterSeconds"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0.0
    usable = isinstance(seconds, int) and not isinstance(seconds, bool) and 0 < seconds < 10**8
    return float(seconds) if usable else 0.0


def backoff_seconds(resends: int, jitter: float) -> float:
    """Wait before resend number `resends` (from 0): doubling, `jitter` 0-1 picks the upper half."""
    full = min(_LONGEST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * float(2**resends))
    return full * (0.5 + jitter / 2)


class Patience:
    """Shared by all requests of one transport."""

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._left = _BUDGET
        self._not_before = 0.0

    def admit(self) -> float:
        """Count a first attempt; give the seconds that the server asked everybody to wait."""
        with self._lock:
            self._left = min(_BUDGET, self._left + _BUDGET_PER_REQUEST)
            return max(0.0, self._not_before - self._clock.monotonic())

    def hold_back(self, seconds: float) -> None:
        """Remember that the server asked for `seconds` of silence."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock.monotonic() + seconds)

    def wait_before_resend(self, resends: int, server_asks: float, deadline: float) -> bool:
        """Sleep and say True when one more attempt is worth it, else False at once.

        `deadline` is the request's own, by the monotonic clock.
        """
        if resends >= MAX_RESENDS:
            return False
        seconds = backoff_seconds(resends, self._jitter())
        if server_asks > 0:
            seconds = max(seconds, server_asks * (1 + 0.1 * self._jitter()))
        if seconds > LONGEST_WAIT_SECONDS or self._clock.monotonic() + seconds >= deadline:
            return False
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
        self._clock.wait(seconds)
        return True


_FOR_GOOD = (b"failed to create typed patch object", b"failed to convert new object")
"""What a 500 says that is bad input, not a fault: the object's schema refuses it [tried]."""


def may_pass(answer: Response) -> bool:
    """Whether a failure of the server may be over at the next try; 501 says never."""
    failed = answer.status >= 500 and answer.status != 501
    return failed and not any(text in answer.body[:4096] for text in _FOR_GOOD)
