"""A ChangeSet as people read it; pure. Programs read diff_forms.

Order follows apply: units by name, within a unit objects in apply order. A replace pairs
old and new placement, prints the difference of identical pairs once, and is no delete.
Everything printed went through objects.masks, in the diff stage or here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stoker.cli.field_lines import FieldLine
from stoker.cli.narrow import body_of, replaced_name
from stoker.cli.style import Style, one_line
from stoker.model.change import Action, Change, ChangeSet, FieldChange, Impact, UnitChanges
from stoker.model.fleet import Desired
from stoker.model.refs import UnitRef
from stoker.model.workload import is_workload
from stoker.objects import names

__all__ = ["diff_text"]

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
_IMPACTS = {
    Impact.NONE: "in place",
    Impact.SCALE: "scale",
    Impact.PLACEMENT: "placement, restarts pods",
    Impact.RESTART: "restarts pods",
    Impact.RECREATE: "recreate needed",
}
_KEYS = re.compile(r"\[((?:[A-Za-z]+=[^\],=]*)(?:,[A-Za-z]+=[^\],=]*)*)\]")
"""An item of a keyed list: `[name=engine]`, `[containerPort=8000,protocol=TCP]`."""
NAME_WIDTH = 62
FIELD_WIDTH = 44
MAX_VALUE = 60


# ---------------------------------------------------------------------------- text
def diff_text(
    changes: ChangeSet,
    desired: Desired,
    style: Style,
    heads: Mapping[UnitRef, tuple[FieldLine, ...]] | None = None,
) -> str:
    """Everything but the header and the last line; empty when nothing differs.

    `heads` are the fields of the units' files that have changed, for the top of each block.
    """
    hold = changes.prune_hold
    lines = heads or {}
    blocks = [
        block
        for unit in changes.units
        if (block := _unit_block(unit, desired, hold, style, lines.get(unit.unit, ())))
    ]
    others = _left_to_others(changes, style)
    if hold:
        blocks.append(f"Nothing is deleted: {hold}\n")
    return "\n".join([*blocks, *([others] if others else [])])


def _unit_block(
    unit: UnitChanges,
    desired: Desired,
    hold: str,
    style: Style,
    heads: tuple[FieldLine, ...],
) -> str:
    shown = [c for c in unit.changes if c.action is not Action.UNCHANGED]
    leaving = [r for r in unit.retirements if not any(replaced_name(c) == r.name for c in shown)]
    if not shown and not leaving and not unit.findings:
        return ""
    lines = [_unit_head(unit.unit, desired, style)]
    lines.extend(_head_lines(heads))
    lines.extend(f"! {one_line(str(finding))}" for finding in unit.findings)
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


def _head_lines(heads: tuple[FieldLine, ...]) -> Iterator[str]:
    """`   9  spec.model.revision   a09a354… -> bb46c15…   restarts pods`."""
    rows = [
        (str(f.line or ""), f.path, f"{_value(_brief(f.before))} -> {_value(_brief(f.after))}")
        for f in heads
    ]
    width = max((len(path) for _, path, _ in rows), default=0)
    values = min(NAME_WIDTH, max((len(value) for _, _, value in rows), default=0))
    for (line, path, value), head in zip(rows, heads, strict=True):
        yield f"{line:>4}  {path:{width}}  {value:{values}}   {head.effect}".rstrip()


def _brief(value: Any) -> Any:
    """A commit or digest by its first seven digits."""
    whole = isinstance(value, str) and re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", value)
    return f"{value[:7]}…" if whole else value


def _node_of(change: Change) -> str:
    annotations: dict[str, Any] = (body_of(change).get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(names.NODE, ""))


def _replaces(changes: list[Change], style: Style) -> Iterator[str]:
    """Pairs with the same difference together, and what differs once below them."""
    mark, colour = _REPLACE
    for fields, pairs in _by_fields(changes):
        for change in pairs:
            yield (
                f"{style.paint(mark, colour)} {change.ref.kind} {change.ref.name}"
                f"  {_node_of(change)}   for {replaced_name(change)}"
                f"{f' on {change.replaces_node}' if change.replaces_node else ''}"
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
    return one_line(change.note) + code


def _change_head(change: Change, style: Style) -> str:
    mark, colour = _MARKS.get(change.action, ("         ", "dim"))
    node = _node_of(change) if is_workload(change.ref) else ""
    place = f"{change.ref.namespace}/" if change.ref.namespace else ""
    name = f"{change.ref.kind} {place}{change.ref.name}" + (f"  {node}" if node else "")
    head = f"{style.paint(mark, colour)} {name}"
    if change.action is Action.CHANGE:
        pad = " " * max(2, NAME_WIDTH - len(name))
        head += pad + _IMPACTS[change.impact]
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
    """`.template.containers[engine].ports[8000/TCP]`: an item by the values of its keys."""
    for inside in ("spec.template.spec.", "spec.template.metadata."):
        if path.startswith(inside):
            path = f"template.{path.removeprefix(inside)}"
    return "." + one_line(_KEYS.sub(_values, path.lstrip(".")))


def _values(keys: re.Match[str]) -> str:
    return "[" + "/".join(pair.partition("=")[2] for pair in keys[1].split(",")) + "]"


def _value(value: Any) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    text = one_line(text.replace("\n", "⏎"))
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
    lines = [one_line(line) for line in lines]
    return "\n".join([style.paint("Left to others (not drift)", "bold"), *lines]) + "\n"
