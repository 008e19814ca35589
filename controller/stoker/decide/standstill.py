"""The decision about a service that is left exactly as it stands, and why. Pure; called by decide."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from stoker.decide.case import Case
from stoker.decide.count import Count
from stoker.decide.fate import is_home
from stoker.decide.slots import Standing, slots_of
from stoker.model.flow import Held, HeldBy
from stoker.model.plan import CountReason, Hold, ServiceDecision
from stoker.model.times import rfc3339

__all__ = ["groups_of", "is_updating", "left_alone", "left_by_hold"]


def left_by_hold(case: Case, held: Held, count: Count) -> ServiceDecision:
    """What stands is left exactly as it is; the count is what would be wanted."""
    hold = Hold(held.by, held.message, _ends(held))
    return replace(
        left_alone(case, hold),
        replicas=count.replicas,
        count=count.reason,
        floor=case.spec.floor(count.replicas),
    )


def _ends(held: Held) -> str:
    if held.until_ms is not None:
        return f"ends by itself at {rfc3339(held.until_ms)}"
    match held.by:
        case HeldBy.SUSPENDED:
            return "resumed in Git, or by stoker resume where it was suspended by hand"
        case HeldBy.DEPENDENCY:
            return "goes on by itself as soon as that is so"
        case HeldBy.WINDOW:
            return "a commit that changes the windows"
        case HeldBy.FAILED:
            return "a commit that changes the pod template"
        case _ as never:
            assert_never(never)


def left_alone(case: Case, hold: Hold) -> ServiceDecision:
    """Nothing is created, retired or lowered."""
    slots = [slot for placement in case.state.placements for slot in slots_of(placement)]
    return ServiceDecision(
        ref=case.ref,
        mode=case.spec.placement_mode,
        rev=case.rev,
        replicas=None,
        count=CountReason("unknown", "the cluster could not be read"),
        ready=sum(1 for slot in slots if slot.standing is Standing.READY),
        warming=sum(1 for slot in slots if slot.standing is Standing.WARMING),
        untouched=tuple(sorted(placement.name for placement in case.state.placements)),
        holds=(hold,),
        updating=is_updating(case),
        groups=groups_of(case),
        size=case.spec.nodes,
        when_full=case.when_full,
    )


def groups_of(case: Case, *names: str) -> tuple[str, ...]:
    """Names of the LeaderWorkerSets among what stands, with those that come; sorted."""
    standing = {place.name for place in case.state.placements if place.size > 1}
    return tuple(sorted(standing.union(names)))


def is_updating(case: Case) -> bool:
    """Whether replicas of another rev, mode or kind stand."""
    return any(
        placement.replicas and (placement.rev != case.rev or not is_home(case, placement))
        for placement in case.state.placements
    )
