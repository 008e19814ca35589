"""One ModelService as decide works on it: what Git says, its shape, what it asks of a node.

Made by decide, read by place, transition and scheduler_mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stoker.decide.bars import NO_BARS, Bars
from stoker.decide.booking import Need
from stoker.decide.eligible import Ask
from stoker.model.cache import CacheType
from stoker.model.fleet import Fleet, ModelService
from stoker.model.prefetch import IMAGE_URI
from stoker.model.refs import UnitRef
from stoker.model.shape import UnitShape
from stoker.model.snapshot import ServiceState

__all__ = ["Case", "canonical_image", "case_from"]


@dataclass(frozen=True, slots=True)
class Case:
    """A service that can be decided. `state` is what stands of it, `image` the whole name
    of its engine image, `bars` what starts of it that failed forbid now.
    """

    ref: UnitRef
    spec: ModelService
    shape: UnitShape
    ask: Ask
    state: ServiceState
    image: str
    bars: Bars = NO_BARS
    heats: Mapping[str, float] = field(default_factory=dict, hash=False)
    """By pod: how warm its cache is, as far as that is known and has a say in who leaves."""

    @property
    def rev(self) -> str:
        """The template hash that every replica should have."""
        return self.shape.rev

    @property
    def need(self) -> Need:
        """What one replica takes of a node, or of each node of its group."""
        return Need(self.shape.shape.requests, self.spec.gpu_resource)

    @property
    def gpus(self) -> int:
        """GPUs of one replica; of a group those of all its pods."""
        return self.need.gpus * self.spec.nodes

    @property
    def weights(self) -> tuple[str, str]:
        """Which weights it loads: uri and model revision; of weights in an image, its name."""
        cache = self.spec.cache
        if cache.type is CacheType.IMAGE:
            return IMAGE_URI, canonical_image(cache.image) if cache.image else self.image
        return self.spec.model_uri, self.spec.model_revision


def case_from(
    ref: UnitRef,
    spec: ModelService,
    shape: UnitShape,
    fleet: Fleet,
    state: ServiceState,
    heats: Mapping[str, float] | None = None,
) -> Case:
    """Put a case together. A service that lists no pools may use all of the fleet, in its order."""
    known = {pool.name: pool for pool in fleet.pools}
    names = spec.pools or tuple(known)
    ask = Ask(
        pools=tuple(known[name] for name in names if name in known),
        tolerations=shape.shape.tolerations,
        node_selector=shape.shape.node_selector,
        node_affinity=shape.shape.node_affinity,
        gpu_products=spec.gpu_products,
        gpu_min_memory_bytes=spec.gpu_min_memory_bytes,
        needs_gpus=shape.shape.requests.device(spec.gpu_resource) > 0,
        spread_key=spec.limits.spread_key,
    )
    image = canonical_image(shape.shape.image or spec.engine_image)
    return Case(ref, spec, shape, ask, state, image, heats=heats or {})


def canonical_image(image: str) -> str:
    """The whole name as nodes list it: with registry, and with either a digest or a tag.

    What a pod template leaves out stands for docker.io, library/ and :latest.
    """
    repository, _, digest = image.partition("@")
    path, slash, last = repository.rpartition("/")
    bare, _, tag = last.partition(":")
    name = f"{path}{slash}{bare}"
    first, inside, _ = name.partition("/")
    if not inside:
        name = f"docker.io/library/{name}"
    elif first != "localhost" and "." not in first and ":" not in first:
        name = f"docker.io/{name}"
    return f"{name}@{digest}" if digest else f"{name}:{tag or 'latest'}"
