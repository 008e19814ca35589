"""Checks across the files of a fleet that no two units own the count of one workload.

Compiled units come in, a finding at each of them goes out that names the other; their units are
broken. Called by source once all files are compiled. Owners outside of Git (an HPA) are found
where the cluster is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.errors import Finding
from stoker.model.refs import ObjectRef
from stoker.source.compile import Compiled
from stoker.source.places import closest, dotted

__all__ = ["owner_findings"]


def owner_findings(compiled: Sequence[Compiled]) -> list[Finding]:
    """A finding for each unit whose workload another one scales too."""
    owners: dict[ObjectRef, list[Compiled]] = {}
    for unit in compiled:
        if unit.ref is not None and unit.owns is not None:
            owners.setdefault(unit.owns.ref, []).append(unit)
    findings = []
    for workload, units in owners.items():
        for unit in units if len(units) > 1 else ():
            others = [each for each in units if each is not unit]
            names = ", ".join(f"{each.ref} ({each.location})" for each in others)
            message = f"{unit.ref} and {names} would both decide the count of {workload}"
            assert unit.owns is not None
            place = closest(unit.places, unit.owns.field, unit.location)
            hint = "keep one of them"
            field = dotted(unit.owns.field)
            findings.append(
                Finding(place, "second-owner", message, field, hint, unit=str(unit.ref))
            )
    return findings
