"""Pages, looks and asks of signals that show only what a test is about.

The default pod is `qwen-0`, Ready for long; two looks at it lie ten seconds apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from builders import NOW_MS, a_ref
from stoker.model.readings import PodTarget, SignalAsk
from stoker.model.scaling import Aggregate, Metric, MetricQuery, Scaling, ScrapeQuery
from stoker.signals.aggregate import names_wanted
from stoker.signals.scrape import ENGINE_METRICS, Look, Scraped, Scraper, scraped_from

WINDOW_SECONDS = 10.0
VALID_MS = 50_000
LABELS = 'engine="0",model_name="m"'


def a_page(
    *,
    running: float = 0,
    waiting: float = 0,
    kv: float = 0,
    prompts: float = 0,
    cached: float | None = 0,
    generated: float = 0,
    finished: float = 0,
    more: str = "",
) -> str:
    """A page of one engine, text 0.0.4. `cached` None: it knows of no cache."""
    values = {
        "num_requests_running": running,
        "num_requests_waiting": waiting,
        "kv_cache_usage_perc": kv,
        "prompt_tokens_total": prompts,
        "generation_tokens_total": generated,
    }
    if cached is not None:
        values["prefix_cache_hits_total"] = cached
    lines = [f"vllm:{name}{{{LABELS}}} {value}" for name, value in values.items()]
    lines.append(f'vllm:request_success_total{{{LABELS},finished_reason="stop"}} {finished}')
    return "\n".join([*lines, more, ""])


def a_pod(name: str = "qwen-0", *, ready: bool = True, **more: Any) -> PodTarget:
    given = {"uid": f"uid-{name}", "address": "", "ready_ms": 0, **more}
    return PodTarget(name=name, ready=ready, **given)


def scraped(page: str, *names: str, at_seconds: float = WINDOW_SECONDS) -> Scraped:
    wanted = [each for name in names for each in names_wanted(ScrapeQuery(name))]
    at_ms = NOW_MS + round(at_seconds * 1000)
    return scraped_from(page, [*ENGINE_METRICS, *wanted], at_ms, at_seconds)


def a_look(before: str | None, after: str, *names: str, pod: PodTarget | None = None) -> Look:
    """Two pages of one pod; `before` None: it was never seen before."""
    target = pod or a_pod()
    scraper = Scraper(cast("Any", None))
    if before is not None:
        scraper.look(target, scraped(before, *names, at_seconds=0), 60)
    return scraper.look(target, scraped(after, *names), 60)


def a_scaling(
    metrics: Mapping[str, MetricQuery] | None = None, *, interval_ms: int = 15_000, **more: Any
) -> Scaling:
    named = tuple(Metric(name, query, 1.0) for name, query in (metrics or {}).items())
    return Scaling(min_replicas=1, max_replicas=9, interval_ms=interval_ms, metrics=named, **more)


def an_ask(
    scaling: Scaling | None = None, *pods: PodTarget, name: str = "qwen", **more: Any
) -> SignalAsk:
    names = "|".join(pod.name for pod in pods if pod.ready)
    selector = f'namespace="llm",pod=~"{names}"' if names else ""
    given = {"selector": selector, **more}
    return SignalAsk(a_ref(name), scaling or a_scaling(), pods, **given)


def scrape(metric: str, aggregate: str = "avg", source: str = "") -> ScrapeQuery:
    return ScrapeQuery(metric, Aggregate(aggregate), source)
