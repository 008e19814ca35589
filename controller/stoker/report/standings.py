"""How units stood at the last report, for whoever decides what may go on.

In: what was reported before. Out: a Standing for each unit. Called by holding.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.flow import Standing
from stoker.model.outcome import Sync
from stoker.model.refs import UnitRef
from stoker.report.previous import PreviousStatus
from stoker.report.unit_report import UnitReport
from stoker.report.units import unit_ref_from_text

__all__ = ["standings_of"]


def standings_of(previous: PreviousStatus) -> Mapping[UnitRef, Standing]:
    """One entry a unit that was ever reported on and not forgotten since."""
    return {ref: _standing(unit) for ref, unit in previous.units.items()}


def _standing(unit: UnitReport) -> Standing:
    told = unit.condition("Healthy")
    ready = unit.condition("Ready")
    synced = unit.sync is Sync.SYNCED
    healthy = told is not None and told.status == "True"
    why = told if synced else ready
    depends_on = (unit_ref_from_text(text) for text in unit.depends_on)
    return Standing(
        ref=unit.ref,
        digest=unit.digest,
        synced=synced,
        healthy=healthy,
        suspended=unit.suspended,
        applied=unit.applied_revision,
        why=f"{why.reason}: {why.message}".rstrip(": ") if why is not None else "",
        depends_on=tuple(ref for ref in depends_on if ref is not None),
    )
