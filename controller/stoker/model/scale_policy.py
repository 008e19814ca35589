"""Counts of a workload that this repository does not render: the ScalePolicy file.

Made by source. Only the workload's `scale` subresource is ever written, so it can create nothing
and takes over nothing else (design section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.refs import ObjectRef
from stoker.model.scaling import Scaling

__all__ = ["ScalePolicy"]


@dataclass(frozen=True, slots=True)
class ScalePolicy:
    """`target` is in the policy's own namespace, with the version that the file names.

    `gpus_per_replica` None: what its pods ask for. `priority` as that of a ModelService: who has
    GPUs first where a budget runs out.
    """

    target: ObjectRef
    scaling: Scaling
    priority: int = 0
    gpus_per_replica: int | None = None
