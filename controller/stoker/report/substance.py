"""What makes a commit worthwhile: a revision, condition, error, placement or count that changed.

In: the fleet's conditions, revisions and errors and all units. Out: a digest. Messages, times,
estimates and pool sums are left out, so that an idle fleet never commits (rows 13, 99); only
that a dependency was not looked at yet is told anew once it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.decide.gates import NOT_LOOKED_AT
from stoker.model.codec import digest
from stoker.model.outcome import Condition
from stoker.report.unit_report import ServiceReport, UnitReport

__all__ = ["substance_digest", "unit_substance"]


def substance_digest(
    conditions: Iterable[Condition],
    attempted: str,
    applied: str,
    errors: Iterable[tuple[str, str, int]],
    units: Iterable[str],
) -> str:
    """Digest everything of substance; 64 hex digits, equal for equal substance.

    `units` is what `unit_substance` gives of each unit, in the order of their refs.
    """
    told = [list(error) for error in errors]
    return digest([attempted, applied, _conditions(conditions), told, list(units)])


def unit_substance(unit: UnitReport) -> str:
    """The same of one unit."""
    return digest(_unit(unit))


def _conditions(conditions: Iterable[Condition]) -> list[list[str]]:
    return [[c.type, c.status, c.reason] for c in conditions]


def _unit(unit: UnitReport) -> list[Any]:
    return [
        str(unit.ref),
        unit.sync.value,
        unit.health.value,
        _conditions(unit.conditions),
        any(NOT_LOOKED_AT in c.message for c in unit.conditions),
        unit.digest,
        unit.applied_revision,
        unit.objects,
        unit.synced,
        [[note.object, note.state, note.reason] for note in unit.notes],
        [[error.code, error.path, error.line] for error in unit.errors],
        _service(unit.service) if unit.service is not None else None,
    ]


def _service(service: ServiceReport) -> list[Any]:
    counts = service.counts
    return [
        [counts.desired, counts.ready, counts.warming, counts.floor, counts.stuck],
        service.count_source,
        bool(service.count_refused),
        service.model_revision,
        service.rev,
        [[p.name, p.node, p.replicas, p.ready, p.warming] for p in service.placements],
        [[r.name, r.stage, r.keep] for r in service.retirements],
        [hold.reason for hold in service.holds],
        [[p.node, p.state] for p in service.prefetches],
        [line.node for line in service.nodes if line.rule == "quarantined"],
        bool(service.when_full),
    ]
