"""The part NEEDS ATTENTION: what is wrong, since when, and what would change it.

Called by render_status with the fleet's document and all unit reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.times import to_milliseconds
from stoker.objects.health_fields import integer, items, mapping, text
from stoker.objects.wishes import asks_for_a_node
from stoker.report.status_rows import ago, clean
from stoker.report.unit_report import ErrorLine, ServiceReport, UnitReport
from stoker.report.units import unit_ref_from_text

__all__ = ["trouble_lines"]

ERRORS_SHOWN = 3
FULL = "HeldNoCapacity"
COMMANDS_WIDE = 54
"""Characters of a command before what it does; more where one is longer."""


def trouble_lines(
    status: dict[str, Any], units: Mapping[str, UnitReport], now_ms: int
) -> list[str]:
    """The fleet's own trouble, then each entry of `attention`, in its order."""
    lines = _fleet(status, units)
    for entry in items(status, "attention"):
        lines += _entry(entry, units.get(text(entry, "unit")), now_ms)
    if status.get("truncated") is True:
        lines.append("  … and more: see units/ on the status branch")
    return lines


def _fleet(status: dict[str, Any], units: Mapping[str, UnitReport]) -> list[str]:
    """Errors that belong to no unit, led by the condition Stalled or a held prune.

    What an error line says already is not said again by the condition.
    """
    known = {(e.code, e.path, e.line) for unit in units.values() for e in unit.errors}
    errors = [
        error
        for entry in items(status, "errors")
        if ((error := _error_line(entry)).code, error.path, error.line) not in known
    ]
    lines = []
    for condition in items(status, "conditions"):
        stalled = text(condition, "type") == "Stalled" and text(condition, "status") == "True"
        held = text(condition, "type") == "Ready" and text(condition, "reason") == "PruneHeld"
        if stalled or held:
            message = text(condition, "message")
            if any(error.message in message for error in errors):
                message = ""
            reason = clean(text(condition, "reason"))
            lines.append(f"! fleet   {reason}   {clean(message)}".rstrip())
    return [*lines, *(f"    {_error(error)}" for error in errors)]


def _error_line(entry: dict[str, Any]) -> ErrorLine:
    return ErrorLine(
        text(entry, "code"),
        text(entry, "message"),
        text(entry, "path"),
        integer(entry, "line", 0),
        integer(entry, "column", 0),
    )


def _entry(entry: dict[str, Any], unit: UnitReport | None, now_ms: int) -> list[str]:
    ref = unit_ref_from_text(text(entry, "unit"))
    name = clean(ref.short if ref is not None else text(entry, "unit"))
    reason = clean(text(entry, "reason"))
    lines = [f"! {name}  {_state(entry, unit)}{_for(entry, now_ms)}   {reason}"]
    lines += [f"    {line}" for line in _why(entry, unit)]
    following = clean(text(entry, "next"))
    if following and not (unit is not None and unit.stalled):
        lines.append(f"    Next: {following}")
    if ref is not None and ref.kind == "ModelService":
        lines += _commands(clean(ref.name), unit.service if unit is not None else None)
    return lines


def _commands(name: str, service: ServiceReport | None) -> list[str]:
    """What a person may type next, and what it does."""
    found = [(f"stoker explain {name}", "why, node by node")]
    if service is not None:
        asked = next((hold.new_node for hold in service.holds if hold.new_node), "")
        if asked:
            found.append((asks_for_a_node(name), f"ask for a node: {clean(asked)}"))
        if _may_do_with_less(service):
            fewer = service.counts.ready
            command = f"stoker override {name} --replicas {fewer} --for 4h --reason TEXT"
            found.append((command, f"accept {fewer}, silence this"))
    width = max(COMMANDS_WIDE, *(len(command) + 3 for command, _ in found))
    return [f"    {command.ljust(width)}{what}" for command, what in found]


def _may_do_with_less(service: ServiceReport) -> bool:
    """Whether only want of room keeps it from its count, which is Git's, and its floor is kept."""
    counts = service.counts
    full = any(hold.reason == FULL for hold in service.holds) and not counts.warming
    ours = service.count_source in {"Git", "Override"}
    enough = max(1, counts.floor) <= counts.ready < (counts.desired or 0)
    return full and ours and enough


def _state(entry: dict[str, Any], unit: UnitReport | None) -> str:
    replicas = mapping(entry, "replicas")
    if replicas:
        desired = replicas.get("desired")
        want = desired if isinstance(desired, int) else "?"
        return f"{integer(replicas, 'ready', 0)}/{want} Ready"
    return unit.health.value if unit is not None else "Unknown"


def _for(entry: dict[str, Any], now_ms: int) -> str:
    try:
        return f" for {ago(now_ms - to_milliseconds(text(entry, 'since')))}"
    except ValueError:
        return ""


def _why(entry: dict[str, Any], unit: UnitReport | None) -> list[str]:
    """What happened, what stands in the way, how far it is from the floor, errors."""
    lines = []
    cause = mapping(entry, "cause")
    if cause:
        at = f" at {clean(text(cause, 'at'))[11:]}" if text(cause, "at") else ""
        lines.append(
            f"Node {clean(text(cause, 'node', 'unknown'))}: {clean(text(cause, 'kind'))}{at}."
        )
    if unit is None:
        return lines
    if unit.service is not None:
        lines += [clean(hold.message) for hold in unit.service.holds]
        lines += _floor(entry)
        if unit.service.rejected:
            counted = ", ".join(f"{count} {clean(rule)}" for rule, count in unit.service.rejected)
            lines.append(f"Nodes looked at: {counted}.")
    lines += [_error(error) for error in unit.errors[:ERRORS_SHOWN]]
    told = unit.condition("Healthy")
    if not lines and told is not None and told.message:
        lines.append(clean(told.message))
    return lines


def _floor(entry: dict[str, Any]) -> list[str]:
    replicas = mapping(entry, "replicas")
    ready, floor = integer(replicas, "ready", 0), integer(replicas, "floor", 0)
    if not floor:
        return []
    return [
        f"{'Above' if ready > floor else 'At' if ready == floor else 'Below'} the floor ({floor})."
    ]


def _error(error: ErrorLine) -> str:
    place = f"{error.path}:{error.line}:{error.column}: " if error.line else ""
    if not place and error.path:
        place = f"{error.path}: "
    return clean(f"{place}{error.message} [{error.code}]")
