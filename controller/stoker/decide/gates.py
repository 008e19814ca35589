"""Which units are held in this pass, by whom and until when. Pure; called before decide.

Desired, the snapshot with its suspensions, how units stood at the last report and what was
let through before come in; `Gated` goes out: Desired with `held` filled in, in which a unit
that only waits for others stands as it was before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from stoker.model.fleet import Blob, Desired, Unit
from stoker.model.flow import Held, HeldBy, Standing, Suspension
from stoker.model.refs import UnitRef
from stoker.model.snapshot import Snapshot
from stoker.model.times import rfc3339

__all__ = [
    "NOT_LOOKED_AT",
    "Admitted",
    "Gated",
    "Judge",
    "fleet_suspension",
    "gates",
    "not_judged",
    "waits_for",
]

NOT_LOOKED_AT = "it was not looked at yet"

Judge: TypeAlias = Callable[[UnitRef, str], str]
"""A unit and an expression about its live objects to why it is not ready; empty when it is."""


def not_judged(ref: UnitRef, expression: str) -> str:
    """The judge of whoever knows of no live objects: unknown is not ready."""
    del ref, expression
    return NOT_LOOKED_AT


@dataclass(frozen=True, slots=True)
class Admitted:
    """What of a unit was last let through, and the fleet's templates at that time."""

    unit: Unit
    templates: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True)
class Gated:
    """`desired` has `held`; `admitted` replaces what the caller knew; `wake_at_ms` is when a
    suspension lapses, None for never.
    """

    desired: Desired
    admitted: Mapping[UnitRef, Admitted]
    wake_at_ms: int | None = None


def gates(
    desired: Desired,
    snapshot: Snapshot,
    standings: Mapping[UnitRef, Standing],
    admitted: Mapping[UnitRef, Admitted],
    now_ms: int,
    *,
    waits: bool = True,
    judge: Judge = not_judged,
) -> Gated:
    """Judge every unit. Those already held in `desired` stay so unless somebody suspends them.

    Without `waits` dependencies hold nothing; `judge` answers for their expressions.
    """
    suspensions = {s.ref: s for s in snapshot.suspensions if s.holds(now_ms)}
    fleet = fleet_suspension(desired, snapshot, now_ms)
    before = {held.unit: held for held in desired.held}
    units: list[Unit] = []
    found: list[Held] = []
    passed: dict[UnitRef, Admitted] = {}
    for unit in desired.units:
        held = fleet(unit.ref) if fleet is not None else _suspended(unit, suspensions)
        held = held or before.get(unit.ref)
        free = held is not None or not waits
        missing = "" if free else waits_for(unit, desired, standings, admitted, judge)
        old = admitted.get(unit.ref)
        if missing:
            usable = old is not None and old.templates == desired.templates
            held = Held(unit.ref, HeldBy.DEPENDENCY, missing, whole=not usable)
        if held is not None:
            found.append(held)
        if held is None:
            same = old is not None and old.unit is unit and old.templates == desired.templates
            passed[unit.ref] = (
                old if old is not None and same else Admitted(unit, desired.templates)
            )
        elif old is not None:
            passed[unit.ref] = old
        goes_on = held is not None and not held.whole
        units.append(old.unit if goes_on and old is not None else unit)
    lapses = [s.until_ms for s in suspensions.values() if s.until_ms is not None]
    if found or desired.held:
        desired = replace(desired, units=tuple(units), held=tuple(found))
    return Gated(desired, passed, min(lapses, default=None))


class _FleetGate:
    """Holds every unit for one reason."""

    __slots__ = ("message", "since_ms", "until_ms")

    def __init__(self, message: str, since_ms: int | None, until_ms: int | None) -> None:
        self.message, self.since_ms, self.until_ms = message, since_ms, until_ms

    def __call__(self, ref: UnitRef) -> Held:
        return Held(ref, HeldBy.SUSPENDED, self.message, self.since_ms, self.until_ms)


def fleet_suspension(desired: Desired, snapshot: Snapshot, now_ms: int) -> _FleetGate | None:
    """The gate that a suspended fleet is; None while it is not."""
    if desired.fleet.suspend:
        return _FleetGate("spec.suspend of the fleet", None, None)
    for found in snapshot.suspensions:
        ours = found.ref.kind == "Fleet" and found.ref.name == desired.fleet.name
        if ours and found.holds(now_ms):
            return _FleetGate(f"the fleet: {_live(found)}", found.since_ms, found.until_ms)
    return None


def waits_for(
    unit: Unit,
    desired: Desired,
    standings: Mapping[UnitRef, Standing],
    admitted: Mapping[UnitRef, Admitted],
    judge: Judge,
) -> str:
    """What a unit's new revision waits for; empty when it may go on.

    A revision that was let through once, or already stands, is never held again: what runs
    is repaired even while something that it depends on is unwell.
    """
    if not unit.flow.depends_on:
        return ""
    known = standings.get(unit.ref)
    let_through = admitted.get(unit.ref)
    if known is not None and known.digest == unit.digest[:12]:
        return ""
    if let_through is not None and let_through.unit.digest == unit.digest:
        return ""
    for ref in unit.flow.depends_on:
        missing = _missing(ref, unit.flow.asks_of(ref), desired, standings.get(ref), judge)
        if missing:
            return f"waits for {ref}: {missing}"
    return ""


def _missing(
    ref: UnitRef,
    asks: Sequence[str],
    desired: Desired,
    standing: Standing | None,
    judge: Judge,
) -> str:
    """What a dependency lacks: it must have applied this revision, and all that is asked hold."""
    unit = desired.unit(ref)
    if unit is None:
        return "its files are wrong" if ref in desired.broken else "the fleet does not have it"
    if standing is None:
        return NOT_LOOKED_AT
    if not standing.synced or standing.digest != unit.digest[:12]:
        return f"it has not applied this revision{_because(standing)}"
    unwell = "" if standing.healthy else f"it is not Healthy{_because(standing)}"
    answers = (judge(ref, text) if text else unwell for text in asks)
    return next((answer for answer in answers if answer), "")


def _because(standing: Standing) -> str:
    return f" ({standing.why})" if standing.why else ""


def _suspended(unit: Unit, suspensions: Mapping[UnitRef, Suspension]) -> Held | None:
    if unit.flow.suspend:
        return Held(unit.ref, HeldBy.SUSPENDED, f"spec.suspend in {unit.location.path}")
    found = suspensions.get(unit.ref)
    if found is None:
        return None
    return Held(unit.ref, HeldBy.SUSPENDED, _live(found), found.since_ms, found.until_ms)


def _live(found: Suspension) -> str:
    if not found.by_hand:
        return found.reason
    until = f" until {rfc3339(found.until_ms)}" if found.until_ms is not None else ""
    reason = f": {found.reason}" if found.reason else ""
    return f"suspended by hand{until}{reason}"
