"""Free room per node: what this plan may still give away. Built once a pass, used by place.

Free = allocatable - what bound pods request - for each own Deployment the pods it still
lacks, on the node decided for it - what this plan has placed so far. A write of ours that
the watch has not shown yet is therefore never given away twice. Deployments of mode
Scheduler lack pods on no node in particular: nothing is booked for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stoker.decide.slots import slots_of
from stoker.model.refs import UnitRef
from stoker.model.shape import Resources, UnitShape
from stoker.model.snapshot import LivePlacement, Node, ServiceState

__all__ = ["Need", "Room", "book_missing_pods", "misfit"]


@dataclass(frozen=True, slots=True)
class Need:
    """What one replica takes of a node, and which of its devices are the GPUs."""

    requests: Resources
    gpu_resource: str

    @property
    def gpus(self) -> int:
        """GPUs of one replica, as its pod asks for them."""
        return self.requests.device(self.gpu_resource)


class Room:
    """What is free on one node; may be below zero on an overbooked one."""

    __slots__ = ("cpu_millis", "devices", "memory_bytes", "pods")

    def __init__(self, node: Node) -> None:
        free = node.allocatable.plus(node.used, -1)
        self.cpu_millis = free.cpu_millis
        self.memory_bytes = free.memory_bytes
        self.pods = free.pods
        self.devices = dict(free.extended)

    def device(self, name: str) -> int:
        """How many of an extended resource are free; 0 where the node has none."""
        return self.devices.get(name, 0)

    def take(self, requests: Resources, times: int = 1) -> None:
        """Book `times` pods; a negative number gives them back."""
        self.cpu_millis -= times * requests.cpu_millis
        self.memory_bytes -= times * requests.memory_bytes
        self.pods -= times * requests.pods
        for name, count in requests.extended:
            self.devices[name] = self.devices.get(name, 0) - times * count

    def close(self) -> None:
        """Give nothing away here any more."""
        self.cpu_millis = self.memory_bytes = self.pods = 0
        self.devices = {}


def misfit(room: Room, need: Need) -> str:
    """The first resource that a pod lacks there, by rule name; empty when it fits."""
    requests = need.requests
    for name, count in requests.extended:
        if count > 0 and room.device(name) < count:
            return "gpus" if name == need.gpu_resource else "devices"
    if requests.cpu_millis > room.cpu_millis:
        return "cpu"
    if requests.memory_bytes > room.memory_bytes:
        return "memory"
    return "pods" if requests.pods > room.pods else ""


def book_missing_pods(
    rooms: Mapping[str, Room],
    services: Iterable[ServiceState],
    shapes: Mapping[UnitRef, UnitShape],
) -> None:
    """Take room for each pod that an own Deployment asks for and that is not yet bound.

    Where neither the live template's requests nor the service's shape are known, the node
    is closed: unknown is not zero.
    """
    for service in services:
        shape = shapes.get(service.ref)
        for placement in service.placements:
            lacking = [node for slot in slots_of(placement) for node in slot.lacking]
            requests = _requests(placement, shape) if lacking else None
            for node in lacking:
                if (room := rooms.get(node)) is None:
                    continue
                if requests is None:
                    room.close()
                else:
                    room.take(requests)


def _requests(placement: LivePlacement, shape: UnitShape | None) -> Resources | None:
    if placement.requests is not None:
        return placement.requests
    return shape.shape.requests if shape is not None else None
