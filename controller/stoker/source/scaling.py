"""A scaling block becomes a model.Scaling; what is wrong across its fields is told first.

`scaling_problems` finds what single fields cannot show, each at its field; `scaling_of` converts
and is called only when there is none. Used for ModelServices and ScalePolicies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stoker.decide.cron import parse, zone_of
from stoker.errors import Severity
from stoker.model.scaling import MetricSourceType, ScalingMode
from stoker.source.findings import did_you_mean
from stoker.source.places import Field
from stoker.source.problem import Problem
from stoker.source.scaling_queries import (
    Asked,
    load_problems,
    metric_problems,
    named_sources,
    wake_problems,
)
from stoker.source.schema_scaling import ScalingBlock, ScheduledBlock

__all__ = ["scaling_problems"]

SHORTEST_MS = 1_000
LONGEST_SCHEDULED_MS = 31 * 86_400_000
_TIMES = ("interval", "drain_window", "blind_for")
_OF_CAPACITY = ("load", "slo", "capacity", "headroom_percent", "drain_window")
"""Fields that the rule Ratio does not read."""


def scaling_problems(
    block: ScalingBlock,
    at: Field,
    sources: Mapping[str, MetricSourceType] | None,
    gpus: int | None = None,
) -> Iterator[Problem]:
    """Everything wrong across the fields of the block at `at`, in the order of the schema.

    `sources` are the Fleet's, None when no Fleet is at hand; `gpus` those of one replica, None
    when that is not known.
    """
    if ScalingMode(block.mode) is ScalingMode.EXTERNAL:
        yield from _beside_external(block, at)
        return
    yield from _bounds(block, at)
    yield from _budget(block, at, gpus)
    yield from _times(block, at)
    yield from _algorithm(block, at)
    if block.load is not None:
        yield from load_problems(block.load, (*at, "load"))
    yield from metric_problems(block.metrics, (*at, "metrics"))
    yield from _zero(block, at)
    yield from _scheduled(block, at)
    if sources is not None:
        yield from _sources(named_sources(block, at), sources)


def _beside_external(block: ScalingBlock, at: Field) -> Iterator[Problem]:
    for name in sorted(block.model_fields_set - {"mode"}):
        yield Problem(
            (*at, _spelled(block, name)),
            "scaling-external",
            "has no meaning for mode External, where somebody else owns the count",
            "delete it, or set mode: Stoker",
        )


def _bounds(block: ScalingBlock, at: Field) -> Iterator[Problem]:
    if block.max_replicas is None:
        yield Problem(
            (*at, "maxReplicas"),
            "field-missing",
            "is required for mode Stoker: no signal may buy without an end",
            "write the most replicas that you would pay for",
        )
    elif block.min_replicas > block.max_replicas:
        message = f"is {block.min_replicas}, above maxReplicas {block.max_replicas}"
        yield Problem(
            (*at, "minReplicas"), "min-above-max", message, "lower it, or raise maxReplicas"
        )


def _budget(block: ScalingBlock, at: Field, gpus: int | None) -> Iterator[Problem]:
    least = max([block.min_replicas, *(entry.min_replicas or 0 for entry in block.scheduled)])
    if block.max_gpus is None or gpus is None or block.max_gpus >= least * gpus:
        return
    message = (
        f"is {block.max_gpus}, but {least} replicas of {gpus} GPUs are the least that is wanted"
    )
    hint = f"raise it to {least * gpus}, or lower minReplicas"
    yield Problem((*at, "maxGPUs"), "budget-below-min", message, hint)


def _times(block: ScalingBlock, at: Field) -> Iterator[Problem]:
    for name in _TIMES:
        value = getattr(block, name)
        if value is not None and value < SHORTEST_MS:
            yield Problem((*at, _spelled(block, name)), "invalid-value", "must be at least 1s")
    for name in ("ttft_p95", "itl_p95"):
        if getattr(block.slo, name) == 0:
            where = (*at, "slo", _spelled(block.slo, name))
            yield Problem(where, "invalid-value", "must be above zero")


def _algorithm(block: ScalingBlock, at: Field) -> Iterator[Problem]:
    if block.algorithm == "Ratio":
        if not block.metrics:
            yield Problem(
                (*at, "metrics"),
                "field-missing",
                "is required for algorithm Ratio, which follows nothing else",
                "name a metric with its targetPerReplica",
            )
        for name in _OF_CAPACITY:
            if name in block.model_fields_set:
                yield Problem(
                    (*at, _spelled(block, name)),
                    "invalid-value",
                    "has no meaning for algorithm Ratio",
                    "delete it, or use algorithm: Capacity",
                )
    if block.scale_down.deletion_cost is not None and block.scale_down.behavior == "None":
        yield Problem(
            (*at, "scaleDown", "deletionCost"),
            "invalid-value",
            "has no meaning for behavior None, which leaves the order to Kubernetes",
            "delete it, or use behavior: CacheAware",
        )


def _zero(block: ScalingBlock, at: Field) -> Iterator[Problem]:
    zero = block.scale_to_zero
    here: Field = (*at, "scaleToZero")
    never = zero.policy == "Never"
    least = _least(block)
    if never and block.min_replicas == 0 and _by_its_metrics(block):
        yield from _zero_of_ratio(block, at)
    elif never and least:
        where, name = least
        yield Problem(
            (*at, *where),
            "zero-without-policy",
            f"{name} is 0, and scaleToZero.policy Never keeps one replica",
            "set it to 1, or scaleToZero.policy to AfterIdle or BreakEven",
        )
    if not never and block.min_replicas > 0:
        yield Problem(
            (*here, "policy"),
            "policy-without-zero",
            f"is {zero.policy}, but minReplicas {block.min_replicas} never lets the last one go",
            "set minReplicas: 0, or policy: Never",
        )
    if not never and not zero.wake:
        yield Problem(
            here,
            "zero-without-wake",
            "has nothing that wakes: at zero no replica is there to be asked, and the service "
            "would stay away for ever",
            "name a gateway's queue, a decision server, a router's metric or a schedule in wake",
        )
    if zero.policy == "BreakEven" and zero.breach_cost is None:
        yield Problem(
            (*here, "breachCost"),
            "field-missing",
            "is required for policy BreakEven: without it standing idle never pays",
            'write what one client that had to wait costs, for instance "2"',
        )
    if zero.policy == "AfterIdle" and zero.breach_cost is not None:
        yield Problem((*here, "breachCost"), "invalid-value", "has no meaning for policy AfterIdle")
    waking = {entry.name for entry in block.scheduled if entry.min_replicas}
    yield from wake_problems(zero.wake, (*here, "wake"), waking)
    if not never:
        yield from _short_holds(block, here)


def _by_its_metrics(block: ScalingBlock) -> bool:
    """Whether the seed's rule is left alone with zero: no word of scaleToZero (decision 46)."""
    return block.algorithm == "Ratio" and "scale_to_zero" not in block.model_fields_set


def _zero_of_ratio(block: ScalingBlock, at: Field) -> Iterator[Problem]:
    """LLMScaler's zero: the metrics themselves wake, if anything answers them without a replica."""
    if all(metric.scrape and metric.scrape.source is None for metric in block.metrics):
        yield Problem(
            (*at, "minReplicas"),
            "zero-without-wake",
            "is 0, and at zero no replica is there to be scraped: it would stay away for ever",
            "set it to 1, or follow a metric of a gateway, a Prometheus or a decision server",
        )
        return
    yield Problem(
        (*at, "minReplicas"),
        "nothing-holds",
        "is 0 and nothing says how long a request waits meanwhile: the first clients get an "
        "error, until a start is done",
        "say so with scaleToZero, or set it to 1",
        Severity.WARNING,
    )


def _least(block: ScalingBlock) -> tuple[Field, str] | None:
    """Which field asks for zero, and how it is called."""
    if block.min_replicas == 0:
        return ("minReplicas",), "minReplicas"
    for index, entry in enumerate(block.scheduled):
        if entry.min_replicas == 0:
            return ("scheduled", index, "minReplicas"), f"minReplicas of {entry.name}"
    return None


def _short_holds(block: ScalingBlock, at: Field) -> Iterator[Problem]:
    """Wake sources that hold nothing. How long a start takes here is learned: check compares."""
    for index, entry in enumerate(block.scale_to_zero.wake):
        if entry.scheduled is None and entry.hold == 0:
            yield Problem(
                (*at, "wake", index, "hold"),
                "nothing-holds",
                "is 0s: while no replica stands the first clients get an error, until a start "
                "is done",
                "let the gateway queue them for longer than a start takes, and write that time",
                Severity.WARNING,
            )


def _scheduled(block: ScalingBlock, at: Field) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(block.scheduled):
        here: Field = (*at, "scheduled", index)
        if entry.name in seen:
            message = f"two entries are named {entry.name!r}"
            yield Problem((*here, "name"), "duplicate-metric", message, "rename one of them")
        seen.add(entry.name)
        yield from _recurring(entry, here)
        yield from _scheduled_bounds(block, entry, here)


def _recurring(entry: ScheduledBlock, at: Field) -> Iterator[Problem]:
    try:
        parse(entry.schedule)
    except ValueError as error:
        hint = "for instance 0 8 * * 1-5"
        yield Problem((*at, "schedule"), "invalid-schedule", str(error), hint)
    try:
        zone_of(entry.time_zone)
    except ValueError as error:
        hint = "for instance Europe/Berlin"
        yield Problem((*at, "timeZone"), "unknown-time-zone", str(error), hint)
    if not 60_000 <= entry.duration <= LONGEST_SCHEDULED_MS:
        message = "must be from 1m to 744h (31 days)"
        yield Problem((*at, "duration"), "invalid-value", message)


def _scheduled_bounds(block: ScalingBlock, entry: ScheduledBlock, at: Field) -> Iterator[Problem]:
    """The bounds that hold meanwhile, its own where it names them, must leave a count."""
    if entry.min_replicas is None and entry.max_replicas is None:
        message = "changes neither minReplicas nor maxReplicas"
        yield Problem(at, "field-missing", message, "name at least one of them")
        return
    low = block.min_replicas if entry.min_replicas is None else entry.min_replicas
    high = block.max_replicas if entry.max_replicas is None else entry.max_replicas
    if high is not None and low > high:
        own = "minReplicas" if entry.min_replicas is not None else "maxReplicas"
        message = f"leaves no count: at least {low} and at most {high} meanwhile"
        hint = "a bound that it does not name is that of scaling itself"
        yield Problem((*at, own), "min-above-max", message, hint)


def _sources(asked: Iterable[Asked], sources: Mapping[str, MetricSourceType]) -> Iterator[Problem]:
    for field, name, kind in asked:
        if name not in sources:
            known = did_you_mean(name, sources) or (
                f"the Fleet has {', '.join(sorted(sources))}"
                if sources
                else "the Fleet has none: add it to spec.metricSources of the Fleet file"
            )
            message = f"the Fleet has no metric source {name!r}"
            yield Problem(field, "unknown-metric-source", message, known)
        elif sources[name] is not kind:
            message = f"{name!r} is a {sources[name]} server, and a {kind} server is asked here"
            fitting = ", ".join(sorted(n for n, found in sources.items() if found is kind))
            hint = f"the Fleet has {fitting}" if fitting else "add one to the Fleet file"
            yield Problem(field, "metric-source-type", message, hint)


def _spelled(block: object, name: str) -> str:
    """A field as files spell it."""
    alias = type(block).model_fields[name].alias  # type: ignore[attr-defined]
    return str(alias or name)
