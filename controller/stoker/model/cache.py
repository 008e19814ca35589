"""Where weights are kept between starts, as the file of a ModelService says it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Cache", "CacheType"]


class CacheType(StrEnum):
    """Where weights are kept between starts."""

    NONE = "None"
    HOST_PATH = "HostPath"
    PVC = "PVC"


@dataclass(frozen=True, slots=True)
class Cache:
    """The weights cache. `path` is for HostPath, `claim` for PVC."""

    type: CacheType = CacheType.NONE
    path: str = ""
    claim: str = ""
    prefetch_nodes: int = 0
    """On how many further nodes image and weights are fetched ahead of a start."""
