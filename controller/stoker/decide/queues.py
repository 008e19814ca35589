"""Starts that share one source queue behind each other: a registry, a hub, a shared volume.

In: what each start has to fetch from where, in the order in which starts begin. Out: how
much later than alone one more start would be Ready. A source serves one start after the
other, at the bandwidth of the estimate. Used by estimates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stoker.decide.case import Case
from stoker.decide.slots import Standing, slots_of
from stoker.model.refs import UnitRef
from stoker.model.snapshot import Replica

__all__ = ["Fetches", "Queues", "starts_under_way"]


@dataclass(frozen=True, slots=True)
class Fetches:
    """What a start fetches: first its image, then its weights; 0 ms is nothing.

    `image_after_ms` passes before it asks for the image, `weights_after_ms` between the image
    and the weights.
    """

    registry: str
    image_ms: int
    weights_source: str
    weights_ms: int
    image_after_ms: int = 0
    weights_after_ms: int = 0


class Queues:
    """When each source is free again, in milliseconds from now."""

    def __init__(self) -> None:
        self._free_at_ms: dict[str, int] = {}

    def delay(self, start: Fetches) -> int:
        """How much later it ends its fetches, for those that joined before it."""
        alone_ms = start.image_after_ms + start.image_ms + start.weights_after_ms + start.weights_ms
        return self._times(start)[1] - alone_ms

    def join(self, start: Fetches) -> None:
        """Queue a start; later ones wait for what it fetches."""
        image_ends_ms, weights_end_ms = self._times(start)
        if start.image_ms:
            self._free_at_ms[start.registry] = image_ends_ms
        if start.weights_ms:
            self._free_at_ms[start.weights_source] = weights_end_ms

    def _times(self, start: Fetches) -> tuple[int, int]:
        """When image and weights are there."""
        now_ms = start.image_after_ms
        if start.image_ms:
            now_ms = max(now_ms, self._free_at_ms.get(start.registry, 0)) + start.image_ms
        image_ends_ms = now_ms
        now_ms += start.weights_after_ms
        if start.weights_ms:
            now_ms = max(now_ms, self._free_at_ms.get(start.weights_source, 0)) + start.weights_ms
        return image_ends_ms, now_ms


def starts_under_way(cases: Iterable[Case]) -> list[tuple[Case, str, Replica | None]]:
    """Replicas that are not Ready and not stuck, with their node, those begun first in front;
    a pod that does not stand yet comes last.
    """
    found = [
        (case, slot.node, slot.pod)
        for case in cases
        for placement in case.state.placements
        if placement.replicas != placement.ready or len(placement.pods) != placement.replicas
        for slot in slots_of(placement)
        if slot.standing is Standing.WARMING
    ]
    return sorted(found, key=_begun)


def _begun(start: tuple[Case, str, Replica | None]) -> tuple[bool, int, UnitRef, str, str]:
    case, node, pod = start
    name = pod.name if pod is not None else ""
    return pod is None, pod.created_ms if pod is not None else 0, case.ref, node, name
