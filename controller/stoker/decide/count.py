"""How many replicas a service wants, and who says so. Called once per service by decide.

Who owns a count is arbitrated by facts (design section 5):

- mode Scheduler, a live owner (HorizontalPodAutoscaler, ScaledObject) of the Deployment or
  `scaling.mode: External`: the live value is kept, zero included; 1 when nothing stands.
- mode Nodes, `scaling.mode: External`: counts of its Deployments are never adopted one by
  one, and their sum counts copies that stand only during a move. So the count decided last
  (history) is kept; with no history the sum of all live counts, which is never less than
  what was wanted; 1 when nothing stands. The same while a service changes to mode Scheduler.
- else a live override that has not lapsed (`stoker override`), which never outranks the owners
  above: it is refused by name; else Git's `spec.replicas`.

Only the second rule reads history.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.decide.case import Case
from stoker.decide.fate import is_home
from stoker.model.fleet import PlacementMode
from stoker.model.flow import Override
from stoker.model.plan import CountReason
from stoker.model.times import rfc3339

__all__ = ["Count", "wanted"]


@dataclass(frozen=True, slots=True)
class Count:
    """The wanted count of Ready replicas and where it comes from."""

    replicas: int
    reason: CountReason


def wanted(case: Case, remembered: int | None, override: Override | None = None) -> Count:
    """The count now; `remembered` is what was decided last, None when that is not known.

    `override` must not have lapsed.
    """
    found = _owned(case, remembered)
    if found is not None:
        return _refused(found, override)
    of_git = case.spec.replicas
    assert of_git is not None
    if override is not None:
        return _overridden(case, of_git, override)
    return Count(of_git, CountReason("Git", "spec.replicas"))


def _owned(case: Case, remembered: int | None) -> Count | None:
    """The count where somebody else owns it; None where it is Git's to say."""
    standing = [placement for placement in case.state.placements if not placement.terminating]
    home = [placement for placement in standing if is_home(case, placement)]
    settled = len(home) == len(standing)
    owner = next((p.externally_scaled for p in home if p.externally_scaled), "")
    if case.spec.placement_mode is PlacementMode.SCHEDULER and home and settled:
        live = sum(placement.replicas for placement in home)
        if owner or case.spec.scaling_mode is not None:
            return Count(live, CountReason(owner or "External", "live value kept"))
    if case.spec.replicas is not None:
        return None
    if remembered is not None:
        return Count(remembered, CountReason("External", "count decided last"))
    if standing:
        live = sum(placement.replicas for placement in standing)
        return Count(live, CountReason("External", "sum of live counts"))
    return Count(1, CountReason("External", "nothing stands yet"))


def _refused(found: Count, override: Override | None) -> Count:
    """The owner's count, and that an override beside it does nothing: it was typed by hand, for
    `stoker override` refuses it.
    """
    if override is None:
        return found
    asked = f"{override.replicas} until {rfc3339(override.until_ms)}"
    why = f"{asked}: refused, {found.reason.source} owns the count"
    if override.reason:
        why += f" ({override.reason})"
    return replace(found, reason=replace(found.reason, refused=why))


def _overridden(case: Case, of_git: int, override: Override) -> Count:
    """The count of the override; below the floor of Git's count it says so."""
    detail = f"until {rfc3339(override.until_ms)}, Git wants {of_git}"
    floor = case.spec.floor(of_git)
    if override.replicas < floor:
        detail += f", below the floor ({floor})"
    if override.reason:
        detail += f": {override.reason}"
    return Count(override.replicas, CountReason("Override", detail))
