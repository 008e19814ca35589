"""What is to become of each standing replica: stay, move under the budgets, or leave anyhow.

Called by transition and scheduler_mode. Where a pod landed is where it is: another node of
the service's pools is as good as the one decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from stoker.decide.case import Case
from stoker.decide.coldness import is_cache_aware
from stoker.decide.place import Index
from stoker.decide.slots import Slot, Standing, slots_of
from stoker.model.fleet import PlacementMode, WhenFull
from stoker.model.moves import OnNotice
from stoker.model.snapshot import LivePlacement, Node, Notice
from stoker.objects.names import pool_of_place

__all__ = ["Fate", "Judged", "is_home", "judge", "latest_stop_ms", "price_of", "victims"]


class Fate(StrEnum):
    """GOOD stays. MOVING leaves when its successor is there, under the budgets. FORCED
    leaves whatever the budgets say. LEAVING is on its way out already.
    """

    GOOD = "Good"
    MOVING = "Moving"
    FORCED = "Forced"
    LEAVING = "Leaving"


@dataclass(frozen=True, slots=True)
class Judged:
    """A slot with its fate. `reason` says why it goes; empty for GOOD.

    `outdated` = of another rev or placement mode. `notice` is its node's, if that forces it.
    """

    slot: Slot
    fate: Fate
    reason: str = ""
    outdated: bool = False
    notice: Notice | None = None
    lost: bool = False
    """Its node does not answer, and so it is not Ready: no capacity, and not the rev's fault."""
    dearness: tuple[Decimal, int] = (Decimal(0), 0)
    """Price of a GPU hour in its pool, then the pool's place in the service's list."""
    warmth: tuple[int, int, float] = (0, 0, 0.0)
    """Where caches have a say, the lower leaves first: 0 on a node that may be taken back soon, 0
    for the last of an autoscaled node, and how warm its cache is.
    """

    @property
    def key(self) -> tuple[str, int]:
        """Unique within the service."""
        return self.slot.placement.name, self.slot.index

    @property
    def standing(self) -> Standing:
        """What it is worth."""
        return self.slot.standing

    @property
    def ready(self) -> bool:
        """Ready, with traffic."""
        return self.slot.standing is Standing.READY


def judge(case: Case, index: Index) -> tuple[Judged, ...]:
    """Every replica that stands, in the order of Deployment names."""
    placements = sorted(case.state.placements, key=lambda placement: placement.name)
    return tuple(
        _judged(case, index, slot) for placement in placements for slot in slots_of(placement)
    )


def is_home(case: Case, placement: LivePlacement) -> bool:
    """Whether the workload is of the service's placement mode, and of groups if those are."""
    mode = bool(placement.node) == (case.spec.placement_mode is PlacementMode.NODES)
    return mode and (placement.size > 1) == (case.spec.nodes > 1)


def victims(judged: Iterable[Judged]) -> list[Judged]:
    """Who goes first: stuck, not started, warming, Ready; then from the dearer pool (by

    price, then by place in the list); then the newest; then by name. Where the count follows load
    one whose node may go comes before all Ready ones, then one whose going empties an autoscaled
    node; and within a pool the coldest cache goes first.
    """
    return sorted(judged, key=_victim)


def latest_stop_ms(case: Case, notice: Notice | None) -> int | None:
    """When a replica on a noticed node must stop taking requests, whatever else is true:

    endpoints settle, and what is left when the engine is told to stop still has its
    shutdown time before the node goes. None without a deadline, and where requests may die
    with the node (onNotice HardKill).
    """
    if notice is None or notice.deadline_ms is None:
        return None
    if case.spec.on_notice is OnNotice.HARD_KILL:
        return None
    return notice.deadline_ms - case.spec.drain.shutdown_ms - case.spec.drain.endpoint_sync_ms


def _judged(case: Case, index: Index, slot: Slot) -> Judged:
    node = index.node(slot.node)
    known = [found for name in slot.nodes if (found := index.node(name)) is not None]
    dead = any(not found.ready for found in known)
    lost = dead and slot.bound and slot.standing is not Standing.READY
    if slot.standing is Standing.WARMING and (lost or _has_failed_here(case, slot)):
        slot = replace(slot, standing=Standing.STUCK)
    outdated = slot.placement.rev != case.rev or not is_home(case, slot.placement)
    going = _first_to_go(known)
    notice = going.notice if going is not None else None
    anywhere = bool(pool_of_place(slot.node) and index.pool(case, slot.node))
    gone = _gone(index, slot) if slot.placement.size > 1 else node is None and not anywhere
    forced = _forced_reason(slot, gone=gone, going=going)
    reason = forced or _moving_reason(case, index, slot, known)
    if slot.standing is Standing.LEAVING:
        fate, reason = Fate.LEAVING, reason or "no longer wanted"
    elif forced:
        fate = Fate.FORCED
    else:
        fate = Fate.MOVING if reason else Fate.GOOD
    dearness = _dearness(case, index, slot.node)
    warmth = _warmth(case, index, slot, known)
    return Judged(slot, fate, reason, outdated, notice, lost, dearness, warmth)


def _has_failed_here(case: Case, slot: Slot) -> bool:
    """Whether its engine crashed on a node that is left out for it. That it runs again between two
    crashes makes it no capacity: its substitute elsewhere would be given up and bought again.
    """
    pod = slot.pod
    return pod is not None and pod.restarts > 0 and any(map(case.bars.why, slot.nodes))


def _first_to_go(nodes: Iterable[Node]) -> Node | None:
    """The node whose notice forces the replica away first; of a group any of them does."""
    told = [node for node in nodes if node.notice is not None and not node.notice.vacates]
    return min(told, default=None, key=_deadline)


def _deadline(node: Node) -> tuple[bool, int, str]:
    deadline_ms = node.notice.deadline_ms if node.notice is not None else None
    return deadline_ms is None, deadline_ms or 0, node.name


def _gone(index: Index, slot: Slot) -> bool:
    """Whether a node is gone that a pod of the group waits for."""
    return any(index.node(name) is None for name in slot.lacking)


def _forced_reason(slot: Slot, *, gone: bool, going: Node | None) -> str:
    """A pod on a node that the snapshot lacks stays as it is: a node may be newer than the

    snapshot, and if it is gone Kubernetes removes the pod. A pod that waits for such a node
    waits for nothing.
    """
    if going is not None and going.notice is not None:
        return f"node {going.name} goes away ({going.notice.kind})"
    if gone and slot.placement.node and not slot.bound:
        if slot.placement.size > 1:
            return "a node of its group is gone"
        pool = pool_of_place(slot.node)
        return f"pool {pool} is none of its pools" if pool else f"node {slot.node} is gone"
    return ""


def _moving_reason(case: Case, index: Index, slot: Slot, known: Iterable[Node]) -> str:
    if (slot.placement.size > 1) != (case.spec.nodes > 1):
        return f"parallelism.nodes is now {case.spec.nodes}"
    if not is_home(case, slot.placement):
        return f"placement.mode is now {case.spec.placement_mode}"
    if slot.placement.rev != case.rev:
        return f"rev {slot.placement.rev} -> {case.rev}"
    return next((why for node in known if (why := index.must_move(case, node.name))), "")


def _dearness(case: Case, index: Index, node: str) -> tuple[Decimal, int]:
    name = index.pool(case, node)
    for place, pool in enumerate(case.ask.pools):
        if pool.name == name:
            return price_of(pool.price_per_gpu_hour), place
    return Decimal(0), 0


def _warmth(case: Case, index: Index, slot: Slot, known: Iterable[Node]) -> tuple[int, int, float]:
    """A pod of which nothing is known may be the warmest."""
    if not is_cache_aware(case.spec.scaling):
        return 0, 0, 0.0
    hinted = any(node.hint or node.notice is not None for node in known)
    heat = 0.0
    if case.heats:
        heat = case.heats.get(slot.pod.name, math.inf) if slot.pod is not None else -math.inf
    return int(not hinted), int(not _empties(case, index, slot)), heat


def _empties(case: Case, index: Index, slot: Slot) -> bool:
    """Whether its node has nothing else on its GPUs, and goes away by itself when it is empty."""
    node = index.node(slot.node)
    if node is None or not slot.bound:
        return False
    labels = dict(node.labels)
    autoscaled = case.spec.when_full is WhenFull.UNPINNED or any(
        label in labels for label in _AUTOSCALED_LABELS
    )
    return autoscaled and node.used.device(case.spec.gpu_resource) <= case.need.gpus


def price_of(text: str | None) -> Decimal:
    """A price that is not given or not a number is no reason to prefer a victim."""
    try:
        price = Decimal(text or 0)
    except InvalidOperation:
        return Decimal(0)
    return price if price.is_finite() else Decimal(0)


_AUTOSCALED_LABELS = ("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")
"""Labels that Karpenter puts on nodes it made, and will remove when they are empty."""

_WORTH = {Standing.STUCK: 0, Standing.LEAVING: 1, Standing.WARMING: 2, Standing.READY: 3}


def _victim(
    judged: Judged,
) -> tuple[int, int, int, Decimal, int, float, int, str, int]:
    price, place = judged.dearness
    stays, shared, heat = judged.warmth
    slot = judged.slot
    return (
        _WORTH[slot.standing],
        stays,
        shared,
        -price,
        -place,
        heat,
        -slot.created_ms,
        slot.placement.name,
        slot.index,
    )
