"""Ready-in from this fleet's own starts: which kind a start is, and how long that kind took.

In: the rings of the history. Out: estimates for place, which ranks nodes by them; where
fewer than five starts of a kind ended well, the prior of ready_in. Built once a pass.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.decide.case import Case
from stoker.decide.ready_in import LEAST_SAMPLES, Facts, estimate, ready_in_bucket
from stoker.model.codec import digest
from stoker.model.plan import Readiness
from stoker.model.start_samples import Starts

__all__ = ["Estimates", "node_class"]

_CLASS_LABELS = ("node.kubernetes.io/instance-type", "nvidia.com/gpu.product")


def node_class(labels: Mapping[str, str]) -> str:
    """What makes nodes start alike: the instance type (disk, network, GPU), else the GPU."""
    return next((labels[label] for label in _CLASS_LABELS if labels.get(label)), "")


class Estimates:
    """What was learned, ready to be asked. Reads only."""

    def __init__(self, starts: Starts) -> None:
        self._totals = {
            key: tuple(sorted(sample.total_ms for sample in ring))
            for key, ring in starts.rings
            if len(ring) >= LEAST_SAMPLES
        }
        self._keys: dict[tuple[object, ...], str] = {}

    def class_of(self, labels: Mapping[str, str]) -> str:
        """What tells nodes apart for an estimate; empty while nothing is learned."""
        return node_class(labels) if self._totals else ""

    def of(self, case: Case, facts: Facts, labels: Mapping[str, str]) -> Readiness:
        """The estimate for a start of the service on a node with these labels and facts."""
        learned = self._totals.get(self.key(case, facts, labels), ()) if self._totals else ()
        return estimate(case.spec, facts, learned)

    def bucket(self, case: Case, facts: Facts, labels: Mapping[str, str]) -> int:
        """The same as orders rank it."""
        return ready_in_bucket(self.of(case, facts, labels).p50_ms)

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
            ]
            model = [spec.model_uri, spec.model_revision]
            whole = digest([model, run, node_class(labels), list(path)])
            known = self._keys[asked] = whole[:16]
        return known
