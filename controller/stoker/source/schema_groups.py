"""What files may say about replicas over several nodes: schema blocks.

Used by the schema of ModelService.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stoker.source.schema import Strict

__all__ = ["GroupTopologyBlock", "ParallelismBlock"]

_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"

Positive = Annotated[int, Field(ge=1)]


class ParallelismBlock(Strict):
    """How one replica is spread over its GPUs; tensor times pipeline is gpu.count times nodes."""

    tensor: Positive | None = None
    """Tensor parallel size; without it what `pipeline` leaves."""
    pipeline: Positive | None = None
    """Pipeline parallel size; without it 1, and `nodes` where `tensor` is not given either."""
    nodes: Annotated[int, Field(ge=1, le=64)] = 1
    """Nodes of one replica. Above 1 it is a group, of one pod a node: a LeaderWorkerSet."""


class GroupTopologyBlock(Strict):
    """What the nodes of a group have in common."""

    key: Annotated[str, Field(pattern=_LABEL_KEY, max_length=317)] = "topology.kubernetes.io/zone"
    """Label that has one value on all of them; a node without it takes no group."""
