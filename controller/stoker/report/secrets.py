"""Takes the values of known Secrets out of all texts of a unit's report.

Conditions of live objects, findings of renders and notes of changes may cite them; every form
that a report is shown in (documents, mirrors, events, commands) is made of what comes out
here. Called by report for each unit that changed.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.objects.known_secrets import KnownSecrets
from stoker.report.unit_report import ServiceReport, UnitReport

__all__ = ["without_secrets"]


def without_secrets(unit: UnitReport, secrets: KnownSecrets) -> UnitReport:
    """The same report with every message masked; names and codes stay."""
    hide = secrets.hide_text
    return replace(
        unit,
        conditions=tuple(replace(c, message=hide(c.message)) for c in unit.conditions),
        notes=tuple(replace(n, message=hide(n.message)) for n in unit.notes),
        errors=tuple(replace(e, message=hide(e.message)) for e in unit.errors),
        service=_service(unit.service, secrets) if unit.service is not None else None,
    )


def _service(service: ServiceReport, secrets: KnownSecrets) -> ServiceReport:
    hide = secrets.hide_text
    holds = (replace(h, message=hide(h.message), remedy=hide(h.remedy)) for h in service.holds)
    return replace(service, count_detail=hide(service.count_detail), holds=tuple(holds))
