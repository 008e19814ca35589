"""Each live Deployment as the replicas it stands for: what counts, what is on its way out.

Read by booking, count, transition and scheduler_mode. A Slot is one replica that
spec.replicas asks for, with its pod if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stoker.model.snapshot import LivePlacement, Replica, ReplicaPhase

__all__ = ["Slot", "Standing", "departing_pods", "is_occupied", "slots_of"]


class Standing(StrEnum):
    """What a replica is worth. STUCK is no capacity, LEAVING takes no more traffic."""

    READY = "Ready"
    WARMING = "Warming"
    STUCK = "Stuck"
    LEAVING = "Leaving"


@dataclass(frozen=True, slots=True)
class Slot:
    """One replica. `node` is where its pod is, or where it was decided to be without one; of a
    group its leader's.

    `pod` is None while the Deployment still lacks it. `index` makes slots of one
    Deployment distinct.
    """

    placement: LivePlacement
    index: int
    pod: Replica | None
    node: str
    standing: Standing

    @property
    def bound(self) -> bool:
        """Whether all its pods are on nodes, and so counted in what those give away."""
        return self.pod is not None and len(self.pod.nodes) >= self.placement.size

    @property
    def lacking(self) -> tuple[str, ...]:
        """Nodes that are kept for pods of it which are not bound yet.

        Of a group all decided nodes on which it has none: nobody knows which the next pod takes.
        """
        if self.bound:
            return ()
        placement = self.placement
        if placement.size == 1:
            return (placement.node,)
        held = self.pod.nodes if self.pod is not None else ()
        return tuple(node for node in placement.nodes if node not in held)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Where its pods are and where those it lacks will be, its leader's node first."""
        if self.placement.size == 1:
            return (self.node,)
        held = self.pod.nodes if self.pod is not None else ()
        return tuple(dict.fromkeys(filter(None, (self.node, *held, *self.lacking))))

    @property
    def live(self) -> bool:
        """Capacity bought: serving or on its way."""
        return self.standing in {Standing.READY, Standing.WARMING}

    @property
    def created_ms(self) -> int:
        """When its pod was made; a replica without a pod is the newest of all."""
        return self.pod.created_ms if self.pod is not None else 1 << 62

    @property
    def refused(self) -> bool:
        """Whether its node refuses its pods, one after the other: it holds nothing there."""
        return self.standing is Standing.STUCK and _is_refused(self.placement, self.pod)

    @property
    def reason(self) -> str:
        """Why it is stuck, in Kubernetes' word; empty for no reason given."""
        if self.pod is not None and self.pod.reason:
            return self.pod.reason
        refusal = self.placement.refusal_by(self.node)
        return refusal.reason if refusal is not None else ""


def slots_of(placement: LivePlacement) -> tuple[Slot, ...]:
    """As many replicas as spec.replicas says, best first; none of a Deployment being deleted.

    Terminating pods are not replicas: the ReplicaSet makes new ones for them. Where more
    pods stand than are wanted, those are left out that the ReplicaSet removes first.
    """
    if placement.terminating:
        return ()
    pods = sorted(
        (pod for pod in placement.pods if pod.phase is not ReplicaPhase.TERMINATING), key=_worth
    )[: placement.replicas]
    slots = [
        Slot(placement, index, pod, pod.node or placement.node, _standing_here(placement, pod))
        for index, pod in enumerate(pods)
    ]
    slots.extend(
        Slot(placement, index, None, placement.node, _standing_here(placement, None))
        for index in range(len(pods), placement.replicas)
    )
    return tuple(slots)


def _standing_here(placement: LivePlacement, pod: Replica | None) -> Standing:
    """As its pod stands; stuck while the kubelet of its node refuses each pod at once, which a

    ReplicaSet makes again without end (kubernetes#108152).
    """
    if _is_refused(placement, pod):
        return Standing.STUCK
    return Standing.WARMING if pod is None else _standing(pod)


def _is_refused(placement: LivePlacement, pod: Replica | None) -> bool:
    """A pod that the kubelet has taken in is not refused, whatever became of those before it."""
    if pod is None:
        return placement.refusal_by(placement.node) is not None
    waits = pod.phase is ReplicaPhase.PENDING and not pod.started_ms
    return waits and placement.refusal_by(pod.node or placement.node) is not None


def is_occupied(placement: LivePlacement) -> bool:
    """Whether pods of the Deployment are still on their way out: adding to its count now

    would keep them. One at zero whose pods are all terminating can be used anew.
    """
    active = [pod for pod in placement.pods if pod.phase is not ReplicaPhase.TERMINATING]
    leaving = any(_standing(pod) is Standing.LEAVING for pod in active)
    return placement.terminating or leaving or len(active) > placement.replicas


def departing_pods(placement: LivePlacement) -> tuple[Replica, ...]:
    """Pods that still hold their GPUs and will not be replicas again."""
    staying = {
        slot.pod.name
        for slot in slots_of(placement)
        if slot.pod is not None and slot.standing is not Standing.LEAVING
    }
    return tuple(pod for pod in placement.pods if pod.name not in staying)


_WORTH = {
    Standing.READY: 0,
    Standing.WARMING: 1,
    Standing.STUCK: 2,
    Standing.LEAVING: 3,
}


def _worth(pod: Replica) -> tuple[int, int, str]:
    return _WORTH[_standing(pod)], pod.created_ms, pod.name


def _standing(pod: Replica) -> Standing:
    """A replica without traffic is leaving, whoever took its label off: it serves nobody."""
    if not pod.traffic or pod.drain is not None:
        return Standing.LEAVING
    if pod.phase is ReplicaPhase.READY:
        return Standing.READY
    return Standing.STUCK if pod.phase is ReplicaPhase.STUCK else Standing.WARMING
