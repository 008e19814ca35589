"""Prometheus, and what speaks its API, behind the one adapter of prometheus-api-client.

In: PromQL and headers. Out: one value, or values by pod; never raises. The library alone has no
deadline, tries again inside ours, and drops the warnings of partial answers (deps-ux.md 1.9), so
it is given our transport, no retries, and its answers are read whole here. Used by
signals.sources on worker threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from urllib3.util import Retry

from stoker.model.ports import Clock
from stoker.model.readings import Reading, Sample, Unmeasurable
from stoker.model.times import to_milliseconds
from stoker.signals.questions import Covered
from stoker.signals.transport import FAILURES, Transport, Whole, failure_of

__all__ = ["SETTLE_SECONDS", "Prometheus", "Series"]

SETTLE_SECONDS = 120.0
"""How long after its start a Prometheus may not have scraped every target: two intervals of its
default. A sum over those it has would be too low, so nothing is taken from it until then."""
ASK_START_SECONDS = 5.0
"""For how long the start of a server is known without asking."""
_LAST_SECOND = 1e12
"""Beyond it is no time (the year 33658)."""
_PART = "stoker_part"
"""A label that tells the value from the scrapes in one answer; no metric has it."""
MOST_CONNECTIONS = 6
"""Questions to one server at once; one that hangs takes no other server's workers."""


@dataclass(frozen=True, slots=True)
class Series:
    """One result: labels, when it was evaluated by the server's clock, and the value as text."""

    labels: Mapping[str, str]
    at_ms: int
    text: str


@dataclass(frozen=True, slots=True)
class _Connection:
    """The library's client and the transport that was given to it."""

    client: Any
    transport: Transport


@dataclass(frozen=True, slots=True)
class _Started:
    """When the server started, by its clock (None: it does not tell), as of a monotonic second."""

    at_ms: int | None
    known_at: float


class Prometheus:
    """One server. Callable from several threads."""

    def __init__(self, url: str, clock: Clock, *, settle_seconds: float = SETTLE_SECONDS) -> None:
        self._url = url.rstrip("/")
        self._clock = clock
        self._settle_ms = round(settle_seconds * 1000)
        self._lock = Lock()
        self._idle: list[_Connection] = []
        self._lent = 0
        self._started: _Started | None = None

    def value(
        self, query: str, headers: Mapping[str, str], timeout_seconds: float, valid_ms: int
    ) -> Reading:
        """The one value of a query, at most `valid_ms` old."""
        found = self.series(query, headers, timeout_seconds)
        return found if isinstance(found, Unmeasurable) else self._one(found, valid_ms)

    def covered(
        self,
        query: str,
        selector: str,
        headers: Mapping[str, str],
        timeout_seconds: float,
        valid_ms: int,
    ) -> Covered | Unmeasurable:
        """The one value of a query about some pods, and which of them are scraped.

        Both in one query, for a scrape between two of them would make one a lie about the other.
        The query has to give an instant vector.
        """
        parts = f"{_part(query, 'value')} or {_part(f'max by (pod) (up{{{selector}}})', 'up')}"
        found = self.series(parts, headers, timeout_seconds)
        if isinstance(found, Unmeasurable):
            return found
        values = tuple(series for series in found if series.labels.get(_PART) == "value")
        return Covered(self._one(values, valid_ms), _by_pod(found, "up"))

    def by_pod(
        self, query: str, headers: Mapping[str, str], timeout_seconds: float
    ) -> Mapping[str, float] | Unmeasurable:
        """Finite values by the label `pod`; a pod with several has none, for nobody knows which."""
        found = self.series(query, headers, timeout_seconds)
        return found if isinstance(found, Unmeasurable) else _by_pod(found)

    def series(
        self, query: str, headers: Mapping[str, str], timeout_seconds: float
    ) -> tuple[Series, ...] | Unmeasurable:
        """All results of an instant query; Unmeasurable where any may be missing."""
        with self._connection() as connection:
            if connection is None:
                why = f"{MOST_CONNECTIONS} earlier questions have no answer yet"
                return Unmeasurable("unreachable", why, self._clock.now_ms())
            connection.client.headers = dict(headers)
            found = self._ask(connection, query, timeout_seconds)
            if isinstance(found, Unmeasurable):
                self._started = None
                return found
            return self._settled(connection, found, timeout_seconds)

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.client.close()

    def _one(self, found: tuple[Series, ...], valid_ms: int) -> Reading:
        now_ms = self._clock.now_ms()
        if not found:
            return Unmeasurable("missing", "the query has no result", now_ms)
        if len(found) > 1:
            why = f"the query has {len(found)} series; one is needed, as of sum() or avg()"
            return Unmeasurable("many-values", why, now_ms)
        return _sample(found[0], now_ms, valid_ms)

    @contextmanager
    def _connection(self) -> Iterator[_Connection | None]:
        """A connection that nobody else uses; None when all are lent."""
        with self._lock:
            if self._lent >= MOST_CONNECTIONS:
                connection = None
            else:
                self._lent += 1
                connection = self._idle.pop() if self._idle else self._connected()
        try:
            yield connection
        finally:
            if connection is not None:
                with self._lock:
                    self._lent -= 1
                    self._idle.append(connection)

    def _connected(self) -> _Connection:
        transport = Transport(self._clock)
        return _Connection(
            PrometheusConnect(self._url, retry=Retry(total=0), session=transport), transport
        )

    def _ask(
        self, connection: _Connection, query: str, timeout_seconds: float
    ) -> tuple[Series, ...] | Unmeasurable:
        limit = f"{max(1, round(timeout_seconds * 1000))}ms"  # a fraction is no duration there
        try:
            connection.client.custom_query(
                query, params={"timeout": limit}, timeout=timeout_seconds
            )
        except (PrometheusApiClientException, KeyError, TypeError):
            pass  # an answer all the same, which is read below
        except FAILURES as error:
            if connection.transport.last is None:
                why = failure_of(error, timeout_seconds).why
                return Unmeasurable("unreachable", why, self._clock.now_ms())
        answer = connection.transport.last
        assert answer is not None
        return _results(answer.status_code, _document(answer), self._clock.now_ms())

    def _settled(
        self, connection: _Connection, found: tuple[Series, ...], timeout_seconds: float
    ) -> tuple[Series, ...] | Unmeasurable:
        """The results, unless the server has just started; both by the server's own clock."""
        started_ms = self._start(connection, timeout_seconds)
        if started_ms is None or not found:
            return found
        up_ms = min(series.at_ms for series in found) - started_ms
        if up_ms >= self._settle_ms:
            return found
        why = (
            f"the server started {max(0, up_ms) // 1000} s ago and may not have scraped everything"
        )
        return Unmeasurable("stale", why, self._clock.now_ms())

    def _start(self, connection: _Connection, timeout_seconds: float) -> int | None:
        """When the server started; None where it does not tell, as those that only speak the API."""
        now = self._clock.monotonic()
        known = self._started
        if known is not None and now - known.known_at < ASK_START_SECONDS:
            return known.at_ms
        try:
            answer = connection.transport.request(
                "GET",
                f"{self._url}/api/v1/status/runtimeinfo",
                timeout=timeout_seconds,
                headers=connection.client.headers,
            )
            text = answer.json()["data"]["startTime"] if answer.status_code == 200 else ""
            at_ms = to_milliseconds(text) if text else None
        except (*FAILURES, KeyError, TypeError):
            at_ms = None
        self._started = _Started(at_ms, now)
        return at_ms


def _part(query: str, name: str) -> str:
    """The same results, each with the part's name; a comment at the end of the query ends there."""
    return f'label_replace(({query}\n), "{_PART}", "{name}", "", "")'


def _by_pod(found: tuple[Series, ...], part: str = "") -> dict[str, float]:
    """Finite values by the label `pod`, of one part; a pod with several has none."""
    values: dict[str, list[float | None]] = {}
    for series in found:
        pod = series.labels.get("pod", "")
        if pod and series.labels.get(_PART, "") == part:
            values.setdefault(pod, []).append(_number(series.text))
    return {
        pod: given[0]
        for pod, given in sorted(values.items())
        if len(given) == 1 and given[0] is not None and math.isfinite(given[0])
    }


def _document(answer: Whole) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _results(status: int, document: Any, now_ms: int) -> tuple[Series, ...] | Unmeasurable:
    """What an answer of the query API holds, if it is whole."""
    said = document if isinstance(document, dict) else {}
    if status != 200 or said.get("status") != "success":
        told = said.get("error")
        reason = f": {told}" if isinstance(told, str) and told else ""
        what = f"HTTP {status}" if status != 200 else "no answer of Prometheus' query API"
        return Unmeasurable("refused", f"{what}{reason}"[:300], now_ms)
    warnings = said.get("warnings")
    if warnings or said.get("isPartial"):
        first = warnings[0] if isinstance(warnings, list) and warnings else "isPartial"
        return Unmeasurable("missing", f"the answer may be partial: {first}"[:300], now_ms)
    data = said.get("data")
    kind, result = (
        (data.get("resultType"), data.get("result")) if isinstance(data, dict) else ("", "")
    )
    if kind == "scalar":
        result = [{"metric": {}, "value": result}]
    elif kind != "vector" or not isinstance(result, list):
        why = f"the query gives a {kind or 'nothing'}; an instant vector or a scalar is needed"
        return Unmeasurable("refused", why[:300], now_ms)
    found = [_series(item) for item in result]
    if any(series is None for series in found):
        return Unmeasurable("refused", "a result without a time and a value", now_ms)
    return tuple(series for series in found if series is not None)


def _series(item: Any) -> Series | None:
    """One result; None for what is none (a native histogram, too)."""
    if not isinstance(item, dict):
        return None
    value, labels = item.get("value"), item.get("metric")
    if not isinstance(value, Sequence) or len(value) != 2 or not isinstance(labels, dict):
        return None
    at, text = value
    if isinstance(at, bool) or not isinstance(at, int | float) or not isinstance(text, str):
        return None
    if not -_LAST_SECOND < at < _LAST_SECOND:
        return None
    kept = {str(name): each for name, each in labels.items() if isinstance(each, str)}
    return Series(kept, round(at * 1000), text)


def _sample(series: Series, now_ms: int, valid_ms: int) -> Reading:
    """A sane value; the server's clock may be ahead by as much as the value may be old."""
    value = _number(series.text)
    if value is None or not math.isfinite(value):
        return Unmeasurable("not-a-number", f"the value is {series.text[:40]}", now_ms)
    if value < 0:
        return Unmeasurable("negative", f"the value is {value:g}", now_ms)
    if abs(now_ms - series.at_ms) > valid_ms:
        age = (now_ms - series.at_ms) / 1000
        how = f"{age:.0f} s old" if age > 0 else f"{-age:.0f} s ahead of this clock"
        return Unmeasurable("stale", f"the value is {how}", now_ms)
    return Sample(abs(value), min(series.at_ms, now_ms), valid_ms)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
