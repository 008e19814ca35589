"""How many replicas a service wants, and who says so. Called once per service by decide.

Who owns a count is arbitrated by facts (design section 5):

- mode Scheduler, a live owner (HorizontalPodAutoscaler, ScaledObject) of the Deployment or
  `scaling.mode: External`: the live value is kept, zero included; 1 when nothing stands.
- mode Nodes, `scaling.mode: External`: counts of its Deployments are never adopted one by
  one, and their sum counts copies that stand only during a move. So the count decided last
  (history) is kept; with no history the sum of all live counts, which is never less than
  what was wanted; 1 when nothing stands. The same while a service changes to mode Scheduler.
- else a live override that has not lapsed (`stoker override`), which never outranks the owners
  above: it is refused by name.
- else, `scaling.mode: Stoker`, what measured load asks for (scale).
- else Git's `spec.replicas`. Beside an override that cannot be read, the count is at least what
  was decided last (or stands): more may have been asked for, and unknown never lowers.

The second rule and the last two read history.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from stoker.decide.case import Case
from stoker.decide.fate import is_home
from stoker.model.fleet import PlacementMode
from stoker.model.flow import Override, UnreadOverride
from stoker.model.plan import CountReason
from stoker.model.scaling import ScalingMode
from stoker.model.snapshot import LivePlacement
from stoker.model.times import rfc3339

__all__ = ["Asked", "Count", "owned", "wanted"]

Asked: TypeAlias = Override | UnreadOverride | None
"""What people ask of a count; None for nothing."""


@dataclass(frozen=True, slots=True)
class Count:
    """The wanted count of Ready replicas and where it comes from."""

    replicas: int
    reason: CountReason


def wanted(
    case: Case, remembered: int | None, override: Asked = None, scaled: Count | None = None
) -> Count:
    """The count now; `remembered` is what was decided last, None when that is not known.

    `override` must not have lapsed. `scaled` is what load asks for, of a service whose count
    follows it.
    """
    found = owned(case, remembered)
    if found is not None:
        return _refused(found, override)
    ruled = scaled if scaled is not None else _of_git(case)
    if isinstance(override, UnreadOverride):
        return _unread(case, ruled, remembered, override)
    if override is not None:
        return _overridden(case, ruled, override)
    return ruled


def _of_git(case: Case) -> Count:
    assert case.spec.replicas is not None
    return Count(case.spec.replicas, CountReason("Git", "spec.replicas"))


def owned(case: Case, remembered: int | None) -> Count | None:
    """The count where somebody else owns it; None where it is Git's, or the load's, to say."""
    standing = _standing(case)
    home = [placement for placement in standing if is_home(case, placement)]
    settled = len(home) == len(standing)
    owner = next((p.externally_scaled for p in home if p.externally_scaled), "")
    in_one = case.spec.placement_mode is PlacementMode.SCHEDULER and home and settled
    external = case.spec.scaling_mode is ScalingMode.EXTERNAL
    if in_one and (owner or external):
        return Count(_sum(home), CountReason(owner or "External", "live value kept"))
    if not external:
        return None
    if remembered is not None:
        return Count(remembered, CountReason("External", "count decided last"))
    if standing:
        return Count(_sum(standing), CountReason("External", "sum of live counts"))
    return Count(1, CountReason("External", "nothing stands yet"))


def _standing(case: Case) -> list[LivePlacement]:
    return [placement for placement in case.state.placements if not placement.terminating]


def _sum(placements: list[LivePlacement]) -> int:
    return sum(placement.replicas for placement in placements)


def _refused(found: Count, override: Asked) -> Count:
    """The owner's count, and that an override beside it does nothing: it was typed by hand, for
    `stoker override` refuses it.
    """
    if override is None:
        return found
    if isinstance(override, UnreadOverride):
        return replace(found, reason=replace(found.reason, refused=_cannot_be_read(override)))
    asked = f"{override.replicas} until {rfc3339(override.until_ms)}"
    why = f"{asked}: refused, {found.reason.source} owns the count"
    if override.reason:
        why += f" ({override.reason})"
    return replace(found, reason=replace(found.reason, refused=why))


def _overridden(case: Case, ruled: Count, override: Override) -> Count:
    """The count of the override; below the floor of the count beside it, it says so."""
    detail = f"until {rfc3339(override.until_ms)}, {ruled.reason.source} wants {ruled.replicas}"
    floor = case.spec.floor(ruled.replicas)
    if override.replicas < floor:
        detail += f", below the floor ({floor})"
    if override.reason:
        detail += f": {override.reason}"
    return Count(override.replicas, CountReason("Override", detail))


def _unread(case: Case, ruled: Count, remembered: int | None, override: UnreadOverride) -> Count:
    """Git's count or the load's, or what was decided last where that is more; no copy of a move
    counts twice.
    """
    why = _cannot_be_read(override)
    before = remembered if remembered is not None else _sum(_standing(case))
    if before > ruled.replicas:
        kept = f"kept, {ruled.reason.source} wants {ruled.replicas}: {why}"
        return Count(before, CountReason("Override", kept))
    return Count(ruled.replicas, replace(ruled.reason, refused=why))


def _cannot_be_read(override: UnreadOverride) -> str:
    return f"not obeyed, its annotation cannot be read: {override.text}"
