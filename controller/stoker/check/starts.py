"""Deadlines and holds that this fleet's own starts do not keep. Warnings: both are Git's to set.

Called by check with the plan, which says what was learned.
"""

from __future__ import annotations

from collections.abc import Iterator

from stoker.errors import Finding, Severity
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.plan import Plan, SlowStart
from stoker.model.refs import UnitRef
from stoker.model.scaling import Scaling

__all__ = ["find_late"]

_FIELD = "spec.coldStart.deadline"
_WAKE = "spec.scaling.scaleToZero.wake"


def find_late(desired: Desired, plan: Plan | None) -> dict[UnitRef, tuple[Finding, ...]]:
    """Warnings for each service whose deadline, or whose hold at zero, is below what nine of ten
    starts took.
    """
    if plan is None or all(d.slow_start is None and d.short_hold is None for d in plan.decisions):
        return {}
    units = {unit.ref: unit for unit in desired.units}
    found: dict[UnitRef, tuple[Finding, ...]] = {}
    for decision in plan.decisions:
        unit, slow, short = units.get(decision.ref), decision.slow_start, decision.short_hold
        if unit is None or not isinstance(unit.spec, ModelService):
            continue
        told = (_finding(unit, unit.spec, slow),) if slow is not None else ()
        if short is not None and unit.spec.scaling is not None:
            told = (*told, *_holds(unit, unit.spec.scaling, short))
        if told:
            found[decision.ref] = told
    return found


def _holds(unit: Unit, scaling: Scaling, slow: SlowStart) -> Iterator[Finding]:
    """One warning a wake source, with what its first client gets."""
    seconds = -(-slow.p90_ms // 1_000)
    where = f"on {slow.where} " if slow.where else ""
    for index, source in enumerate(scaling.scale_to_zero.wake):
        if not 0 < source.hold_ms < slow.p90_ms:
            continue
        field = f"{_WAKE}[{index}].hold"
        message = (
            f"{source.name} holds a request for {source.hold_ms // 1_000} s, but 90% of starts "
            f"{where}({slow.told}) took up to {seconds} s, by {slow.samples} starts of this fleet: "
            f"the first client gets an error then"
        )
        hint = f"let it queue for {seconds}s, or keep a replica with minReplicas: 1"
        yield Finding(
            unit.line_of(field), "hold-below-starts", message, field, hint, Severity.WARNING
        )


def _finding(unit: Unit, spec: ModelService, slow: SlowStart) -> Finding:
    seconds = -(-slow.p90_ms // 1_000)
    where = f"on {slow.where} " if slow.where else ""
    message = (
        f"coldStart.deadline is {spec.cold_start_deadline_ms // 1_000} s, but 90% of starts "
        f"{where}({slow.told}) took up to {seconds} s, by {slow.samples} starts of this fleet"
    )
    hint = f"a start that takes longer counts as stuck; set at least {seconds}s"
    return Finding(
        unit.line_of(_FIELD), "deadline-below-starts", message, _FIELD, hint, Severity.WARNING
    )
