"""Learn from starts that ended: follow each pod from before its engine runs until it is Ready.

In: what was learned, the cases and the index of the pass. Out: the same with this pass's
news. A pod counts once, for its entry goes when it is Ready. A start that failed, was
restarted, held up by a registry or by want of room, or was first seen too late to know what
its node held, teaches nothing. Called by decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stoker.decide.case import Case
from stoker.decide.place import Index
from stoker.model.snapshot import LivePlacement, Replica, ReplicaPhase
from stoker.model.start_samples import MAX_OPEN, OpenStart, Starts, StartSample

__all__ = ["learn_starts"]

_EARLY = frozenset({ReplicaPhase.PENDING, ReplicaPhase.NODE_PROVISIONING, ReplicaPhase.IMAGE_PULL})
_HELD_UP = frozenset({"Unschedulable", "SchedulingGated"})
"""Reasons of the scheduler: such a start waits for something that is no part of it."""


def learn_starts(starts: Starts, cases: Iterable[Case], index: Index, *, whole: bool) -> Starts:
    """What is known after this pass. `whole` says that every pod of these cases was seen;
    else entries of pods that were not are kept.
    """
    before = {each.uid: each for each in starts.open}
    opened: dict[str, OpenStart] = {}
    samples: dict[str, list[StartSample]] = {}
    for case in cases:
        for placement in case.state.placements:
            for pod in placement.pods:
                entry = before.pop(pod.uid, None)
                if pod.phase is ReplicaPhase.READY:
                    _finish(samples, case, pod, entry)
                    continue
                entry = _followed(case, placement, pod, entry, index)
                if entry is not None:
                    opened[pod.uid] = entry
    if not whole:
        opened |= before
    if not samples and tuple(sorted(opened.values())) == starts.open:
        return starts
    known = {each.uid for each in starts.open}
    oldest_first = sorted(opened.values(), key=lambda each: (each.uid not in known, each))
    return Starts.bounded(_merged(starts, samples), oldest_first[:MAX_OPEN])


def _merged(
    starts: Starts, samples: Mapping[str, Iterable[StartSample]]
) -> dict[str, list[StartSample]]:
    rings = {key: list(ring) for key, ring in starts.rings}
    for key, found in samples.items():
        rings.setdefault(key, []).extend(found)
    return rings


def _finish(
    samples: dict[str, list[StartSample]], case: Case, pod: Replica, entry: OpenStart | None
) -> None:
    """Take the sample of a pod that became Ready, if it may teach."""
    if entry is None or entry.spoiled or not entry.key or pod.restarts or entry.node != pod.node:
        return
    instants = (pod.created_ms, pod.scheduled_ms, pod.started_ms, pod.since_ms)
    if 0 in instants or list(instants) != sorted(instants):
        return
    created_ms, scheduled_ms, started_ms, ready_ms = instants
    if ready_ms - created_ms > case.spec.cold_start_deadline_ms:
        return
    sample = StartSample(
        ready_ms, scheduled_ms - created_ms, started_ms - scheduled_ms, ready_ms - started_ms
    )
    samples.setdefault(entry.key, []).append(sample)


def _followed(
    case: Case, placement: LivePlacement, pod: Replica, entry: OpenStart | None, index: Index
) -> OpenStart | None:
    """The entry of a pod that is not Ready; None when it need not be followed."""
    if pod.phase is ReplicaPhase.TERMINATING or pod.restarts:
        return None  # the count of restarts stays: nothing will be learned of it
    bad = (
        pod.phase is ReplicaPhase.STUCK
        or pod.reason in _HELD_UP
        or (entry is not None and entry.spoiled)
    )
    if bad:
        return OpenStart(pod.uid, "", "", spoiled=True)
    place = pod.node or placement.node
    if entry is not None and entry.node in {place, ""} and (entry.key or not place):
        return entry
    if pod.started_ms or pod.phase not in _EARLY or placement.rev != case.rev:
        # What the node held before is no longer to be seen.
        return None if entry is None else OpenStart(pod.uid, "", "", spoiled=True)
    return OpenStart(pod.uid, place, index.start_key(case, place) if place else "")
