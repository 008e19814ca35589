"""Fetching image and weights to a node before a replica starts there: one Job each.

Live ones are part of the Snapshot, decided ones of a ServiceDecision. A Job that stands is
never changed: it goes on, or it is over and deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stoker.model.cache import CacheType
from stoker.model.fleet import ModelService
from stoker.model.refs import UnitRef

__all__ = ["IMAGE_URI", "LivePrefetch", "Prefetch", "PrefetchState", "weights_ahead"]


IMAGE_URI = "image"
"""Stands for the uri of weights that are in an image; their revision is its reference."""


class PrefetchState(StrEnum):
    """How far a prefetch is."""

    RUNNING = "Running"
    DONE = "Done"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class LivePrefetch:
    """One Job of ours that is not being deleted. `since_ms`: in this state since then.

    `model_uri` and `model_revision` are empty where it fetches the image only.
    """

    unit: UnitRef
    name: str
    uid: str
    node: str
    node_uid: str
    image: str
    model_uri: str = ""
    model_revision: str = ""
    state: PrefetchState = PrefetchState.RUNNING
    since_ms: int = 0

    @property
    def weights(self) -> tuple[str, str] | None:
        """Which weights it fetches; None for the image only."""
        return (self.model_uri, self.model_revision) if self.model_uri else None


@dataclass(frozen=True, slots=True)
class Prefetch:
    """One decided prefetch. `state` None: it is to be made now. `over` says why a Job that
    stands is deleted; empty for one that stays.
    """

    name: str
    node: str
    node_uid: str
    state: PrefetchState | None = None
    over: str = ""


def weights_ahead(spec: ModelService) -> tuple[str, str] | None:
    """Uri and revision of what can be brought to a node beside the engine's image: weights of
    the hub to a folder of the node, or the image that holds them (`image` and its reference).
    """
    cache = spec.cache
    if cache.type is CacheType.IMAGE and cache.image:
        return (IMAGE_URI, cache.image)
    if cache.type is CacheType.HOST_PATH and spec.model_uri.startswith("hf://"):
        return (spec.model_uri, spec.model_revision)
    return None
