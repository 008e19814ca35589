"""The ScalePolicy file: its schema. policy.py checks across fields and converts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stoker.source.schema import ApiVersion, Line, Strict, UnitMetadata
from stoker.source.schema_flow import FlowSpec
from stoker.source.schema_scaling import ScalingBlock

__all__ = ["ScalePolicyFile", "ScalePolicySpec"]

_OBJECT_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_KIND = r"^[A-Z][A-Za-z0-9]*$"


class TargetBlock(Strict):
    """A workload with a `scale` subresource, in the policy's own namespace."""

    api_version: Annotated[Line, Field(max_length=317)]
    """For instance apps/v1 or leaderworkerset.x-k8s.io/v1."""
    kind: Annotated[str, Field(pattern=_KIND, max_length=63)]
    """Deployment, StatefulSet, LeaderWorkerSet or any other that has the subresource."""
    name: Annotated[str, Field(pattern=_OBJECT_NAME, max_length=253)]
    """Its name."""


class ScalePolicySpec(FlowSpec):
    """What the policy is."""

    target: TargetBlock
    """The workload whose count is decided; nothing else of it is touched."""
    scaling: ScalingBlock
    """What the count follows."""
    priority: Annotated[int, Field(ge=-1_000_000_000, le=1_000_000_000)] = 0
    """Of two that want the last GPUs of a budget the higher one has them."""
    gpus_per_replica: Annotated[int, Field(ge=0, le=4096)] | None = None
    """GPUs of one replica; without it what its pods ask for."""


class ScalePolicyFile(Strict):
    """The count of a workload that this repository does not render."""

    api_version: ApiVersion
    """Always stoker.dev/v1alpha1."""
    kind: Literal["ScalePolicy"]
    """Always ScalePolicy."""
    metadata: UnitMetadata
    """Name and namespace."""
    spec: ScalePolicySpec
    """What the policy is."""
