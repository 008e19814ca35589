"""A ChangeSet as people and programs read it: text, unified, names and JSON; pure.

Order follows apply: units by name, within a unit objects in apply order. A replace pairs
old and new placement, prints the difference of identical pairs once, and is no delete.
Everything printed went through objects.masks, in the diff stage or here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from stoker.cli.style import Style
from stoker.errors import Finding
from stoker.model.change import Action, Change, ChangeSet, FieldChange, Impact, UnitChanges
from stoker.model.fleet import Desired
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects import names
from stoker.objects.masks import masked

__all__ = ["diff_json", "diff_names", "diff_text", "diff_unified", "within"]

_MARKS = {
    Action.CREATE: ("+ create ", "green"),
    Action.CHANGE: ("~ change ", "yellow"),
    Action.RECREATE: ("± recreate", "red"),
    Action.DELETE: ("- delete ", "red"),
    Action.KEEP: ("= keep   ", "dim"),
    Action.WAIT: ("? wait   ", "cyan"),
    Action.ERROR: ("! error  ", "red"),
}
_REPLACE = ("± replace", "yellow")
NAME_WIDTH = 62
FIELD_WIDTH = 44
MAX_VALUE = 60


def within(changes: ChangeSet, namespace: str) -> ChangeSet:
    """Only the units of one namespace; all of them when it is empty."""
    if not namespace:
        return changes
    return replace(changes, units=tuple(u for u in changes.units if u.unit.namespace == namespace))


# ---------------------------------------------------------------------------- text
def diff_text(changes: ChangeSet, desired: Desired, style: Style) -> str:
    """Everything but the header and the last line; empty when nothing differs."""
    hold = changes.prune_hold
    blocks = [block for unit in changes.units if (block := _unit_block(unit, desired, hold, style))]
    others = _left_to_others(changes, style)
    if hold:
        blocks.append(f"Nothing is deleted: {hold}\n")
    return "\n".join([*blocks, *([others] if others else [])])


def _unit_block(unit: UnitChanges, desired: Desired, hold: str, style: Style) -> str:
    shown = [c for c in unit.changes if c.action is not Action.UNCHANGED]
    leaving = [r for r in unit.retirements if not any(_replaced(c) == r.name for c in shown)]
    if not shown and not leaving and not unit.findings:
        return ""
    lines = [_unit_head(unit.unit, desired, style)]
    lines.extend(f"! {finding}" for finding in unit.findings)
    replaced = [c for c in shown if c.replaces is not None and c.action is Action.CREATE]
    lines.extend(_replaces(replaced, style))
    lines.extend(_changes([c for c in shown if c not in replaced], hold, style))
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


def _body(change: Change) -> dict[str, Any]:
    return change.payload or (change.manifest.body if change.manifest else {})


def _node_of(change: Change) -> str:
    annotations: dict[str, Any] = (_body(change).get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(names.NODE, ""))


def _replaces(changes: list[Change], style: Style) -> Iterator[str]:
    """Pairs with the same difference together, and what differs once below them."""
    mark, colour = _REPLACE
    for fields, pairs in _by_fields(changes):
        for change in pairs:
            yield (
                f"{style.paint(mark, colour)} {change.ref.kind} {change.ref.name}"
                f"  {_node_of(change)}   for {_replaced(change)}"
            )
        if len(pairs) > 1 and fields:
            count = f"{len(fields)} fields" if len(fields) > 1 else "field"
            yield f"    beside the node, the same {count} in all {len(pairs)}:"
        yield from _field_lines(fields)


def _by_fields(
    changes: list[Change],
) -> list[tuple[tuple[FieldChange, ...], list[Change]]]:
    groups: list[tuple[tuple[FieldChange, ...], list[Change]]] = []
    for change in changes:
        for fields, pairs in groups:
            if fields == change.fields:
                pairs.append(change)
                break
        else:
            groups.append((change.fields, [change]))
    return groups


def _changes(changes: list[Change], hold: str, style: Style) -> Iterator[str]:
    """Each object; a note that several in a row share is printed once, below the last."""
    sharing = 0
    for number, change in enumerate(changes):
        following = changes[number + 1] if number + 1 < len(changes) else None
        yield _change_head(change, style)
        details = list(_details(change))
        sharing += 1
        if following is not None and not details and _note(following) == _note(change):
            continue
        if (note := _note(change)) and change.note != hold:
            yield f"    for these {sharing}: {note}" if sharing > 1 else f"    {note}"
        yield from details
        sharing = 0


def _note(change: Change) -> str:
    code = f" [{change.code}]" if change.note and change.code else ""
    return change.note + code


def _change_head(change: Change, style: Style) -> str:
    mark, colour = _MARKS.get(change.action, ("         ", "dim"))
    node = _node_of(change) if change.ref.kind == "Deployment" else ""
    place = f"{change.ref.namespace}/" if change.ref.namespace else ""
    name = f"{change.ref.kind} {place}{change.ref.name}" + (f"  {node}" if node else "")
    head = f"{style.paint(mark, colour)} {name}"
    if change.action is Action.CHANGE:
        pad = " " * max(2, NAME_WIDTH - len(name))
        head += pad + ("in place" if change.impact is Impact.NONE else str(change.impact))
    return head


def _details(change: Change) -> Iterator[str]:
    if change.action in {Action.CHANGE, Action.RECREATE, Action.ERROR}:
        yield from _field_lines(change.fields)
    yield from (f"    held back until the next restart: {path}" for path in change.held_back)


def _field_lines(fields: Iterable[FieldChange]) -> Iterator[str]:
    shown = [(_short(f.path), _value(f.before), _value(f.after)) for f in fields]
    width = max([FIELD_WIDTH, *(len(path) for path, _, _ in shown if len(path) <= NAME_WIDTH)])
    return (f"    {path:{width}}  {before} -> {after}" for path, before, after in shown)


def _short(path: str) -> str:
    """`.template.containers[engine].args[3]`: pod templates and keys by name need no more."""
    for inside in ("spec.template.spec.", "spec.template.metadata."):
        if path.startswith(inside):
            path = f"template.{path.removeprefix(inside)}"
    return "." + path.lstrip(".").replace("[name=", "[")


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
    lines += [
        f"  {change.ref.kind} {change.ref.name}  {change.note} [{change.code}]"
        for unit in changes.units
        for change in unit.changes
        if change.action is Action.UNCHANGED and change.code
    ]
    if not lines:
        return ""
    return "\n".join([style.paint("Left to others (not drift)", "bold"), *lines]) + "\n"


# --------------------------------------------------------------- unified and names
def diff_unified(changes: ChangeSet) -> str:
    """One `---`/`+++` block an object: new ones whole, changed ones field by field."""
    lines: list[str] = []
    for change in _written(changes):
        old = change.replaces or change.ref
        created = change.action is Action.CREATE and change.replaces is None
        before = "/dev/null" if created else f"live/{_path(old)}"
        after = "/dev/null" if change.action is Action.DELETE else f"git/{_path(change.ref)}"
        lines += [f"--- {before}", f"+++ {after}"]
        lines += _whole(change) if created else _hunks(change.fields)
    return "\n".join(lines) + ("\n" if lines else "")


def _path(ref: ObjectRef) -> str:
    return ref.key.lstrip("/")


def _written(changes: ChangeSet) -> Iterator[Change]:
    written = {Action.CREATE, Action.CHANGE, Action.RECREATE, Action.DELETE}
    return (c for unit in changes.units for c in unit.changes if c.action in written)


def _whole(change: Change) -> list[str]:
    import yaml

    body = masked(change.ref.kind, (), _body(change))
    text = yaml.dump(body, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return [f"+{line}" for line in text.splitlines()]


def _hunks(fields: Iterable[FieldChange]) -> list[str]:
    lines = []
    for field in fields:
        lines.append(f"@@ {field.path} @@")
        if field.before is not None:
            lines.append(f"-{json.dumps(field.before, sort_keys=True, default=str)}")
        if field.after is not None:
            lines.append(f"+{json.dumps(field.after, sort_keys=True, default=str)}")
    return lines


def diff_names(changes: ChangeSet) -> str:
    """`ACTION KIND/NAMESPACE/NAME` a line, for scripts; nothing for what stays."""
    lines = []
    for unit in changes.units:
        for change in unit.changes:
            if change.action is not Action.UNCHANGED:
                action = "replace" if change.replaces is not None else str(change.action)
                place = f"{change.ref.namespace}/" if change.ref.namespace else ""
                lines.append(f"{action} {change.ref.kind}/{place}{change.ref.name}")
        lines += [f"retire Deployment/{unit.unit.namespace}/{r.name}" for r in unit.retirements]
    return "".join(f"{line}\n" for line in lines)


# ---------------------------------------------------------------------------- JSON
def diff_json(changes: ChangeSet, desired: Desired, last: dict[str, Any]) -> dict[str, Any]:
    """The versioned JSON form: `stoker schema Diff` describes it."""
    units = []
    for unit in changes.units:
        objects = [
            _object(change)
            for change in unit.changes
            if change.action is not Action.UNCHANGED or change.left_to_others or change.code
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
        "summary": {_camel(name): count for name, count in last.items()},
    }


def _object(change: Change) -> dict[str, Any]:
    return {
        "action": "replace" if change.replaces is not None else str(change.action),
        "kind": change.ref.kind,
        "apiVersion": change.ref.api_version,
        "namespace": change.ref.namespace,
        "name": change.ref.name,
        "impact": str(change.impact),
        **({"code": change.code} if change.code else {}),
        **({"note": change.note} if change.note else {}),
        **({"replaces": _replaced(change)} if change.replaces is not None else {}),
        "fields": [{"path": f.path, "before": f.before, "after": f.after} for f in change.fields],
        "leftToOthers": [{"path": path, "owner": owner} for path, owner in change.left_to_others],
        "heldBack": list(change.held_back),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "message": finding.message,
        "path": finding.location.path,
        "line": finding.location.line,
        "column": finding.location.column,
    }


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
