"""Nodes as decisions see them: room, GPUs, taints, images, weights, notices.

The projection keeps `NodeFacts` and `StateFacts`; observe calls `nodes_from` with the
caches of nodes, pods and NodeStates and puts the result into the Snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.model.shape import Resources
from stoker.model.snapshot import Node, Signals, Taint, WeightCopy
from stoker.objects.health_fields import condition, items, mapping, text
from stoker.objects.requests import resources_from
from stoker.observe.notices import (
    NoticeFacts,
    hint_of_node,
    hint_of_state,
    notice_of_state,
    notices_of_node,
    urgent_notice,
)
from stoker.observe.pods import PodFacts
from stoker.observe.signals import signals_of

__all__ = ["NodeFacts", "Seen", "StateFacts", "node_facts", "nodes_from", "state_facts"]

Seen = Mapping[tuple[str, str], int]
"""When a notice was first seen, by node UID (its name where it has none) and kind, in ms."""

_MIG = "nvidia.com/mig-"
_GPU = "nvidia.com/gpu"
_GPU_LABELS = ("nvidia.com/gpu.product", "nvidia.com/gpu.count")
"""Set by NVIDIA's feature discovery, before or without a device plugin."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One Node. `allocatable` is None when it cannot be read, which is not zero."""

    uid: str
    labels: tuple[tuple[str, str], ...]
    taints: tuple[Taint, ...]
    ready: bool
    cordoned: bool
    allocatable: Resources | None
    gpu_unknown: str
    images: tuple[str, ...]
    notices: tuple[NoticeFacts, ...]
    hint: str = ""


@dataclass(frozen=True, slots=True)
class StateFacts:
    """One NodeState: what a reporter on the node says; absent is not zero.

    `node_uid` is the node that it means; empty where it does not say.
    """

    node_uid: str = ""
    weights: tuple[WeightCopy, ...] = ()
    notice: NoticeFacts | None = None
    signals: Signals = field(default=Signals(), compare=False)
    """Not compared: what a node measures every few seconds starts no pass."""
    hint: str = ""


def nodes_from(
    nodes: Iterable[tuple[str, NodeFacts]],
    pods: Iterable[PodFacts],
    states: Mapping[str, StateFacts],
    seen: Seen,
    now_ms: int,
    *,
    signals: bool = False,
) -> tuple[tuple[Node, ...], Seen]:
    """Every node sorted by name, and the instants of notices to remember for next time.

    `signals` has what reporters measured kept, for orders that ask for it; else it would
    make every snapshot another one. Of nodes that go away it is kept: who serves most there
    is decided first.

    `used` sums every bound pod that has not finished, terminating ones included: the
    scheduler counts them until they are gone.
    """
    books = _booked(pods)
    result: list[Node] = []
    remembered: dict[tuple[str, str], int] = {}
    for name, facts in sorted(nodes, key=lambda pair: pair[0]):
        state = _state_of(facts, states.get(name, _NO_STATE))
        notices = facts.notices if state.notice is None else (*facts.notices, state.notice)
        first_seen: dict[str, int] = {}
        identity = facts.uid or name
        for notice in notices:
            instant = seen.get((identity, notice.kind), now_ms)
            remembered[identity, notice.kind] = first_seen[notice.kind] = instant
        book = books.get(name, _NO_BOOK)
        result.append(
            Node(
                name=name,
                uid=facts.uid,
                labels=facts.labels,
                taints=facts.taints,
                ready=facts.ready,
                cordoned=facts.cordoned,
                allocatable=facts.allocatable or Resources(),
                used=book.resources(),
                gpu_unknown=facts.gpu_unknown or book.unknown,
                images=facts.images,
                weights=state.weights,
                notice=urgent_notice(notices, first_seen, now_ms) if notices else None,
                signals=state.signals if signals or notices else _NO_STATE.signals,
                hint=state.hint or facts.hint,
            )
        )
    return tuple(result), remembered


def node_facts(raw: dict[str, Any]) -> NodeFacts:
    """Keep what decisions need of a raw Node."""
    metadata, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    labels = {str(key): str(value) for key, value in mapping(metadata, "labels").items()}
    amounts = mapping(status, "allocatable")
    try:
        allocatable = resources_from(amounts)
    except ValueError:
        allocatable = None
    images = {
        name
        for image in items(status, "images")
        for name in image.get("names") or ()
        if isinstance(name, str)
    }
    taints = (
        Taint(text(taint, "key"), text(taint, "value"), text(taint, "effect"))
        for taint in items(spec, "taints")
    )
    return NodeFacts(
        uid=text(metadata, "uid"),
        labels=tuple(sorted(labels.items())),
        taints=tuple(sorted(taints)),
        ready=condition(raw, "Ready").get("status") == "True",
        cordoned=spec.get("unschedulable") is True,
        allocatable=allocatable,
        gpu_unknown=_why_uncounted(labels, allocatable),
        images=tuple(sorted(images)),
        notices=notices_of_node(raw),
        hint=hint_of_node(raw),
    )


def state_facts(raw: dict[str, Any]) -> StateFacts:
    """Keep what decisions need of a raw NodeState; a copy not said to be complete is not."""
    copies = {
        WeightCopy(text(copy, "uri"), text(copy, "revision"), copy.get("complete") is True)
        for copy in items(mapping(raw, "status"), "cache")
        if text(copy, "uri")
    }
    return StateFacts(
        text(mapping(raw, "status"), "nodeUID"),
        tuple(sorted(copies)),
        notice_of_state(raw),
        signals_of(raw),
        hint_of_state(raw),
    )


def _state_of(node: NodeFacts, state: StateFacts) -> StateFacts:
    """What was said of this very node: one of the same name, gone or of another cluster whose
    objects were restored here, held other weights and had other notices.
    """
    return state if state.node_uid in {"", node.uid} else _NO_STATE


def _why_uncounted(labels: Mapping[str, str], allocatable: Resources | None) -> str:
    if allocatable is None:
        return "its allocatable resources cannot be read"
    shares = [name for name, count in allocatable.extended if name.startswith(_MIG) and count > 0]
    if shares:
        return f"its GPUs are split by MIG ({', '.join(shares)})"
    promised = any(labels.get(label, "0") not in {"", "0"} for label in _GPU_LABELS)
    if promised and _GPU not in dict(allocatable.extended):
        return f"no device plugin has registered {_GPU} yet"
    return ""


class _Book:
    """Running sums of one node: `Resources.plus` would build an object a pod."""

    __slots__ = ("cpu", "devices", "memory", "pods", "unknown")

    def __init__(self) -> None:
        self.cpu = self.memory = self.pods = 0
        self.devices: dict[str, int] = {}
        self.unknown = ""

    def add(self, pod: PodFacts) -> None:
        if pod.claims:
            self.unknown = "pods there use resource claims (DRA), which cannot be counted"
        if pod.requests is None:
            self.unknown = "the requests of a pod there cannot be read"
            return
        self.cpu += pod.requests.cpu_millis
        self.memory += pod.requests.memory_bytes
        self.pods += pod.requests.pods
        for name, count in pod.requests.extended:
            self.devices[name] = self.devices.get(name, 0) + count

    def resources(self) -> Resources:
        return Resources(self.cpu, self.memory, self.pods, tuple(sorted(self.devices.items())))


_NO_STATE = StateFacts()
_NO_BOOK = _Book()


def _booked(pods: Iterable[PodFacts]) -> dict[str, _Book]:
    books: dict[str, _Book] = {}
    for pod in pods:
        if pod.node and not pod.finished:
            book = books.get(pod.node)
            if book is None:
                book = books[pod.node] = _Book()
            book.add(pod)
    return books
