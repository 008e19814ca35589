"""Ready-in from this fleet's own starts: which kind a start is, and how long that kind took.

In: the rings of the history. Out: estimates for place, which ranks nodes by them; where
fewer than five starts of a kind ended well, the prior of ready_in. Starts under way and
those of this pass queue at the sources they share. Built once a pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stoker.decide.case import Case
from stoker.decide.queues import Fetches, Queues
from stoker.decide.ready_in import (
    CONTAINER_START_MS,
    LEAST_SAMPLES,
    P90_PERCENT,
    SCHEDULE_MS,
    Facts,
    estimate,
    fetch_ms,
    ready_in_bucket,
)
from stoker.model.codec import digest
from stoker.model.fleet import CacheType
from stoker.model.plan import Readiness
from stoker.model.snapshot import Replica, ReplicaPhase
from stoker.model.start_samples import Starts, StartSample

__all__ = ["Estimates", "node_class"]

_CLASS_LABELS = ("node.kubernetes.io/instance-type", "nvidia.com/gpu.product")


def node_class(labels: Mapping[str, str]) -> str:
    """What makes nodes start alike: the instance type (disk, network, GPU), else the GPU."""
    return next((labels[label] for label in _CLASS_LABELS if labels.get(label)), "")


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is learned of one kind of start: totals ascending, and the middle of its parts."""

    totals_ms: tuple[int, ...]
    fetch_ms: int
    engine_ms: int


class Estimates:
    """What was learned, ready to be asked, and the queues of the starts that were begun."""

    def __init__(self, starts: Starts) -> None:
        self._kinds = {key: _kind(ring) for key, ring in starts.rings if len(ring) >= LEAST_SAMPLES}
        self._keys: dict[tuple[object, ...], str] = {}
        self._queues = Queues()
        longest = (kind.totals_ms[-1] for kind in self._kinds.values())
        self.longest_ms = max(longest, default=0)
        """No start that estimates are learned from took longer; 0 where none are."""

    def class_of(self, labels: Mapping[str, str]) -> str:
        """What tells nodes apart for an estimate; empty while nothing is learned."""
        return node_class(labels) if self._kinds else ""

    def of(self, case: Case, facts: Facts, labels: Mapping[str, str]) -> Readiness:
        """The estimate for a start on a node with these labels and facts, were it alone."""
        kind = self._kind(case, facts, labels)
        return estimate(case.spec, facts, kind.totals_ms if kind is not None else ())

    def next(self, case: Case, facts: Facts, labels: Mapping[str, str]) -> Readiness:
        """The same for one more start, behind all that were begun."""
        alone = self.of(case, facts, labels)
        delay_ms = self._queues.delay(self._fetches(case, facts, labels))
        if not delay_ms:
            return alone
        slow_ms = delay_ms * P90_PERCENT // 100 if alone.prior else delay_ms
        p50_ms, p90_ms = alone.p50_ms + delay_ms, alone.p90_ms + slow_ms
        return replace(alone, p50_ms=p50_ms, p90_ms=p90_ms, queued_ms=delay_ms)

    def bucket(self, case: Case, facts: Facts, labels: Mapping[str, str]) -> int:
        """The same as orders rank it."""
        return ready_in_bucket(self.next(case, facts, labels).p50_ms)

    def begin(
        self,
        case: Case,
        facts: Facts,
        labels: Mapping[str, str],
        pod: Replica | None = None,
        now_ms: int = 0,
    ) -> None:
        """Queue a start at its sources: a new one, or the rest of one whose pod stands."""
        whole = self._fetches(case, facts, labels)
        if pod is None or not pod.scheduled_ms:
            self._queues.join(whole)
            return
        self._queues.join(_rest(whole, pod, now_ms))

    def key(self, case: Case, facts: Facts, labels: Mapping[str, str]) -> str:
        """The kind of such a start: model, model revision, what it is run with, the class of
        the node, and the path (what the node holds already). 16 hex digits.
        """
        path = (facts.image, facts.weights)
        asked = (case.ref, node_class(labels), path)
        known = self._keys.get(asked)
        if known is None:
            spec = case.spec
            run = [
                spec.engine_type,
                spec.engine_version,
                case.image,
                list(spec.engine_args),
                str(spec.cuda_graphs),
                [spec.tensor_parallel, spec.pipeline_parallel, spec.gpu_count, spec.gpu_resource],
                str(spec.cache.type),
                *([spec.cache.image] if spec.cache.image else []),
                *([spec.nodes] if spec.nodes > 1 else []),
            ]
            model = [spec.model_uri, spec.model_revision]
            whole = digest([model, run, node_class(labels), list(path)])
            known = self._keys[asked] = whole[:16]
        return known

    def _kind(self, case: Case, facts: Facts, labels: Mapping[str, str]) -> _Kind | None:
        return self._kinds.get(self.key(case, facts, labels)) if self._kinds else None

    def _fetches(self, case: Case, facts: Facts, labels: Mapping[str, str]) -> Fetches:
        """What it fetches from shared sources. A fetch is never taken for longer than the part
        of a start in which it happens was found to be.
        """
        image_ms, weights_ms = fetch_ms(case.spec, facts)
        kind = self._kind(case, facts, labels)
        if kind is not None:
            image_ms, weights_ms = min(image_ms, kind.fetch_ms), min(weights_ms, kind.engine_ms)
        return Fetches(
            registry=f"image {case.image.partition('/')[0]}",
            image_ms=image_ms,
            weights_source=_weights_source(case),
            weights_ms=weights_ms,
            image_after_ms=SCHEDULE_MS,
            weights_after_ms=CONTAINER_START_MS,
        )


def _kind(ring: tuple[StartSample, ...]) -> _Kind:
    middle = (len(ring) - 1) // 2
    return _Kind(
        totals_ms=tuple(sorted(sample.total_ms for sample in ring)),
        fetch_ms=sorted(sample.fetch_ms for sample in ring)[middle],
        engine_ms=sorted(sample.engine_ms for sample in ring)[middle],
    )


def _rest(whole: Fetches, pod: Replica, now_ms: int) -> Fetches:
    """What a pod that is bound has still to fetch. While its image is pulled no weights come,
    however long that takes; where nobody knows when its engine began, both are done in turn.
    """
    image_ms, weights_ms = whole.image_ms, whole.weights_ms
    if pod.started_ms:
        image_ms, weights_ms = 0, max(0, weights_ms - (now_ms - pod.started_ms))
    else:
        gone_ms = now_ms - pod.scheduled_ms
        if pod.phase is ReplicaPhase.STARTING:
            weights_ms = max(0, weights_ms - max(0, gone_ms - image_ms))
        image_ms = max(0, image_ms - gone_ms)
    return replace(
        whole, image_ms=image_ms, weights_ms=weights_ms, image_after_ms=0, weights_after_ms=0
    )


def _weights_source(case: Case) -> str:
    """The volume that its pods share, the registry, or the hub or bucket of the weights."""
    if case.spec.cache.type is CacheType.PVC:
        return f"volume {case.ref.namespace}/{case.spec.cache.claim}"
    if case.spec.cache.type is CacheType.IMAGE:
        return f"image {case.weights[1].partition('/')[0]}"
    scheme, _, rest = case.spec.model_uri.partition("://")
    return f"weights {scheme}" if scheme == "hf" else f"weights {scheme}://{rest.split('/')[0]}"
