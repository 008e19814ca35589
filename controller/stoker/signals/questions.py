"""What has to be asked for a service, once however often its file names it. Pure.

In: a SignalAsk. Out: questions for sources, and the pages to scrape with the names wanted of
them. Used by signals.reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stoker.model.readings import PodTarget, Reading, SignalAsk, Unmeasurable
from stoker.model.scaling import (
    DecisionQuery,
    MetricQuery,
    MetricSource,
    MetricSourceType,
    PrometheusQuery,
    ScrapeQuery,
)
from stoker.signals.aggregate import names_wanted
from stoker.signals.scrape import ENGINE_METRICS

__all__ = [
    "Covered",
    "Page",
    "Question",
    "pages_of",
    "queries_of",
    "question_of",
    "router_of",
    "valid_ms",
]

PODS = "$pods"
_MISSED_ROUNDS = 3
_SLACK_MS = 5_000


@dataclass(frozen=True, slots=True)
class Question:
    """One for a server. `by_pod`: PromQL that gives a value a pod. `covers` selects the pods that
    one value is about; empty where it is not about `$pods`.
    """

    source: MetricSource
    query: PrometheusQuery | DecisionQuery
    valid_ms: int
    by_pod: bool = False
    covers: str = ""


@dataclass(frozen=True, slots=True)
class Covered:
    """A value about pods, and by pod whether Prometheus scraped it (1) or failed to (0)."""

    reading: Reading
    ups: Mapping[str, float] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Page:
    """A metrics page and the metrics wanted of it, in the order of the file."""

    url: str
    target: PodTarget
    names: tuple[str, ...]


def valid_ms(ask: SignalAsk) -> int:
    """How long what is measured of a service may be used: three rounds may fail."""
    return _MISSED_ROUNDS * ask.scaling.interval_ms + _SLACK_MS


def queries_of(ask: SignalAsk) -> Iterator[MetricQuery]:
    """All queries that give one value, in the order of the file."""
    for metric in ask.scaling.metrics:
        yield metric.query
    if ask.scaling.load is not None:
        yield ask.scaling.load
    for wake in ask.scaling.scale_to_zero.wake:
        if wake.query is not None:
            yield wake.query


def question_of(
    ask: SignalAsk,
    query: PrometheusQuery | DecisionQuery,
    now_ms: int,
    *,
    by_pod: bool = False,
) -> Question | Unmeasurable:
    """The question for a query; Unmeasurable where it cannot be asked."""
    source = next((each for each in ask.sources if each.name == query.source), None)
    if source is None:
        return Unmeasurable("missing", f"the fleet has no metric source {query.source}", now_ms)
    if isinstance(query, DecisionQuery):
        return Question(source, query, valid_ms(ask))
    if PODS in query.query and not ask.selector:
        return Unmeasurable("missing", f"no pod is Ready, so {PODS} stands for nothing", now_ms)
    expanded = PrometheusQuery(query.source, query.query.replace(PODS, ask.selector))
    covers = ask.selector if PODS in query.query and not by_pod else ""
    return Question(source, expanded, valid_ms(ask), by_pod, covers)


def pages_of(ask: SignalAsk) -> tuple[Page, ...]:
    """The pages of all pods with an address, and those of other sources that a query names."""
    scraped = [query for query in queries_of(ask) if isinstance(query, ScrapeQuery)]
    names = [*ENGINE_METRICS]
    for query in scraped:
        if not query.source:
            names += names_wanted(query)
    wanted = tuple(dict.fromkeys(names))
    pages = {
        pod.uid: Page(f"http://{pod.address}/metrics", pod, wanted)
        for pod in ask.pods
        if pod.address
    }
    for query in scraped:
        router = router_of(ask, query)
        if router is not None:
            pages[router.uid] = Page(router.address, router, names_wanted(query))
    return tuple(pages.values())


def router_of(ask: SignalAsk, query: ScrapeQuery) -> PodTarget | None:
    """What stands for the pod where a query names a source; None without one of that name.

    Known by service and metric as well, since each looks at a page at times of its own.
    """
    for source in ask.sources:
        if source.name == query.source and source.type is MetricSourceType.SCRAPE:
            return PodTarget(
                name=source.name,
                uid=f"{ask.ref} {source.url} {query.metric}",
                address=source.url,
                ready=True,
            )
    return None
