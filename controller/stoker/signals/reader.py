"""The port Signals: reads what is asked of services, all at once and within a time.

In: asks. Out: ServiceReadings in the same order; never raises for one that fails. Pods are
scraped and sources asked side by side by bounded workers; everything made of the answers is
pure. Called by signals.poller, and by commands that read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from stoker.fetch import NoAnswer
from stoker.model.ports import Clock
from stoker.model.readings import (
    EngineReading,
    PodTarget,
    Reading,
    ServiceReadings,
    SignalAsk,
    Unmeasurable,
)
from stoker.model.scaling import Aggregate, MetricQuery, ScrapeQuery
from stoker.signals.aggregate import aggregated
from stoker.signals.engine_reading import engine_reading
from stoker.signals.offered import offered
from stoker.signals.questions import (
    Covered,
    Page,
    Question,
    pages_of,
    queries_of,
    question_of,
    router_of,
    valid_ms,
)
from stoker.signals.scrape import Look, Scraped, Scraper
from stoker.signals.sources import Answer, Headers, Sources
from stoker.signals.workers import Workers

__all__ = ["SignalReader"]

MOST_SCRAPES = 16
MOST_QUESTIONS = 16
"""Connections at once; a scrape takes milliseconds, so that a thousand pods are a second."""
COVERED_AFTER_MS = 120_000
"""A pod that has been Ready for as long is found and scraped by every Prometheus with the
defaults of discovery and scrapes; before, its absence says nothing."""
_LATE = NoAnswer("no answer in time")


@dataclass(frozen=True, slots=True)
class _Heard:
    """Everything that was asked for in one read. What is absent was not asked."""

    now_ms: int
    looks: Mapping[str, Look]
    answers: Mapping[Question, Answer]


class SignalReader:
    """Remembers the last page of every pod, so rates are known from the second read on.

    `read` is called on one thread at a time.
    """

    def __init__(
        self, clock: Clock, headers: Headers, *, settle_seconds: float | None = None
    ) -> None:
        self._clock = clock
        self._scraper = Scraper(clock)
        self._sources = Sources(clock, headers, settle_seconds=settle_seconds)
        self._scrapes = Workers(MOST_SCRAPES, "signals-scrape")
        self._questions = Workers(MOST_QUESTIONS, "signals-ask")

    def read(
        self, asks: tuple[SignalAsk, ...], deadline_seconds: float
    ) -> tuple[ServiceReadings, ...]:
        """Readings within that time; what did not come by then is Unmeasurable."""
        due = self._clock.monotonic() + deadline_seconds
        heard = self._hear(asks, due)
        return tuple(_readings(ask, heard) for ask in asks)

    def keep(self, asks: tuple[SignalAsk, ...]) -> None:
        """Forget the pages of all pods that are asked for no more."""
        self._scraper.keep({page.target.uid for ask in asks for page in pages_of(ask)})

    def close(self) -> None:
        """End the workers and close idle connections."""
        self._scrapes.close()
        self._questions.close()
        self._sources.close()

    def _hear(self, asks: tuple[SignalAsk, ...], due: float) -> _Heard:
        pages = _pages(asks)
        now_ms = self._clock.now_ms()
        questions = tuple(
            dict.fromkeys(each for ask in asks for each in _questions_of(ask, now_ms))
        )
        scrapes = self._scrapes.begin([self._scrape(page, due) for page, _ in pages])
        others = self._questions.begin([self._question(each, due) for each in questions])
        answers = {}
        for question, answer in zip(questions, others.results(self._left(due)), strict=True):
            late = Unmeasurable("unreachable", _LATE.why, self._clock.now_ms())
            answers[question] = late if answer is None else answer
        looks = {}
        found = scrapes.results(self._left(due))
        for (page, longest), scraped in zip(pages, found, strict=True):
            given = _LATE if scraped is None else scraped
            looks[page.target.uid] = self._scraper.look(page.target, given, longest)
        return _Heard(self._clock.now_ms(), looks, answers)

    def _scrape(self, page: Page, due: float) -> Callable[[], Scraped | NoAnswer]:
        def act() -> Scraped | NoAnswer:
            left = self._left(due)
            return self._scraper.scrape(page.url, page.names, left) if left > 0 else _LATE

        return act

    def _question(self, question: Question, due: float) -> Callable[[], Answer]:
        def act() -> Answer:
            left = self._left(due)
            if left > 0:
                return self._sources.answer(question, left)
            return Unmeasurable("unreachable", _LATE.why, self._clock.now_ms())

        return act

    def _left(self, due: float) -> float:
        return due - self._clock.monotonic()


def _pages(asks: tuple[SignalAsk, ...]) -> list[tuple[Page, float]]:
    """Every page once, with how long ago the look before may have been, in seconds."""
    found: dict[str, tuple[Page, float]] = {}
    for ask in asks:
        for page in pages_of(ask):
            uid = page.target.uid
            names = page.names
            if uid in found:  # two scalers of one workload
                names = tuple(dict.fromkeys((*found[uid][0].names, *names)))
            found[uid] = (replace(page, names=names), valid_ms(ask) / 1000)
    return list(found.values())


def _questions_of(ask: SignalAsk, now_ms: int) -> list[Question]:
    found: list[Question | Unmeasurable] = []
    for query in queries_of(ask):
        if not isinstance(query, ScrapeQuery):
            found.append(question_of(ask, query, now_ms))
    costs = ask.scaling.scale_down.deletion_cost
    if costs is not None:
        found.append(question_of(ask, costs, now_ms, by_pod=True))
    return [each for each in found if isinstance(each, Question)]


def _readings(ask: SignalAsk, heard: _Heard) -> ServiceReadings:
    looks = [_look(pod, heard) for pod in ask.pods]
    scaling = ask.scaling
    load = scaling.load
    if isinstance(load, ScrapeQuery):  # what is offered is offered to all of them together
        load = replace(load, aggregate=Aggregate.SUM)
    asked = None if load is None else _reading(ask, load, looks, heard)
    return ServiceReadings(
        ref=ask.ref,
        metrics=tuple(
            (metric.name, _reading(ask, metric.query, looks, heard)) for metric in scaling.metrics
        ),
        engines=_engines(looks),
        load=offered(asked, looks, heard.now_ms, valid_ms(ask)),
        wake=tuple(
            (wake.name, _reading(ask, wake.query, looks, heard))
            for wake in scaling.scale_to_zero.wake
            if wake.query is not None
        ),
        deletion_costs=_costs(ask, heard),
    )


def _look(pod: PodTarget, heard: _Heard) -> Look:
    return heard.looks.get(pod.uid) or Look(pod, why="its address is not known")


def _engines(looks: list[Look]) -> tuple[EngineReading, ...]:
    found = [reading for look in looks if (reading := engine_reading(look)) is not None]
    return tuple(sorted(found, key=lambda reading: reading.pod))


def _reading(ask: SignalAsk, query: MetricQuery, looks: list[Look], heard: _Heard) -> Reading:
    if isinstance(query, ScrapeQuery):
        if not query.source:
            return aggregated(query, looks, heard.now_ms, valid_ms(ask))
        router = router_of(ask, query)
        if router is None:
            why = f"the fleet has no page to scrape called {query.source}"
            return Unmeasurable("missing", why, heard.now_ms)
        return aggregated(query, [_look(router, heard)], heard.now_ms, valid_ms(ask))
    question = question_of(ask, query, heard.now_ms)
    if isinstance(question, Unmeasurable):
        return question
    answer = heard.answers[question]
    assert not isinstance(answer, Mapping)
    return _covered(ask, answer, heard.now_ms) if isinstance(answer, Covered) else answer


def _covered(ask: SignalAsk, answer: Covered, now_ms: int) -> Reading:
    """The value, unless a Ready pod that Prometheus has had time to find is not scraped: a sum
    over the others is too low. Where it scrapes none of them at all, their metrics come another
    way.
    """
    for pod in ask.pods if answer.ups else ():
        is_known = now_ms - pod.ready_ms >= COVERED_AFTER_MS
        if pod.ready and is_known and not answer.ups.get(pod.name):
            why = f"Prometheus does not scrape pod {pod.name}, so that it would be left out"
            return Unmeasurable("missing", why, now_ms)
    return answer.reading


def _costs(ask: SignalAsk, heard: _Heard) -> tuple[tuple[str, float], ...]:
    """The values of the service's own pods; none where the query failed, whatever its reason."""
    query = ask.scaling.scale_down.deletion_cost
    if query is None:
        return ()
    question = question_of(ask, query, heard.now_ms, by_pod=True)
    answer = heard.answers.get(question) if isinstance(question, Question) else None
    if not isinstance(answer, Mapping):
        return ()
    return tuple(sorted((pod.name, answer[pod.name]) for pod in ask.pods if pod.name in answer))
