"""The metrics pages of a service's pods, and what two looks at one pod are.

In: pods and the names wanted of their pages. Out: a `Look` a pod, with the page before where it
is of the same run of the same pod. Made by signals.reader, which keeps one `Scraper`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from stoker.engine.load import MAX_PAGE_BYTES
from stoker.engine.page import Samples, counting_names, samples_of
from stoker.engine.series import Series, went_back
from stoker.engine.spellings import spellings
from stoker.fetch import Answer, NoAnswer, fetch
from stoker.model.ports import Clock
from stoker.model.readings import PodTarget

__all__ = ["ENGINE_METRICS", "Look", "Scraped", "Scraper", "scraped_from"]

REQUEST_SECONDS = 2.0
"""Bound of one pod's answer (semantics.md 1.1, Reporter)."""

_COUNTERS = (
    "vllm:prompt_tokens_total",
    "vllm:prompt_tokens_cached_total",
    "vllm:prefix_cache_hits_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
    "vllm:request_prompt_tokens_sum",
    "vllm:request_prompt_tokens_count",
    "vllm:request_generation_tokens_sum",
    "vllm:request_generation_tokens_count",
)
_START = "process_start_time_seconds"
ENGINE_METRICS = (
    *_COUNTERS,
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "http_requests_total",
    _START,
)
"""What is read of every engine, whatever the service follows (semantics.md 1.11)."""


@dataclass(frozen=True, slots=True)
class Scraped:
    """One page of one pod: samples and counters by whole name, as the page spells them.

    `at_seconds` is monotonic, so that a step of the wall clock makes no rate.
    """

    at_ms: int
    at_seconds: float
    samples: Samples = field(default_factory=dict)
    counters: frozenset[str] = frozenset()

    def name_of(self, metric: str) -> str:
        """How this page spells a metric; empty where it has none of it."""
        return next((name for name in spellings(metric) if self.samples.get(name)), "")

    def series(self, metric: str) -> Series | None:
        """The series of a metric under the first of its names that is there."""
        return self.samples.get(self.name_of(metric))


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of one pod now. `after` None: it gave nothing this time, and `why` says why.

    `before` None: the first look at it, or its engine started anew since.
    """

    pod: PodTarget
    before: Scraped | None = None
    after: Scraped | None = None
    why: str = ""

    @property
    def seconds(self) -> float:
        """Between the two looks; 0 without both."""
        if self.before is None or self.after is None:
            return 0.0
        return max(0.0, self.after.at_seconds - self.before.at_seconds)


class Scraper:
    """Asks pods, and remembers the last page of each run of a pod by its UID.

    `scrape` may be called on several threads, the others on one alone.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pages: dict[str, Scraped] = {}

    def scrape(
        self, url: str, names: Collection[str], timeout_seconds: float
    ) -> Scraped | NoAnswer:
        """Ask for one page; never raises."""
        seconds = min(REQUEST_SECONDS, timeout_seconds)
        answer = fetch(url, seconds, most_bytes=MAX_PAGE_BYTES)
        if not isinstance(answer, Answer):
            return answer
        if answer.status != 200:
            return NoAnswer(f"HTTP {answer.status}")
        page = scraped_from(answer.text, names, self._clock.now_ms(), self._clock.monotonic())
        return page if page.samples else NoAnswer("its page has none of the metrics asked for")

    def look(self, pod: PodTarget, found: Scraped | NoAnswer, longest_seconds: float) -> Look:
        """Join a page to the one before it, and remember it.

        A page that is older than `longest_seconds` is not joined to: what happened since was
        not seen. A pod without an answer keeps the page it has.
        """
        if isinstance(found, NoAnswer):
            return Look(pod, why=found.why)
        before = self._pages.get(pod.uid)
        self._pages[pod.uid] = found
        if before is None or _started_anew(before, found):
            return Look(pod, after=found)
        if not 0 < found.at_seconds - before.at_seconds <= longest_seconds:
            return Look(pod, after=found)
        return Look(pod, before, found)

    def keep(self, uids: Collection[str]) -> None:
        """Forget all other pods."""
        self._pages = {uid: page for uid, page in self._pages.items() if uid in uids}


def scraped_from(text: str, names: Collection[str], at_ms: int, at_seconds: float) -> Scraped:
    """The samples of a page under any spelling of the names; never raises."""
    wanted = {spelling for name in names for spelling in spellings(name)}
    samples = samples_of(text, wanted)
    return Scraped(at_ms, at_seconds, samples, counting_names(text, samples))


def _started_anew(before: Scraped, after: Scraped) -> bool:
    """Whether another run of the engine counts now: one counter that went back is enough, for
    the others may have overtaken what they were.
    """
    if before.series(_START) != after.series(_START):
        return True
    for name in _COUNTERS:
        old, new = before.series(name), after.series(name)
        if old and new and went_back(old, new):
            return True
    return False
