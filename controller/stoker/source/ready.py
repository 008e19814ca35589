"""Compiles the expressions of `dependsOn[].ready`: each fault at its line and column.

A unit's spec after defaults and patches comes in, with the draft that knows how its file is
written; findings go out, and the unit is broken. Called by compile.
"""

from __future__ import annotations

from stoker.cel import Cel
from stoker.errors import Finding, SourceLocation
from stoker.model.expression import Fault
from stoker.source.layers import Layer
from stoker.source.places import Field, closest, dotted
from stoker.source.schema_flow import FlowSpec
from stoker.source.text_places import place_in_text
from stoker.source.unit_file import Draft

__all__ = ["ready_findings"]

_HINT = "the objects are in the list objects: objects.all(o, o.kind != 'Deployment' || ...)"


def ready_findings(spec: FlowSpec, draft: Draft, merged: Layer, unit: str) -> list[Finding]:
    """Everything the compiler says about the expressions of one unit, in their order."""
    findings = []
    for number, entry in enumerate(spec.depends_on):
        if entry.ready is None:
            continue
        at: Field = ("spec", "dependsOn", number, "ready")
        for fault in Cel().faults(entry.ready, about_all=True):
            place = _place(draft, merged, at, entry.ready, fault)
            hint = _HINT if "undeclared reference" in fault.message else ""
            findings.append(
                Finding(place, "invalid-expression", fault.message, dotted(at), hint, unit=unit)
            )
    return findings


def _place(draft: Draft, merged: Layer, at: Field, text: str, fault: Fault) -> SourceLocation:
    """Within the text where the unit's own file has it; a default or patch is told by its field."""
    place = closest(merged.places, at, draft.location)
    written = draft.texts.get(at)
    if written is None or place != draft.layer.places.get(at):
        return place
    return place_in_text(draft.lines, *written, text, fault.line, fault.column)
