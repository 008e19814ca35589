"""How one replica is spread over GPUs and nodes: what is not said, and what does not fit.

A ModelService's spec without faults of schema comes in; sizes and problems go out. Called by
service.
"""

from __future__ import annotations

from collections.abc import Iterator

from stoker.source.places import Field
from stoker.source.problem import Problem
from stoker.source.schema_service import ModelServiceSpec

__all__ = ["parallel_sizes", "parallelism_problems"]


def parallel_sizes(spec: ModelServiceSpec) -> tuple[int, int]:
    """Tensor and pipeline size; what is not said is made to fit the GPUs of all nodes.

    Where nothing is said of a group, tensor parallel stays inside a node: links between nodes
    are slower (vLLM's guide to parallelism and scaling).
    """
    block = spec.parallelism
    if block is None:
        return spec.gpu.count, 1
    pipeline = block.pipeline or 1
    if block.tensor is not None:
        return block.tensor, pipeline
    if block.pipeline is None:
        return spec.gpu.count, block.nodes
    return max(1, spec.gpu.count * block.nodes // pipeline), pipeline


def parallelism_problems(spec: ModelServiceSpec) -> Iterator[Problem]:
    """Sizes that do not fit the GPUs, and fields that have no meaning for groups."""
    block = spec.parallelism
    if block is not None:
        tensor, pipeline = parallel_sizes(spec)
        if tensor * pipeline != spec.gpu.count * block.nodes:
            gpus = f"gpu.count is {spec.gpu.count}"
            if block.nodes > 1:
                gpus += f" on each of {block.nodes} nodes, {spec.gpu.count * block.nodes} in all"
            yield Problem(
                ("spec", "parallelism"),
                "parallelism-mismatch",
                f"tensor {tensor} times pipeline {pipeline} is {tensor * pipeline}, but {gpus}",
            )
    if block is not None and block.nodes > 1:
        for field, message, hint in _unfit(spec):
            yield Problem(field, "groups-unfit", message, hint)
    elif "group_topology" in spec.placement.model_fields_set:
        yield Problem(
            ("spec", "placement", "groupTopology"),
            "groups-unfit",
            "is for groups only, and one node is enough for a replica",
            "set parallelism.nodes above 1, or leave it out",
        )


def _unfit(spec: ModelServiceSpec) -> Iterator[tuple[Field, str, str]]:
    """Fields that ask of a group what nobody does: where, why, and what instead."""
    if spec.adopt is not None:
        yield (
            ("spec", "adopt"),
            "takes over a Deployment, and groups are LeaderWorkerSets",
            "let the service start groups of its own, then delete what served before",
        )
    if spec.placement.when_full != "Hold":
        yield (
            ("spec", "placement", "whenFull"),
            "no place is asked for without nodes: a group starts whole in one domain or not at all",
            "leave it out",
        )
    if spec.placement.reclaim != "Never":
        yield (
            ("spec", "placement", "reclaim"),
            "no room is taken from others for groups",
            "leave it out",
        )
    if spec.cache.prefetch.nodes:
        yield (
            ("spec", "cache", "prefetch", "nodes"),
            "nothing is fetched ahead for groups",
            "leave it out",
        )
