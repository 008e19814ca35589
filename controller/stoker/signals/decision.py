"""The count of a decision server (semantics.md 1.2, Custom provider; seed 001).

In: an address, headers and whose decision it is. Out: the count as a Sample, or Unmeasurable with
one reason; never raises. The answer is matched, not trusted: schema, service and count must be
exactly what was asked for. Used by signals.sources on worker threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import BoundedSemaphore
from typing import Any

from stoker.model.ports import Clock
from stoker.model.readings import Reading, Sample, Unmeasurable
from stoker.model.scaling import DecisionQuery
from stoker.signals.transport import FAILURES, Transport, Whole, failure_of

__all__ = ["API_VERSION", "DecisionServer", "count_of"]

API_VERSION = "llmscaling.inference.x-k8s.io/v1alpha1"
"""The only schema that is understood: a later one may mean something else by `replicas`."""
TOO_MANY = 1_000_000_000
"""No count of replicas; a server that says so is wrong (issue D, bad input)."""
MOST_QUESTIONS = 6
"""To one server at once; one that hangs takes no other server's workers."""


class DecisionServer:
    """One server. Callable from several threads."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url.rstrip("/")
        self._clock = clock
        self._free = BoundedSemaphore(MOST_QUESTIONS)

    def count(
        self,
        query: DecisionQuery,
        headers: Mapping[str, str],
        timeout_seconds: float,
        valid_ms: int,
    ) -> Reading:
        """How many replicas the service should have, absolute, zero included."""
        if not self._free.acquire(blocking=False):
            why = f"{MOST_QUESTIONS} earlier questions have no answer yet"
            return Unmeasurable("unreachable", why, self._clock.now_ms())
        try:
            answer = self._ask(query, headers, timeout_seconds)
        finally:
            self._free.release()
        if isinstance(answer, Unmeasurable):
            return answer
        return count_of(answer, query, self._clock.now_ms(), valid_ms)

    def _ask(
        self, query: DecisionQuery, headers: Mapping[str, str], timeout_seconds: float
    ) -> Whole | Unmeasurable:
        transport = Transport(self._clock)
        try:
            return transport.request(
                "GET",
                f"{self._url}/{query.path.lstrip('/')}",
                params={"serviceId": query.service_id},
                headers=headers,
                timeout=timeout_seconds,
            )
        except FAILURES as error:
            why = failure_of(error, timeout_seconds).why
            return Unmeasurable("unreachable", why, self._clock.now_ms())
        finally:
            transport.close()


def count_of(answer: Whole, query: DecisionQuery, now_ms: int, valid_ms: int) -> Reading:
    """The count in an answer, or why it has none that may be used."""

    def no(code: str, why: str) -> Unmeasurable:
        return Unmeasurable(code, why, now_ms)

    if answer.status_code != 200:
        return no("refused", f"HTTP {answer.status_code}")
    try:
        document: Any = answer.json()
    except ValueError:
        return no("refused", "the answer is no JSON")
    if not isinstance(document, dict):
        return no("refused", "the answer is no JSON object")
    version = document.get("apiVersion")
    if version != API_VERSION:
        return no("refused", f"apiVersion {_shown(version)} is not {API_VERSION}")
    decisions = document.get("decisions")
    found = [
        each
        for each in (decisions if isinstance(decisions, list) else [])
        if isinstance(each, dict) and _is_meant(each, query)
    ]
    whose = f"serviceId {query.service_id}"
    if query.namespace:
        whose += f" in namespace {query.namespace}"
    if not found:
        return no("no-match", f"no decision for {whose}")
    if len(found) > 1:
        return no("many-values", f"{len(found)} decisions for {whose}")
    replicas = found[0].get("replicas")
    active = replicas.get("active") if isinstance(replicas, dict) else None
    if active is None:
        return no("missing", "the decision has no replicas.active")
    if type(active) is not int:
        return no("not-a-number", f"replicas.active is {_shown(active)}, not an integer")
    if active < 0:
        return no("negative", f"replicas.active is {_shown(active)}")
    if active >= TOO_MANY:
        return no("not-a-number", f"replicas.active is {_shown(active)}, no count of replicas")
    return Sample(float(active), now_ms, valid_ms, unit="replicas")


def _is_meant(decision: dict[str, Any], query: DecisionQuery) -> bool:
    same = decision.get("serviceId") == query.service_id
    return same and (not query.namespace or decision.get("namespace") == query.namespace)


def _shown(value: Any) -> str:
    """A value of a stranger, short enough for a condition."""
    try:
        return repr(value)[:60]
    except ValueError:
        return "an integer of thousands of digits"
