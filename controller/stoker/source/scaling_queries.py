"""What a scaling block asks, and of whom: checks of metrics and wake sources, and their sources.

Blocks come in, problems and the sources they name go out. Called by scaling and scaling_model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeAlias

from stoker.model.scaling import MetricSourceType
from stoker.source.places import Field
from stoker.source.problem import Problem
from stoker.source.schema_scaling import (
    LoadBlock,
    MetricBlock,
    ScalingBlock,
    ScrapeBlock,
    WakeBlock,
)

__all__ = ["Asked", "load_problems", "metric_problems", "named_sources", "wake_problems"]

Asked: TypeAlias = tuple[Field, str, MetricSourceType]
"""A field that names a source, the name, and what must answer there."""

_QUERIES = ("scrape", "prometheus", "decision")


def load_problems(load: LoadBlock, at: Field) -> Iterator[Problem]:
    """Arrivals come from one query of one source, or from one scrape."""
    asked = [name for name in ("source", "query") if getattr(load, name) is not None]
    if load.scrape is not None and not asked:
        return
    if load.scrape is None and len(asked) == len(("source", "query")):
        return
    message = "needs source and query, or scrape alone"
    yield Problem(at, "metric-query", message, "for instance {source: main, query: ...}")


def metric_problems(metrics: Sequence[MetricBlock], at: Field) -> Iterator[Problem]:
    """Everything wrong with the metrics of a block."""
    seen: set[str] = set()
    for index, metric in enumerate(metrics):
        here: Field = (*at, index)
        if metric.name in seen:
            message = f"two metrics are named {metric.name!r}"
            yield Problem((*here, "name"), "duplicate-metric", message, "rename one of them")
        seen.add(metric.name)
        yield from _one_of(metric, _QUERIES, here)
        if metric.decision is None:
            if metric.target_per_replica is None and _given(metric, _QUERIES):
                yield Problem(
                    (*here, "targetPerReplica"),
                    "metric-without-target",
                    "is required: a value alone says nothing of a count",
                    'write what one replica should have, in quotes: "4"',
                )
            continue
        for name in ("target_per_replica", "value"):
            if name in metric.model_fields_set:
                yield Problem(
                    (*here, "targetPerReplica" if name == "target_per_replica" else name),
                    "target-of-decision",
                    "has no meaning for a decision server, whose answer is a count of replicas",
                    "delete it",
                )


def wake_problems(
    wake: Sequence[WakeBlock], at: Field, waking: Collection[str]
) -> Iterator[Problem]:
    """Everything wrong with wake sources; `waking` are scheduled entries that start a replica."""
    seen: set[str] = set()
    for index, entry in enumerate(wake):
        here: Field = (*at, index)
        if entry.name in seen:
            message = f"two wake sources are named {entry.name!r}"
            yield Problem((*here, "name"), "duplicate-metric", message, "rename one of them")
        seen.add(entry.name)
        yield from _one_of(entry, (*_QUERIES, "scheduled"), here)
        if entry.scrape is not None and entry.scrape.source is None:
            yield Problem(
                (*here, "scrape", "source"),
                "field-missing",
                "is required: at zero there is no replica to ask",
                "name a router's or gateway's page of the Fleet's metricSources",
            )
        if entry.scheduled is None:
            if entry.hold is None and _given(entry, _QUERIES):
                yield Problem(
                    (*here, "hold"),
                    "field-missing",
                    "is required: it decides what the first client gets while a replica starts",
                    "write how long the gateway queues a request, 0s where nothing does",
                )
            continue
        if entry.hold is not None:
            yield Problem((*here, "hold"), "invalid-value", "has no meaning for a schedule")
        if entry.scheduled not in waking:
            message = f"no entry of scheduled with minReplicas above 0 is named {entry.scheduled!r}"
            yield Problem((*here, "scheduled"), "invalid-value", message)


def named_sources(block: ScalingBlock, at: Field) -> Iterator[Asked]:
    """Every field of a block that names a source, in the order of the schema."""
    prometheus, decision = MetricSourceType.PROMETHEUS, MetricSourceType.DECISION
    if block.load is not None:
        if block.load.source is not None:
            yield (*at, "load", "source"), block.load.source, prometheus
        yield from _page(block.load.scrape, (*at, "load"))
    lists: tuple[tuple[Field, Sequence[MetricBlock | WakeBlock]], ...] = (
        (("metrics",), block.metrics),
        (("scaleToZero", "wake"), block.scale_to_zero.wake),
    )
    for below, entries in lists:
        for index, entry in enumerate(entries):
            here: Field = (*at, *below, index)
            yield from _page(entry.scrape, here)
            if entry.prometheus is not None:
                yield (*here, "prometheus", "source"), entry.prometheus.source, prometheus
            if entry.decision is not None:
                yield (*here, "decision", "source"), entry.decision.source, decision
    cost = block.scale_down.deletion_cost
    if cost is not None:
        yield (*at, "scaleDown", "deletionCost", "source"), cost.source, prometheus


def _one_of(entry: MetricBlock | WakeBlock, names: Sequence[str], at: Field) -> Iterator[Problem]:
    given = _given(entry, names)
    if len(given) != 1:
        said = f"{' and '.join(given)} given" if given else "none given"
        wanted = f"{', '.join(names[:-1])} and {names[-1]}"
        message = f"needs exactly one of {wanted}, {said}"
        yield Problem(at, "metric-query", message, "make an entry of each" if given else "")


def _given(entry: MetricBlock | WakeBlock, names: Sequence[str]) -> list[str]:
    return [name for name in names if getattr(entry, name) is not None]


def _page(scrape: ScrapeBlock | None, at: Field) -> Iterator[Asked]:
    if scrape is not None and scrape.source is not None:
        yield (*at, "scrape", "source"), scrape.source, MetricSourceType.SCRAPE
