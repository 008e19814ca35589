"""What a person should look at, worst first, at most 20. Called by documents.

In: all unit reports. A unit is here while a person must act, or while it is not healthy
for any reason but a start on its way, or leaves nodes out because starts failed there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.model.outcome import Condition, Health, Sync
from stoker.report.conditions import Reason
from stoker.report.unit_report import NodeLine, UnitReport

__all__ = ["LISTED", "attention"]

LISTED = 20
QUARANTINED = "NodesQuarantined"

_ORDER = (Health.DEGRADED, Health.MISSING, Health.UNKNOWN, Health.PROGRESSING)


def attention(units: Iterable[UnitReport]) -> tuple[list[dict[str, Any]], bool]:
    """The list, and whether it was cut.

    Order: below its floor, then by health, stalled ones first, then longest first, then name.
    """
    found = sorted((unit for unit in units if _needs_a_person(unit)), key=_badness)
    return [_entry(unit) for unit in found[:LISTED]], len(found) > LISTED


def _needs_a_person(unit: UnitReport) -> bool:
    if unit.stalled or unit.health in {Health.DEGRADED, Health.MISSING, Health.UNKNOWN}:
        return True
    return bool(_quarantined(unit))


def _quarantined(unit: UnitReport) -> list[NodeLine]:
    """Nodes that it leaves out because starts failed there: somebody should look at them."""
    lines = unit.service.nodes if unit.service is not None else ()
    return [line for line in lines if line.rule == "quarantined"]


def _below_floor(unit: UnitReport) -> bool:
    return unit.service is not None and unit.service.counts.ready < unit.service.counts.floor


def _badness(unit: UnitReport) -> tuple[bool, int, bool, str, str]:
    rank = _ORDER.index(unit.health) if unit.health in _ORDER else len(_ORDER)
    return (not _below_floor(unit), rank, not unit.stalled, _told(unit).since, str(unit.ref))


def _told(unit: UnitReport) -> Condition:
    """The condition that says what is wrong."""
    kind = "Stalled" if unit.stalled else "Healthy"
    return unit.condition(kind) or Condition(kind, "Unknown", Reason.UNKNOWN, "", "")


def _is_well(unit: UnitReport) -> bool:
    """Whether only a node of it is not."""
    return not unit.stalled and unit.health in {Health.HEALTHY, Health.PROGRESSING}


def _entry(unit: UnitReport) -> dict[str, Any]:
    told = _told(unit)
    entry: dict[str, Any] = {
        "unit": str(unit.ref),
        "file": f"units/{unit.ref.file_name}",
        "reason": QUARANTINED if _is_well(unit) else told.reason,
        "since": told.since,
    }
    service = unit.service
    if service is not None:
        counts = service.counts
        entry["replicas"] = {
            "desired": counts.desired,
            "ready": counts.ready,
            "warming": counts.warming,
            "floor": counts.floor,
        }
        if service.cause is not None:
            cause = service.cause
            entry["cause"] = {"node": cause.node, "kind": cause.kind, "at": cause.at}
    entry["next"] = _next(unit)
    line = service.count_line if service is not None and not unit.stalled else unit.line
    entry["source"] = {"path": unit.path, "line": line or unit.line}
    return entry


def _next(unit: UnitReport) -> str:
    """What would change it, in a few words; empty when nothing is known."""
    if unit.stalled and unit.errors:
        error = unit.errors[0]
        place = f" in {error.path}:{error.line}" if error.line else ""
        return f"{error.code}{place}: {error.message}"
    if unit.service is not None and unit.service.holds:
        hold = unit.service.holds[0]
        return hold.remedy or hold.message
    if nodes := _quarantined(unit):
        return f"{nodes[0].node} left out {nodes[0].verdict}"
    if unit.sync is Sync.UNKNOWN or unit.health is Health.UNKNOWN:
        return "read again in the next pass"
    return ""
