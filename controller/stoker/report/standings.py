"""How a unit stood at the last report, for whoever decides what may go on.

In: what was reported of it. Out: its Standing. Called by previous.
"""

from __future__ import annotations

from stoker.model.flow import Standing
from stoker.model.outcome import Sync
from stoker.report.unit_report import UnitReport
from stoker.report.units import unit_ref_from_text

__all__ = ["standing_of"]


def standing_of(unit: UnitReport) -> Standing:
    """How one unit stood."""
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
