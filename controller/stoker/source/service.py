"""A ModelService file without faults of schema becomes a model.ModelService.

`service_problems` finds what single fields cannot show; `service_from_spec` converts and is
called only when there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stoker.model.cache import Cache, CacheType, RootDisk
from stoker.model.fleet import (
    CudaGraphs,
    Drain,
    ModelService,
    PlacementMode,
    PlacementOrder,
    SecretKey,
    WhenFull,
)
from stoker.model.inference_pool import InferencePool
from stoker.model.limits import PlacementLimits, Reclaim
from stoker.model.moves import OnNotice
from stoker.model.scaling import MetricSourceType, ScalingMode
from stoker.source.findings import did_you_mean
from stoker.source.parallelism import parallel_sizes, parallelism_problems
from stoker.source.places import Field
from stoker.source.problem import Problem
from stoker.source.scaling import scaling_problems
from stoker.source.scaling_model import scaling_of
from stoker.source.schema_moves import update_of
from stoker.source.schema_service import ModelServiceSpec

__all__ = ["Problem", "service_from_spec", "service_problems"]

_URI = re.compile(r"(?:file:///|[a-z][a-z0-9+.-]*://)[^\s/][^\s]*")
_HUGGING_FACE = re.compile(r"hf://[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def service_problems(
    spec: ModelServiceSpec,
    pools: Sequence[str] | None,
    sources: Mapping[str, MetricSourceType] | None = None,
) -> Iterator[Problem]:
    """Everything wrong across fields; `pools` and metric `sources` are the Fleet's, None when no
    Fleet is at hand.
    """
    yield from _model(spec)
    yield from _counts(spec)
    if spec.scaling is not None:
        nodes = spec.parallelism.nodes if spec.parallelism else 1
        gpus = spec.gpu.count * nodes
        yield from scaling_problems(spec.scaling, ("spec", "scaling"), sources, gpus)
    if pools is not None:
        yield from _pools(spec, pools)
    yield from _cache(spec)
    if spec.placement.mode == "Scheduler" and "update" in spec.model_fields_set:
        yield Problem(
            ("spec", "update"),
            "invalid-value",
            "has no meaning for placement.mode Scheduler, where Kubernetes does the updates",
            "leave it out; `update: null` where the fleet's defaults bring it",
        )
    if spec.adopt is not None and spec.placement.mode != "Scheduler":
        yield Problem(
            ("spec", "adopt"),
            "adopt-needs-scheduler",
            "is for placement.mode Scheduler only: in mode Nodes each node has its own Deployment",
            "set placement.mode: Scheduler",
        )
    if spec.expose.inference_pool is None and "endpoint_picker" in spec.expose.model_fields_set:
        yield Problem(
            ("spec", "expose", "endpointPicker"),
            "picker-needs-pool",
            "is for an InferencePool only, and none is asked for",
            "set expose.inferencePool",
        )
    if spec.adopt is not None and "expose" in spec.model_fields_set:
        yield Problem(
            ("spec", "expose"),
            "adopt-keeps-service",
            "no Service is rendered for an adopted workload: its pods bear labels of their own",
            "leave it out, and bring the workload's Service as a Bundle; "
            "`expose: null` where the fleet's defaults bring it",
        )


def service_from_spec(
    name: str, spec: ModelServiceSpec, raw: dict[str, Any], pools: Sequence[str]
) -> ModelService:
    """The service with every default filled in; `raw` is the spec as it was written."""
    chosen = tuple(pool.name for pool in spec.placement.pools)
    if not chosen:
        chosen = tuple(pools)
    tensor, pipeline = parallel_sizes(spec)
    token = spec.model.token_secret_ref
    cache = spec.cache
    requests = spec.resources.requests
    replicas = spec.replicas if spec.replicas is not None else 1
    template = raw.get("podTemplate")
    return ModelService(
        model_uri=spec.model.uri,
        model_revision=spec.model.revision,
        served_names=tuple(spec.model.served_names) or (name,),
        engine_image=spec.engine.image,
        gpu_count=spec.gpu.count,
        model_size_bytes=spec.model.size,
        token_secret=SecretKey(token.name, token.key) if token else None,
        engine_type=spec.engine.type,
        engine_version=spec.engine.version or "",
        engine_args=tuple(spec.engine.args),
        cuda_graphs=CudaGraphs(spec.engine.cuda_graphs),
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        nodes=spec.parallelism.nodes if spec.parallelism else 1,
        group_key=spec.placement.group_topology.key,
        gpu_resource=spec.gpu.resource_name,
        gpu_min_memory_bytes=spec.gpu.min_memory,
        gpu_products=tuple(spec.gpu.products),
        cpu_request=requests.cpu or "",
        memory_request=requests.memory or "",
        shm_bytes=spec.resources.shm,
        replicas=None if spec.scaling else replicas,
        scaling_mode=ScalingMode(spec.scaling.mode) if spec.scaling else None,
        scaling=scaling_of(spec.scaling),
        placement_mode=PlacementMode(spec.placement.mode),
        placement_order=PlacementOrder(spec.placement.order),
        signal_max_age_ms=spec.placement.signal_max_age,
        pools=chosen,
        limits=_limits(spec),
        priority=spec.priority,
        reclaim=Reclaim(spec.placement.reclaim),
        when_full=WhenFull(spec.placement.when_full),
        cache=Cache(
            CacheType(cache.type),
            cache.path or "",
            cache.claim or "",
            cache.prefetch.nodes,
            cache.image or "",
            RootDisk(cache.root_disk) if cache.root_disk else None,
            cache.max_size,
        ),
        cold_start_deadline_ms=spec.cold_start.deadline,
        drain=Drain(spec.drain.endpoint_sync, spec.drain.max, spec.drain.shutdown),
        min_ready=spec.disruption.min_ready,
        max_concurrent_moves=spec.disruption.max_concurrent_moves,
        on_notice=OnNotice(spec.disruption.on_notice),
        update=update_of(spec.update),
        service_port=spec.expose.service.port,
        inference_pool=_inference_pool(spec),
        template=spec.render.template,
        adopt=spec.adopt.name if spec.adopt else "",
        pod_template=dict(template) if isinstance(template, dict) else {},
    )


def _limits(spec: ModelServiceSpec) -> PlacementLimits:
    placement = spec.placement
    spread = placement.topology_spread
    return PlacementLimits(
        bases=tuple((pool.name, pool.base) for pool in placement.pools if pool.base),
        spot_max_percent=placement.spot.max_percent if placement.spot else None,
        spread_key=spread.key if spread else "",
        max_skew=spread.max_skew if spread else 1,
    )


def _inference_pool(spec: ModelServiceSpec) -> InferencePool | None:
    name, picker = spec.expose.inference_pool, spec.expose.endpoint_picker
    if name is None:
        return None
    return InferencePool(name, picker.service or f"{name}-epp", picker.port, picker.failure_mode)


def _model(spec: ModelServiceSpec) -> Iterator[Problem]:
    uri = spec.model.uri
    if not _URI.fullmatch(uri):
        guess = f"did you mean hf://{uri}?" if _HUGGING_FACE.fullmatch(f"hf://{uri}") else ""
        yield Problem(
            ("spec", "model", "uri"),
            "invalid-model-uri",
            f"{uri[:60]!r} needs a scheme, as in hf://organisation/name",
            guess,
        )
    elif uri.startswith("hf://"):
        if not _HUGGING_FACE.fullmatch(uri):
            yield Problem(
                ("spec", "model", "uri"),
                "invalid-model-uri",
                f"{uri[:60]!r} is not hf://organisation/name",
            )
        if not _COMMIT.fullmatch(spec.model.revision):
            yield Problem(
                ("spec", "model", "revision"),
                "invalid-model-revision",
                f"{spec.model.revision[:60]!r} is not a commit of 40 hex digits",
                "a branch would change weights without a commit here",
            )
    names = spec.model.served_names
    for index, name in enumerate(names):
        if name in names[:index]:
            where = ("spec", "model", "servedNames", index)
            yield Problem(where, "invalid-value", f"{name!r} is named twice")


def _counts(spec: ModelServiceSpec) -> Iterator[Problem]:
    if spec.replicas is not None and spec.scaling is not None:
        yield Problem(
            ("spec", "replicas"),
            "replicas-and-scaling",
            "either this or scaling, not both",
            "delete one of them",
        )
    yield from parallelism_problems(spec)
    if spec.cold_start.deadline < 1000:
        yield Problem(("spec", "coldStart", "deadline"), "invalid-value", "must be at least 1s")


def _pools(spec: ModelServiceSpec, pools: Sequence[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, pool in enumerate(spec.placement.pools):
        where = ("spec", "placement", "pools", index, "name")
        if pool.name not in pools:
            known = did_you_mean(pool.name, pools) or (
                f"the Fleet has {', '.join(pools)}" if pools else "the Fleet has no pools"
            )
            yield Problem(where, "unknown-pool", f"the Fleet has no pool {pool.name!r}", known)
        elif pool.name in seen:
            yield Problem(where, "duplicate-pool", f"{pool.name!r} is named twice")
        seen.add(pool.name)
    if spec.placement.mode == "Scheduler":
        for name in _of_nodes_only(spec):
            yield Problem(
                ("spec", "placement", *name),
                "invalid-value",
                "has no meaning for placement.mode Scheduler, which leaves nodes to Kubernetes",
            )
    if spec.placement.mode == "Nodes" and not pools and not spec.placement.pools:
        yield Problem(
            ("spec", "placement"),
            "pools-missing",
            "mode Nodes needs a pool, and the Fleet has none",
            "add spec.pools to the Fleet file",
        )


def _of_nodes_only(spec: ModelServiceSpec) -> Iterator[Field]:
    """Fields of placement that say something and concern single nodes."""
    placement = spec.placement
    if placement.order != "ReadyPoolPack":
        yield ("order",)
    yield from (("pools", n, "base") for n, pool in enumerate(placement.pools) if pool.base)
    if placement.spot is not None:
        yield ("spot",)
    if placement.topology_spread is not None:
        yield ("topologySpread",)
    if placement.reclaim != "Never":
        yield ("reclaim",)
    if placement.when_full != "Hold":
        yield ("whenFull",)


def _cache(spec: ModelServiceSpec) -> Iterator[Problem]:
    if spec.cache.prefetch.nodes and spec.placement.mode == "Scheduler":
        yield Problem(
            ("spec", "cache", "prefetch", "nodes"),
            "invalid-value",
            "has no meaning for placement.mode Scheduler, which leaves nodes to Kubernetes",
        )
    kind = spec.cache.type
    needs = {"HostPath": "path", "PVC": "claim"}.get(kind)
    for name, spelled, kinds in _CACHE_FIELDS:
        given = getattr(spec.cache, name) is not None
        where = ("spec", "cache", spelled)
        if name == needs and not given:
            yield Problem(where, "field-missing", f"is required for cache.type {kind}")
        elif given and kind not in kinds:
            yield Problem(where, "invalid-value", f"has no meaning for cache.type {kind}")
        elif name == "path" and ".." in str(spec.cache.path).split("/"):
            yield Problem(where, "invalid-value", "leads upwards (`..`): name the folder itself")
    schemes = _CACHE_SCHEMES.get(kind)
    if schemes and not spec.model.uri.startswith(schemes):
        yield Problem(
            ("spec", "cache", "type"),
            "invalid-value",
            f"{kind} needs a model.uri that begins with {' or '.join(schemes)}",
        )


_CACHE_FIELDS = (
    ("path", "path", {"HostPath"}),
    ("claim", "claim", {"PVC"}),
    ("image", "image", {"Image"}),
    ("max_size", "maxSize", {"HostPath"}),
    ("root_disk", "rootDisk", {"HostPath"}),
)
"""Fields of cache: name, as it is spelled, and the types that it has a meaning for."""
_CACHE_SCHEMES = {"Stream": ("s3://", "gs://", "az://"), "Image": ("file:///",)}
"""What the Run:ai streamer of vLLM reads without a copy on the node; where an image is mounted."""
