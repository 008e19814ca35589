"""What people asked for and what waits for its time: suspensions, overrides, a pending revision.

Called by render_status with the fleet's document and all unit reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.model.outcome import Condition
from stoker.model.times import to_milliseconds
from stoker.objects.health_fields import items, mapping, text
from stoker.report.status_rows import ago, clean
from stoker.report.unit_report import UnitReport
from stoker.report.units import conditions_from_data

__all__ = ["ask_lines"]

LISTED = 20
_WAITS = frozenset({"WaitingForDependency", "ChangeWindowClosed"})


def ask_lines(status: dict[str, Any], units: Iterable[UnitReport], now_ms: int) -> list[str]:
    """A line each, the fleet's first; at most 20 units. Empty where nobody asked for anything."""
    lines = []
    pending = mapping(status, "pending")
    if pending:
        ref, _, commit = text(pending, "revision").partition("@sha1:")
        until = text(pending, "until")
        when = f"applied from {until} on" if until else "not applied"
        windows = ", ".join(str(name) for name in pending.get("windows") or ())
        lines.append(f"PENDING    {ref}@{commit[:7]}   {when} (change windows: {windows})")
    for condition in conditions_from_data(items(status, "conditions")):
        if condition.type == "Suspended":
            lines.append(_suspended("the fleet", condition, now_ms))
    fleet_wide = bool(lines) and lines[-1].startswith("SUSPENDED")
    of_units = [line for unit in units for line in _unit(unit, now_ms, fleet_wide=fleet_wide)]
    lines += of_units[:LISTED]
    if len(of_units) > LISTED:
        lines.append(f"  … and {len(of_units) - LISTED} more: see units/ on the status branch")
    return [clean(line) for line in lines]


def _unit(unit: UnitReport, now_ms: int, *, fleet_wide: bool) -> list[str]:
    lines = []
    told = unit.condition("Suspended")
    if told is not None and not fleet_wide:
        lines.append(_suspended(unit.ref.short, told, now_ms))
    if unit.service is not None and unit.service.count_source == "Override":
        wants = unit.service.counts.desired
        lines.append(f"OVERRIDE   {unit.ref.short}   {wants} {unit.service.count_detail}")
    if unit.service is not None and unit.service.count_refused:
        lines.append(f"OVERRIDE   {unit.ref.short}   {unit.service.count_refused}")
    if unit.service is not None and unit.service.when_full:
        lines.append(f"OVERRIDE   {unit.ref.short}   whenFull {unit.service.when_full}")
    ready = unit.condition("Ready")
    if ready is not None and ready.reason in _WAITS:
        lines.append(f"WAITING    {unit.ref.short}   {ready.message}")
    return lines


def _suspended(what: str, condition: Condition, now_ms: int) -> str:
    return f"SUSPENDED  {what}   for {_age(condition.since, now_ms)}   {condition.message}"


def _age(since: str, now_ms: int) -> str:
    try:
        return ago(now_ms - to_milliseconds(since))
    except ValueError:
        return "?"
