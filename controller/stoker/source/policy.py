"""A ScalePolicy file without faults of schema becomes a model.ScalePolicy.

`policy_problems` finds what single fields cannot show; `policy_from_spec` converts and is
called only when there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stoker.model.refs import ObjectRef
from stoker.model.scale_policy import ScalePolicy
from stoker.model.scaling import MetricSourceType
from stoker.source.problem import Problem
from stoker.source.scaling import scaling_problems
from stoker.source.scaling_model import scaling_of
from stoker.source.schema_policy import ScalePolicySpec

__all__ = ["policy_from_spec", "policy_problems", "target_of"]

_PODS_MAKERS = {
    ("apps", "DaemonSet"): "it has no count: every node that fits has one",
    ("apps", "ReplicaSet"): "its Deployment owns its count",
    ("batch", "Job"): "a job ends; it serves nobody",
}


def policy_problems(
    spec: ScalePolicySpec, sources: Mapping[str, MetricSourceType] | None
) -> Iterator[Problem]:
    """Everything wrong across fields; `sources` are the Fleet's, None when no Fleet is at hand."""
    group = _group(spec)
    why = _PODS_MAKERS.get((group, spec.target.kind))
    if why is not None:
        where = ("spec", "target", "kind")
        hint = "name the workload that people scale"
        yield Problem(where, "invalid-value", f"{spec.target.kind} cannot be scaled: {why}", hint)
    if spec.scaling.mode == "External":
        yield Problem(
            ("spec", "scaling", "mode"),
            "invalid-value",
            "has no meaning for a ScalePolicy, which is there to own a count",
            "delete the policy, or `suspend: true` for a while",
        )
        return
    gpus = spec.gpus_per_replica
    yield from scaling_problems(spec.scaling, ("spec", "scaling"), sources, gpus)


def target_of(spec: ScalePolicySpec, namespace: str) -> ObjectRef:
    """The workload whose count the policy owns."""
    version = spec.target.api_version.rpartition("/")[2]
    return ObjectRef(_group(spec), spec.target.kind, namespace, spec.target.name, version)


def policy_from_spec(spec: ScalePolicySpec, namespace: str) -> ScalePolicy:
    """The policy with every default filled in."""
    scaling = scaling_of(spec.scaling)
    assert scaling is not None
    return ScalePolicy(
        target=target_of(spec, namespace),
        scaling=scaling,
        priority=spec.priority,
        gpus_per_replica=spec.gpus_per_replica,
    )


def _group(spec: ScalePolicySpec) -> str:
    return spec.target.api_version.rpartition("/")[0]
