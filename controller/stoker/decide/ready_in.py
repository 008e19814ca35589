"""How long a start would take to serve a token on a node, in integer milliseconds.

Used by place to rank nodes and by people to read plans. Starts of this fleet tell it, once
five of the kind ended well; until then it is a prior: sizes over bandwidths and fixed parts,
each with its source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.model.cache import CacheType
from stoker.model.fleet import CudaGraphs, ModelService
from stoker.model.plan import Readiness, WarmthClass

__all__ = [
    "BUCKET_BOUNDS_MS",
    "CONTAINER_START_MS",
    "LEAST_SAMPLES",
    "P90_PERCENT",
    "PROVISION_MS",
    "SCHEDULE_MS",
    "Facts",
    "estimate",
    "fetch_ms",
    "percentile",
    "ready_in_bucket",
]

SCHEDULE_MS = 2_000
"""Nominated to Scheduled to Pulling on a node that stands. Seed 003 (EKS lab, 14:55:18 to :20)."""
CONTAINER_START_MS = 1_000
"""Pulled to Started. Seed 003 (14:59:04 to :05)."""
PROVISION_MS = 167_000
"""Nominated to Scheduled where the node has to be made. Seed 003 (14:52:31 to 14:55:18)."""
IMAGE_BYTES = 9_000_000_000
"""An engine image where its size is unknown. Seed 003: `vllm/vllm-openai` is 9 GB."""
IMAGE_BYTES_PER_SECOND = 40_000_000
"""Pull and unpack. Seed 003: 9 GB in 3m44s."""
MODEL_BYTES = 16_000_000_000
"""Weights where `model.size` is not given: 8 billion parameters of two bytes. Ours."""
DOWNLOAD_BYTES_PER_SECOND = 50_000_000
"""Weights from a hub. Seed 003: 3 GB in about a minute."""
LOCAL_BYTES_PER_SECOND = 315_000_000
"""Weights from a node's disk into the GPU. Run:ai streamer: 15 GB in 47.56 s, safetensors on gp3."""
SHARED_BYTES_PER_SECOND = 200_000_000
"""Weights from a shared volume (cache.type PVC); the same from every node. Ours."""
STREAM_BYTES_PER_SECOND = 3_000_000_000
"""Weights from object storage into the GPU (cache.type Stream). Run:ai streamer: 15 GB in 4.88 s
from S3 at 32 connections."""
ENGINE_INIT_CAPTURE_MS = 30_400
"""vLLM 0.22, 7B on an A10, with CUDA graphs: benchmarks of vllm-coldstart-operator."""
ENGINE_INIT_SKIP_MS = 8_300
"""The same with --enforce-eager."""
P90_PERCENT = 150
"""P90 over P50 of a prior. Ours, after seed 003, whose starts took 4 to 9 minutes."""

LEAST_SAMPLES = 5
"""Starts of a kind below which the prior is used (design section 4)."""

FIRST_BUCKET = -8
LAST_BUCKET = 60
SHORTEST_MS = 1_000


def _bucket_bounds() -> tuple[int, ...]:
    """The smallest integer that is at least 5000·1.25^k, exactly, for each bucket k."""
    bounds = []
    for k in range(FIRST_BUCKET, LAST_BUCKET + 1):
        over, under = (5**k, 4**k) if k >= 0 else (4**-k, 5**-k)
        bounds.append(-(-5_000 * over // under))
    return tuple(bounds)


BUCKET_BOUNDS_MS = _bucket_bounds()
"""Lower bounds of the buckets -8 to 60 (838 ms to 37 days), design section 4."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a node already holds for a start. `serving` and `warming` only name the class."""

    image: bool = False
    weights: bool = False
    serving: bool = False
    warming: bool = False


def estimate(spec: ModelService, facts: Facts, learned: Sequence[int] = ()) -> Readiness:
    """Time to Ready of one start of this service where these facts hold.

    `learned` are the milliseconds of this fleet's own starts of the kind, ascending; fewer
    than LEAST_SAMPLES of them count for nothing.

    A complete copy of the weights counts wherever the node reports one, whatever
    `cache.type` is (a podTemplate may mount it); with a shared volume, and where weights are
    streamed, no node is nearer.
    """
    told = f"image {_yes(facts.image)}, weights {_yes(facts.weights)}"
    if len(learned) >= LEAST_SAMPLES:
        return Readiness(
            warmth=_warmth(facts),
            p50_ms=percentile(learned, 50),
            p90_ms=percentile(learned, 90),
            prior=False,
            facts=told,
            samples=len(learned),
        )
    image_ms = 0 if facts.image else _transfer_ms(IMAGE_BYTES, IMAGE_BYTES_PER_SECOND)
    init_ms = (
        ENGINE_INIT_CAPTURE_MS if spec.cuda_graphs is CudaGraphs.CAPTURE else ENGINE_INIT_SKIP_MS
    )
    p50_ms = SCHEDULE_MS + image_ms + CONTAINER_START_MS + _weights_ms(spec, facts) + init_ms
    return Readiness(
        warmth=_warmth(facts),
        p50_ms=p50_ms,
        p90_ms=p50_ms * P90_PERCENT // 100,
        prior=True,
        facts=told,
    )


def fetch_ms(spec: ModelService, facts: Facts) -> tuple[int, int]:
    """Milliseconds of image and weights from sources that starts share, 0 for nothing to fetch;
    by sizes and bandwidths.
    """
    size = spec.model_size_bytes or MODEL_BYTES
    image_ms = 0 if facts.image else _transfer_ms(IMAGE_BYTES, IMAGE_BYTES_PER_SECOND)
    if spec.cache.type.is_shared:
        return image_ms, _transfer_ms(size, _source_speed(spec))
    return image_ms, 0 if facts.weights else _transfer_ms(size, _source_speed(spec))


def ready_in_bucket(p50_ms: int) -> int:
    """The k with 5 s·1.25^k <= estimate < 5 s·1.25^(k+1); less than that is noise."""
    return FIRST_BUCKET + bisect_right(BUCKET_BOUNDS_MS, max(p50_ms, SHORTEST_MS)) - 1


def percentile(ascending: Sequence[int], percent: int) -> int:
    """The smallest value that so many percent do not exceed (nearest rank)."""
    return ascending[-(-len(ascending) * percent // 100) - 1]


def _weights_ms(spec: ModelService, facts: Facts) -> int:
    size = spec.model_size_bytes or MODEL_BYTES
    if spec.cache.type.is_shared:
        return _transfer_ms(size, _source_speed(spec))
    local_ms = _transfer_ms(size, LOCAL_BYTES_PER_SECOND)
    return local_ms if facts.weights else local_ms + _transfer_ms(size, _source_speed(spec))


def _source_speed(spec: ModelService) -> int:
    """Bytes a second from where weights come that the node does not hold."""
    match spec.cache.type:
        case CacheType.PVC:
            return SHARED_BYTES_PER_SECOND
        case CacheType.STREAM:
            return STREAM_BYTES_PER_SECOND
        case CacheType.IMAGE:
            return IMAGE_BYTES_PER_SECOND
        case CacheType.NONE | CacheType.HOST_PATH:
            return DOWNLOAD_BYTES_PER_SECOND


def _transfer_ms(size_bytes: int, bytes_per_second: int) -> int:
    return size_bytes * 1_000 // bytes_per_second


def _warmth(facts: Facts) -> WarmthClass:
    if facts.serving:
        return WarmthClass.SERVING
    if facts.weights:
        return WarmthClass.WARM
    return WarmthClass.WARMING if facts.warming else WarmthClass.COLD


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"
