"""What a replica asks of a node, read from its neutral pod template by render.shape."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.fleet import Requirement
from stoker.model.refs import UnitRef

__all__ = ["PodShape", "Resources", "Toleration", "UnitShape"]


@dataclass(frozen=True, slots=True)
class Resources:
    """Amounts of node resources, as integers.

    `extended` is sorted by name and holds whole devices (`nvidia.com/gpu`).
    """

    cpu_millis: int = 0
    memory_bytes: int = 0
    pods: int = 0
    extended: tuple[tuple[str, int], ...] = ()

    def device(self, name: str) -> int:
        """How many of an extended resource, 0 if it is not named."""
        return dict(self.extended).get(name, 0)

    def plus(self, other: Resources, times: int = 1) -> Resources:
        """The sum with `times` of the other; may go below zero."""
        devices = dict(self.extended)
        for name, count in other.extended:
            devices[name] = devices.get(name, 0) + times * count
        return Resources(
            cpu_millis=self.cpu_millis + times * other.cpu_millis,
            memory_bytes=self.memory_bytes + times * other.memory_bytes,
            pods=self.pods + times * other.pods,
            extended=tuple(sorted(devices.items())),
        )

    def most(self, other: Resources) -> Resources:
        """The larger amount of each."""
        names = sorted({name for name, _ in (*self.extended, *other.extended)})
        return Resources(
            cpu_millis=max(self.cpu_millis, other.cpu_millis),
            memory_bytes=max(self.memory_bytes, other.memory_bytes),
            pods=max(self.pods, other.pods),
            extended=tuple((name, max(self.device(name), other.device(name))) for name in names),
        )

    def holds(self, other: Resources) -> bool:
        """Whether every amount of the other fits into this one."""
        return (
            other.cpu_millis <= self.cpu_millis
            and other.memory_bytes <= self.memory_bytes
            and other.pods <= self.pods
            and all(count <= self.device(name) for name, count in other.extended if count > 0)
        )


@dataclass(frozen=True, slots=True, order=True)
class Toleration:
    """A pod's toleration, empty strings for absent parts, as Kubernetes matches it."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class PodShape:
    """Everything about a pod that decides where it can run.

    `requests` count all containers (the larger of init and main), runtime overhead
    and one pod. `zones` and `node_names`, when not None, are the only ones its volumes
    allow. `node_selector` and `node_affinity` (any term of which must match in full)
    come from the user's podTemplate.
    """

    requests: Resources
    tolerations: tuple[Toleration, ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    node_affinity: tuple[tuple[Requirement, ...], ...] = ()
    priority_class: str = ""
    image: str = ""


@dataclass(frozen=True, slots=True)
class UnitShape:
    """The shape of one ModelService, and the hash of its neutral pod template.

    `rev` is 8 hex digits. `held_back_digest` covers labels and annotations of the
    template, which never restart a pod by themselves.
    """

    ref: UnitRef
    rev: str
    shape: PodShape
