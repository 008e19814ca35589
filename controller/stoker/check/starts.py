"""Deadlines that this fleet's own starts do not keep. A warning: the deadline is Git's to set.

Called by check with the plan, which says what was learned.
"""

from __future__ import annotations

from stoker.errors import Finding, Severity
from stoker.model.fleet import Desired, ModelService, Unit
from stoker.model.plan import Plan, SlowStart
from stoker.model.refs import UnitRef

__all__ = ["find_late"]

_FIELD = "spec.coldStart.deadline"


def find_late(desired: Desired, plan: Plan | None) -> dict[UnitRef, tuple[Finding, ...]]:
    """One warning for each service whose deadline is below what nine of ten starts took."""
    if plan is None or all(decision.slow_start is None for decision in plan.decisions):
        return {}
    units = {unit.ref: unit for unit in desired.units}
    found: dict[UnitRef, tuple[Finding, ...]] = {}
    for decision in plan.decisions:
        unit, slow = units.get(decision.ref), decision.slow_start
        if slow is not None and unit is not None and isinstance(unit.spec, ModelService):
            found[decision.ref] = (_finding(unit, unit.spec, slow),)
    return found


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
