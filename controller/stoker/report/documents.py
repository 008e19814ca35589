"""status.yaml, laid out as ux.md shows it. Called by report.

In: the fleet's judgement and conditions, all unit reports. Out: one Document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stoker.errors import Finding
from stoker.model.outcome import Condition, Document, Health, Sync
from stoker.model.times import rfc3339
from stoker.objects.names import API_VERSION
from stoker.report.attention import attention
from stoker.report.gpus import gpus_by_pool
from stoker.report.history import HistoryEntry, history_to_data
from stoker.report.inputs import Pending, ReportInputs
from stoker.report.previous import STATUS_PATH
from stoker.report.unit_report import UnitReport
from stoker.report.unit_state import LISTED, error_lines
from stoker.report.units import conditions_to_data, errors_to_data

__all__ = ["FleetFacts", "duration", "status_document"]


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """What report worked out about the fleet as a whole."""

    sync: Sync
    health: Health
    conditions: tuple[Condition, ...]
    last_attempted: str
    last_applied: str
    decision_digest: str
    history: tuple[HistoryEntry, ...]
    drift_hours: tuple[tuple[int, int], ...]
    """Objects put right by hour since the epoch, of the last 24 hours."""
    pending: Pending | None = None


def status_document(
    inputs: ReportInputs, fleet: FleetFacts, units: Sequence[UnitReport]
) -> Document:
    """Lay out the fleet's status; lists are cut at 20 and `truncated` says so."""
    desired = inputs.desired
    listed, cut = attention(units)
    errors = error_lines(_fleet_findings(inputs))
    unit_errors = tuple(error for unit in units for error in unit.errors)
    all_errors = (*errors, *(error for error in unit_errors if error not in errors))
    heartbeat = desired.fleet.status.heartbeat_ms if desired is not None else 3_600_000
    data: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "FleetStatus",
        "metadata": {"name": desired.fleet.name if desired else inputs.identity.fleet_name},
        "clusterUID": inputs.identity.cluster_uid,
        "controller": {
            "version": inputs.identity.version,
            "observedAt": rfc3339(inputs.now_ms),
            "heartbeat": duration(heartbeat),
        },
        "source": {"ref": inputs.identity.source_ref, "path": inputs.identity.source_path},
        "lastAttemptedRevision": fleet.last_attempted,
        "lastAppliedRevision": fleet.last_applied,
        **_pending(fleet.pending),
        "decisionDigest": f"sha256:{fleet.decision_digest}" if fleet.decision_digest else "",
        "sync": {"status": fleet.sync.value},
        "health": {"status": fleet.health.value},
        "conditions": conditions_to_data(fleet.conditions),
        "summary": _summary(units, sum(count for _, count in fleet.drift_hours)),
        "gpus": gpus_by_pool(desired, inputs.snapshot) if desired is not None else [],
        "attention": listed,
        "errors": errors_to_data(all_errors[:LISTED]),
        "truncated": cut or len(all_errors) > LISTED,
        "history": history_to_data(fleet.history),
    }
    return Document(STATUS_PATH, data)


def duration(milliseconds: int) -> str:
    """A GEP-2257 duration: `1h`, `1m30s`, `0s`; below a second in `ms`."""
    seconds, rest = divmod(milliseconds, 1000)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"), (rest, "ms"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def _pending(found: Pending | None) -> dict[str, Any]:
    """A newer revision that waits for its window; left out where there is none."""
    if found is None:
        return {}
    until = rfc3339(found.until_ms) if found.until_ms is not None else ""
    entry = {"revision": str(found.revision), "windows": list(found.windows), "until": until}
    return {"pending": entry}


def _summary(units: Sequence[UnitReport], drift_repaired: int) -> dict[str, int]:
    services = [unit.service for unit in units if unit.service is not None]
    return {
        "units": len(units),
        "synced": sum(1 for unit in units if unit.sync is Sync.SYNCED),
        "healthy": sum(1 for unit in units if unit.health in {Health.HEALTHY, Health.SUSPENDED}),
        "objects": sum(unit.objects for unit in units),
        "held": sum(1 for service in services if service.holds),
        "overrides": sum(
            (service.count_source == "Override") + bool(service.when_full) for service in services
        ),
        "suspended": sum(1 for unit in units if unit.suspended),
        "driftRepaired24h": drift_repaired,
    }


def _fleet_findings(inputs: ReportInputs) -> tuple[Finding, ...]:
    """Findings that belong to no unit, and the failure of the pass."""
    found = [f for f in inputs.findings if not f.unit]
    if inputs.desired is not None:
        found += [f for f in inputs.desired.findings if not f.unit]
    if inputs.failure is not None:
        found.append(inputs.failure)
    if inputs.outcome is not None and inputs.outcome.failure is not None:
        found.append(inputs.outcome.failure)
    return (*found, *inputs.warnings)
