"""The next step of a Deployment that leaves, read from the facts of its pods alone.

StopTraffic -> Drain -> ScaleToZero -> Delete. A Ready pod first loses its traffic; it is
drained once its endpoints had time to settle and it has no request left, or its time is
over; a pod that is not Ready serves nobody and is not waited for. Called by leave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stoker.decide.fate import Fate, Judged
from stoker.decide.slots import Standing
from stoker.model.fleet import Drain
from stoker.model.plan import Retirement, RetireStage
from stoker.model.snapshot import LivePlacement, Notice, Replica, ReplicaPhase

__all__ = ["Departure", "Leave", "depart", "drain_ends_ms", "retire"]

POLL_MS = 2_000
"""How often a draining engine is asked at most. Fast next to a generation, cheap for the engine."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Replicas of one Deployment that leave, those that stay, and how many are added now."""

    placement: LivePlacement
    going: tuple[Judged, ...] = ()
    kept: tuple[Judged, ...] = ()
    added: int = 0
    hard_kill: bool = False
    """On a noticed node requests in flight are not waited for."""


@dataclass(frozen=True, slots=True)
class Departure:
    """A retirement, what spec.replicas is meanwhile, and when to look again (None: no need)."""

    retirement: Retirement
    replicas: int
    wake_at_ms: int | None


def retire(leave: Leave, drain: Drain, now_ms: int) -> Departure:
    """The next step for the replicas that leave one Deployment.

    With several of them all wait for the slowest: the count is lowered once, so that the
    ReplicaSet has no choice but these. It takes pods that are not Ready first, so nothing
    is lowered while a replica that stays is on its way; nor before every pod was seen, for
    the room of a pod that was never seen would be given away while it still holds it.
    """
    placement, keep = leave.placement, len(leave.kept) + leave.added
    reason = leave.going[0].reason if leave.going else "no replica is wanted here"
    pods = [(j.slot.pod, j.notice) for j in leave.going if j.slot.pod is not None]
    short = replace(drain, max_ms=0) if leave.hard_kill else drain
    serving = [pod.name for pod, _ in pods if _takes_traffic(pod)]
    waits = {
        pod.name: wait_ms
        for pod, notice in pods
        if (wait_ms := _next_look_ms(pod, notice, short if notice else drain, now_ms)) is not None
    }

    def step(stage: RetireStage, names: Iterable[str], replicas: int) -> Departure:
        retirement = Retirement(
            placement.name,
            placement.uid,
            stage,
            reason,
            tuple(sorted(names)),
            keep,
            placement.size > 1,
        )
        return Departure(retirement, replicas, min(waits.values(), default=None))

    if serving:
        return step(RetireStage.STOP_TRAFFIC, serving, placement.replicas + leave.added)
    names = [pod.name for pod, _ in pods]
    unseen = placement.unsettled and placement.replicas > keep
    if waits or unseen or _would_take_others(leave):
        return step(RetireStage.DRAIN, waits or names, placement.replicas + leave.added)
    if keep:
        return step(RetireStage.SCALE_TO_ZERO, names, keep)
    if placement.replicas or placement.pods or placement.unsettled:
        return step(RetireStage.SCALE_TO_ZERO, (pod.name for pod in placement.pods), 0)
    return step(RetireStage.DELETE, (), 0)


def depart(placement: LivePlacement, drain: Drain, reason: str, now_ms: int) -> Departure | None:
    """The next step before a whole Deployment may be deleted; None when nobody is served.

    For services that no file names any more: their Deployment is deleted as it stands,
    without a scale to zero.
    """
    serving = tuple(sorted(pod.name for pod in placement.pods if _takes_traffic(pod)))
    waits = {
        pod.name: wait_ms
        for pod in placement.pods
        if (wait_ms := _next_look_ms(pod, None, drain, now_ms)) is not None
    }
    if not serving and not waits:
        return None
    stage = RetireStage.STOP_TRAFFIC if serving else RetireStage.DRAIN
    retirement = Retirement(
        placement.name,
        placement.uid,
        stage,
        reason,
        serving or tuple(sorted(waits)),
        grouped=placement.size > 1,
    )
    return Departure(retirement, placement.replicas, min(waits.values(), default=None))


def _would_take_others(leave: Leave) -> bool:
    """Whether lowering the count now could take a replica that stays instead.

    Replicas that leave only because there are too many are as good as those that stay.
    """
    underway = leave.added or any(j.standing is Standing.WARMING for j in leave.kept)
    return bool(underway) and any(j.fate is not Fate.GOOD for j in leave.going)


def drain_ends_ms(since_ms: int, drain: Drain, notice: Notice | None) -> int:
    """When a drain is over at the latest; on a noticed node early enough for the engine's
    own shutdown.
    """
    ends_ms = since_ms + drain.endpoint_sync_ms + drain.max_ms
    if notice is not None and notice.deadline_ms is not None:
        return min(ends_ms, notice.deadline_ms - drain.shutdown_ms)
    return ends_ms


def _takes_traffic(pod: Replica) -> bool:
    """Whether its drain has not begun; a label that somebody else took off begins none."""
    return pod.phase is ReplicaPhase.READY and (pod.traffic or pod.drain is None)


def _next_look_ms(pod: Replica, notice: Notice | None, drain: Drain, now_ms: int) -> int | None:
    """When to look at a draining pod again; None when it need not be waited for.

    Without an answer (`in_flight` None) it counts as busy as long as it is Ready.
    """
    if pod.drain is None:
        return None
    ends_ms = drain_ends_ms(pod.drain.since_ms, drain, notice)
    settled_ms = pod.drain.since_ms + drain.endpoint_sync_ms
    ready = pod.phase is ReplicaPhase.READY
    idle = pod.drain.in_flight == 0 if ready else not pod.drain.in_flight
    if now_ms >= ends_ms or (idle and (now_ms >= settled_ms or not ready)):
        return None
    return min(settled_ms if now_ms < settled_ms else now_ms + POLL_MS, ends_ms)
