"""A scaling block without problems becomes the model.Scaling that decide and signals read."""

from __future__ import annotations

from stoker.model.scaling import (
    Aggregate,
    Algorithm,
    CapacityPrior,
    DecisionQuery,
    Metric,
    MetricQuery,
    MetricValue,
    PrometheusQuery,
    ScaleDown,
    ScaleDownBehavior,
    ScaleToZero,
    Scaling,
    ScheduledBounds,
    ScrapeQuery,
    Slo,
    WakeSource,
    ZeroPolicy,
)
from stoker.source.schema_scaling import (
    DecisionBlock,
    LoadBlock,
    MetricBlock,
    ScaleDownBlock,
    ScaleToZeroBlock,
    ScalingBlock,
    ScheduledBlock,
    ScrapeBlock,
    SourceQueryBlock,
    WakeBlock,
)

__all__ = ["scaling_of"]


def scaling_of(block: ScalingBlock | None) -> Scaling | None:
    """What the block says, with every default filled in; None where Stoker decides no count."""
    if block is None or block.mode == "External" or block.max_replicas is None:
        return None
    prior = block.capacity
    return Scaling(
        min_replicas=block.min_replicas,
        max_replicas=block.max_replicas,
        algorithm=Algorithm(block.algorithm),
        interval_ms=block.interval,
        metrics=tuple(_metric(metric) for metric in block.metrics),
        load=_load(block.load) if block.load else None,
        slo=Slo(block.slo.ttft_p95, block.slo.itl_p95),
        capacity=CapacityPrior(
            float(prior.prefill_tokens_per_second), float(prior.decode_tokens_per_second)
        )
        if prior
        else None,
        headroom_percent=block.headroom_percent,
        drain_window_ms=block.drain_window,
        blind_for_ms=block.blind_for,
        scale_down=_scale_down(block.scale_down),
        scale_to_zero=_scale_to_zero(block.scale_to_zero),
        scheduled=tuple(_scheduled(entry) for entry in block.scheduled),
        max_gpus=block.max_gpus,
    )


def _metric(block: MetricBlock) -> Metric:
    query: MetricQuery
    if block.scrape is not None:
        query = _scrape(block.scrape)
    elif block.prometheus is not None:
        query = _prometheus(block.prometheus)
    else:
        assert block.decision is not None
        query = _decision(block.decision)
    return Metric(block.name, query, block.target_per_replica, MetricValue(block.value))


def _load(block: LoadBlock) -> PrometheusQuery | ScrapeQuery:
    if block.scrape is not None:
        return _scrape(block.scrape)
    assert block.source is not None
    assert block.query is not None
    return PrometheusQuery(block.source, block.query)


def _scrape(block: ScrapeBlock) -> ScrapeQuery:
    return ScrapeQuery(block.metric, Aggregate(block.aggregate), block.source or "")


def _prometheus(block: SourceQueryBlock) -> PrometheusQuery:
    return PrometheusQuery(block.source, block.query)


def _decision(block: DecisionBlock) -> DecisionQuery:
    return DecisionQuery(block.source, block.service_id, block.namespace or "", block.path)


def _wake(block: WakeBlock) -> WakeSource:
    query: MetricQuery | None = None
    if block.scrape is not None:
        query = _scrape(block.scrape)
    elif block.prometheus is not None:
        query = _prometheus(block.prometheus)
    elif block.decision is not None:
        query = _decision(block.decision)
    return WakeSource(block.name, query, block.hold or 0)


def _scale_down(block: ScaleDownBlock) -> ScaleDown:
    cost = block.deletion_cost
    return ScaleDown(
        window_ms=block.stabilization_window,
        max_step=block.max_step,
        behavior=ScaleDownBehavior(block.behavior),
        deletion_cost=_prometheus(cost) if cost else None,
    )


def _scale_to_zero(block: ScaleToZeroBlock) -> ScaleToZero:
    return ScaleToZero(
        policy=ZeroPolicy(block.policy),
        idle_ms=block.idle,
        breach_cost=block.breach_cost or 0.0,
        wake=tuple(_wake(entry) for entry in block.wake),
    )


def _scheduled(block: ScheduledBlock) -> ScheduledBounds:
    return ScheduledBounds(
        name=block.name,
        schedule=block.schedule,
        duration_ms=block.duration,
        time_zone=block.time_zone,
        min_replicas=block.min_replicas,
        max_replicas=block.max_replicas,
    )
