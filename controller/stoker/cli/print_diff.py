"""A ChangeSet as people read it: text, unified and JSON; pure.

Order follows apply: units by name, within a unit objects in apply order. A replace pairs
old and new placement, prints the difference of identical pairs once, and is no delete.
"""

from __future__ import annotations

import json
from typing import Any

from stoker.cli.style import Style
from stoker.model.change import Action, Change, ChangeSet, FieldChange, Impact, UnitChanges
from stoker.model.fleet import Desired
from stoker.model.refs import UnitRef
from stoker.objects import names

__all__ = ["diff_json", "diff_text", "diff_unified"]

_MARKS = {
    Action.CREATE: ("+ create ", "green"),
    Action.CHANGE: ("~ change ", "yellow"),
    Action.DELETE: ("- delete ", "red"),
    Action.KEEP: ("= keep   ", "dim"),
    Action.WAIT: ("? wait   ", "cyan"),
    Action.ERROR: ("! error  ", "red"),
}
_REPLACE = ("± replace", "yellow")
NAME_WIDTH = 62
FIELD_WIDTH = 44
MAX_VALUE = 60


def diff_text(changes: ChangeSet, desired: Desired, style: Style) -> str:
    """Everything but the header and the last line; empty when nothing differs."""
    blocks = [block for unit in changes.units if (block := _unit_block(unit, desired, style))]
    others = _left_to_others(changes, style)
    if changes.prune_hold:
        blocks.append(f"Nothing is deleted: {changes.prune_hold}\n")
    return "\n".join([*blocks, *([others] if others else [])])


def _unit_block(unit: UnitChanges, desired: Desired, style: Style) -> str:
    shown = [c for c in unit.changes if c.action is not Action.UNCHANGED]
    leaving = [r for r in unit.retirements if not any(_replaced(c) == r.name for c in shown)]
    if not shown and not leaving and not unit.findings:
        return ""
    lines = [_unit_head(unit.unit, desired, style)]
    lines.extend(f"! {finding}" for finding in unit.findings)
    replaced = [c for c in shown if c.replaces is not None and c.action is Action.CREATE]
    lines.extend(_replaces(replaced, style))
    for change in shown:
        if change not in replaced:
            lines.extend(_change_lines(change, style))
    lines.extend(
        f"{style.paint('- retire ', 'red')} Deployment {r.name}  {r.stage}: {r.reason}"
        for r in leaving
    )
    return "\n".join(lines) + "\n"


def _unit_head(ref: UnitRef, desired: Desired, style: Style) -> str:
    unit = desired.unit(ref)
    place = unit.location.path if unit else "(not in Git)"
    title = f"{ref.kind} {ref.short}"
    return f"{style.paint(title, 'bold')}{' ' * max(2, NAME_WIDTH + 10 - len(title))}{place}"


def _replaced(change: Change) -> str:
    return change.replaces.name if change.replaces is not None else ""


def _node_of(change: Change) -> str:
    body = change.payload or (change.manifest.body if change.manifest else {})
    annotations: dict[str, Any] = (body.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(names.NODE, ""))


def _replaces(changes: list[Change], style: Style) -> list[str]:
    if not changes:
        return []
    mark, colour = _REPLACE
    lines = [
        f"{style.paint(mark, colour)} {change.ref.kind} {change.ref.name}  {_node_of(change)}"
        f"   for {_replaced(change)}"
        for change in changes
    ]
    fields = changes[0].fields
    if fields and all(change.fields == fields for change in changes):
        lines.append(f"    beside the node, the same {len(fields)} fields in all {len(changes)}:")
        lines.extend(_field_line(field) for field in fields)
    else:
        for change in changes:
            lines.extend(_field_line(field) for field in change.fields)
    return lines


def _change_lines(change: Change, style: Style) -> list[str]:
    mark, colour = _MARKS.get(change.action, ("  ", "dim"))
    node = _node_of(change) if change.ref.kind == "Deployment" else ""
    place = f"{change.ref.namespace}/" if change.ref.namespace else ""
    name = f"{change.ref.kind} {place}{change.ref.name}" + (f"  {node}" if node else "")
    head = f"{style.paint(mark, colour)} {name}"
    if change.action is Action.CHANGE:
        pad = " " * max(2, NAME_WIDTH - len(name))
        head += pad + ("in place" if change.impact is Impact.NONE else str(change.impact))
    if change.note:
        head += f"\n    {change.note}" + (f" [{change.code}]" if change.code else "")
    lines = [head]
    if change.action in {Action.CHANGE, Action.ERROR}:
        lines.extend(_field_line(field) for field in change.fields)
    lines.extend(f"    held back until the next restart: {path}" for path in change.held_back)
    return lines


def _field_line(field: FieldChange) -> str:
    path = f".{field.path}" if not field.path.startswith(".") else field.path
    return f"    {path:{FIELD_WIDTH}}  {_value(field.before)} -> {_value(field.after)}"


def _value(value: Any) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    text = text.replace("\n", "⏎")
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _left_to_others(changes: ChangeSet, style: Style) -> str:
    lines = [
        f"  {change.ref.kind} {change.ref.name}  .{path}  {owner}"
        for unit in changes.units
        for change in unit.changes
        for path, owner in change.left_to_others
    ]
    if not lines:
        return ""
    return "\n".join([style.paint("Left to others (not drift)", "bold"), *lines]) + "\n"


def diff_unified(changes: ChangeSet) -> str:
    """One `---`/`+++` block an object, each field as a removed and an added line."""
    lines: list[str] = []
    for unit in changes.units:
        for change in unit.changes:
            if change.action not in {Action.CREATE, Action.CHANGE, Action.DELETE}:
                continue
            before = "/dev/null" if change.action is Action.CREATE else f"live/{change.ref.key}"
            after = "/dev/null" if change.action is Action.DELETE else f"git/{change.ref.key}"
            lines += [f"--- {before}", f"+++ {after}"]
            for field in change.fields:
                lines.append(f"@@ {field.path} @@")
                if field.before is not None:
                    lines.append(f"-{json.dumps(field.before, sort_keys=True, default=str)}")
                if field.after is not None:
                    lines.append(f"+{json.dumps(field.after, sort_keys=True, default=str)}")
    return "\n".join(lines) + ("\n" if lines else "")


def diff_json(changes: ChangeSet, desired: Desired, last: dict[str, Any]) -> dict[str, Any]:
    """The versioned JSON form: `stoker schema Diff` describes it."""
    units = []
    for unit in changes.units:
        objects = [
            {
                "action": "replace" if change.replaces is not None else str(change.action),
                "kind": change.ref.kind,
                "apiVersion": change.ref.api_version,
                "namespace": change.ref.namespace,
                "name": change.ref.name,
                "impact": str(change.impact),
                **({"code": change.code} if change.code else {}),
                **({"note": change.note} if change.note else {}),
                **({"replaces": _replaced(change)} if change.replaces is not None else {}),
                "fields": [
                    {"path": f.path, "before": f.before, "after": f.after} for f in change.fields
                ],
                "leftToOthers": [
                    {"path": path, "owner": owner} for path, owner in change.left_to_others
                ],
                "heldBack": list(change.held_back),
            }
            for change in unit.changes
            if change.action is not Action.UNCHANGED or change.left_to_others
        ]
        retiring = [
            {"name": r.name, "stage": str(r.stage), "reason": r.reason} for r in unit.retirements
        ]
        findings = [_finding(f) for f in unit.findings]
        if objects or retiring or findings:
            units.append(
                {
                    "unit": str(unit.unit),
                    "objects": objects,
                    "retiring": retiring,
                    "findings": findings,
                }
            )
    return {
        "apiVersion": f"{names.GROUP}/{names.VERSION}",
        "kind": "Diff",
        "fleet": desired.fleet.name,
        "revision": str(desired.revision),
        "units": units,
        "pruneHold": changes.prune_hold,
        "summary": last,
    }


def _finding(finding: Any) -> dict[str, Any]:
    return {
        "code": finding.code,
        "message": finding.message,
        "path": finding.location.path,
        "line": finding.location.line,
        "column": finding.location.column,
    }
