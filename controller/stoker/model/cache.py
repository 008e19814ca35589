"""Where weights are kept between starts, as the file of a ModelService says it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Cache", "CacheType", "RootDisk"]


class CacheType(StrEnum):
    """Where weights are kept between starts."""

    NONE = "None"
    HOST_PATH = "HostPath"
    PVC = "PVC"
    STREAM = "Stream"
    IMAGE = "Image"

    @property
    def is_shared(self) -> bool:
        """Whether weights are equally near from every node: no node keeps any."""
        return self in {CacheType.PVC, CacheType.STREAM}


class RootDisk(StrEnum):
    """Whether the folder of a HostPath may lie on the disk that the kubelet itself uses."""

    REFUSE = "Refuse"
    ALLOW = "Allow"


@dataclass(frozen=True, slots=True)
class Cache:
    """The weights cache. `path` is for HostPath, `claim` for PVC.

    `image` is for Image: what is mounted where model.uri points; empty: the weights are in
    the engine's own image. `root_disk` and `max_size_bytes` are None where the file is silent.
    """

    type: CacheType = CacheType.NONE
    path: str = ""
    claim: str = ""
    prefetch_nodes: int = 0
    """On how many further nodes image and weights are fetched ahead of a start."""
    image: str = ""
    root_disk: RootDisk | None = None
    max_size_bytes: int | None = None
    """Bound of all weights in the folder, kept by the node's reporter."""

    @property
    def refuses_root_disk(self) -> bool:
        """Whether weights may not come to the root disk: as the file says, and where it bounds
        the folder. A file that says neither is as it was before there were these fields.
        """
        if self.root_disk is None:
            return self.max_size_bytes is not None
        return self.root_disk is RootDisk.REFUSE
