"""The metric sources of a fleet: one client a server, headers beside every question.

In: a Question. Out: a reading, or values by pod; never raises. Used by signals.reader on worker
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from stoker.errors import Retryable, StokerError
from stoker.model.ports import Clock
from stoker.model.readings import Reading, Unmeasurable
from stoker.model.scaling import DecisionQuery, MetricSource, MetricSourceType
from stoker.signals.questions import Covered, Question

if TYPE_CHECKING:  # their HTTP library is a tenth of a second of every start
    from stoker.signals.decision import DecisionServer
    from stoker.signals.prometheus import Prometheus

__all__ = ["Answer", "Headers", "Sources"]

Answer: TypeAlias = Reading | Covered | Mapping[str, float]
Headers = Callable[[MetricSource], Mapping[str, str]]
"""The headers of a source; raises the error tree."""

_HIDDEN = "***"
_SHORTEST_SECRET = 4
"""Shorter values stand in every text by chance, and guard nothing."""


class Sources:
    """Clients by address. Callable from several threads.

    `settle_seconds` is for how long a Prometheus is not believed after its start; None takes
    the adapter's own.
    """

    def __init__(
        self, clock: Clock, headers: Headers, *, settle_seconds: float | None = None
    ) -> None:
        self._clock = clock
        self._headers = headers
        self._settle_seconds = settle_seconds
        self._lock = Lock()
        self._prometheus: dict[str, Prometheus] = {}
        self._deciders: dict[str, DecisionServer] = {}

    def answer(self, question: Question, timeout_seconds: float) -> Answer:
        """What the source says, in the form that the question wants; Unmeasurable in any."""
        source, query = question.source, question.query
        decides = isinstance(query, DecisionQuery)
        needed = MetricSourceType.DECISION if decides else MetricSourceType.PROMETHEUS
        if source.type is not needed:
            why = f"source {source.name} is of type {source.type}, not {needed}"
            return Unmeasurable("refused", why, self._clock.now_ms())
        try:
            headers = self._headers(source)
        except StokerError as error:
            code = "unreachable" if isinstance(error, Retryable) else "refused"
            why = f"headers of source {source.name}: {error.message}"
            return Unmeasurable(code, why[:300], self._clock.now_ms())
        found = self._ask(question, headers, timeout_seconds)
        if not isinstance(found, Unmeasurable):
            return found
        return replace(found, why=f"source {source.name}: {_hidden(found.why, headers)}")

    def close(self) -> None:
        """Close idle connections."""
        for server in self._prometheus.values():
            server.close()

    def _ask(self, question: Question, headers: Mapping[str, str], seconds: float) -> Answer:
        query, url = question.query, question.source.url
        if isinstance(query, DecisionQuery):
            return self._decider(url).count(query, headers, seconds, question.valid_ms)
        if question.by_pod:
            return self._server(url).by_pod(query.query, headers, seconds)
        if question.covers:
            selector, valid_ms = question.covers, question.valid_ms
            return self._server(url).covered(query.query, selector, headers, seconds, valid_ms)
        return self._server(url).value(query.query, headers, seconds, question.valid_ms)

    def _server(self, url: str) -> Prometheus:
        from stoker.signals.prometheus import SETTLE_SECONDS, Prometheus

        seconds = SETTLE_SECONDS if self._settle_seconds is None else self._settle_seconds
        with self._lock:
            if url not in self._prometheus:
                self._prometheus[url] = Prometheus(url, self._clock, settle_seconds=seconds)
            return self._prometheus[url]

    def _decider(self, url: str) -> DecisionServer:
        from stoker.signals.decision import DecisionServer

        with self._lock:
            if url not in self._deciders:
                self._deciders[url] = DecisionServer(url, self._clock)
            return self._deciders[url]


def _hidden(text: str, headers: Mapping[str, str]) -> str:
    """The text without any header's value: servers quote what they refuse."""
    for value in headers.values():
        for secret in (value, value.rpartition(" ")[2]):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, _HIDDEN)
    return text
