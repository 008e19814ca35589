"""Fields that the fleet's ignore rules leave to whoever writes them.

JSON pointers, a payload and its live object come in; a payload that changes nothing at those
places goes out. Other managers' fields are given up when something else is written anyway.
Used by diff, whose payload is what apply sends: one rule set for both.
"""

from __future__ import annotations

from typing import Any

from stoker.model.ignore_rule import IgnoreRule
from stoker.model.manifest import Manifest
from stoker.objects.compare import value_at
from stoker.objects.conflicts import drop, rivals_of
from stoker.objects.fieldset import FieldSet
from stoker.objects.fieldset_walk import KeyProblem, item_element
from stoker.objects.names import OWNER
from stoker.objects.owned import owned
from stoker.objects.schema_table import LIST, MAP, FieldType, ListSchema
from stoker.objects.selectors import parse_selector

__all__ = ["ignored_paths", "ignored_pointers", "leave_alone", "pointer_parts", "targets"]

Path = tuple[str, ...]

_ANNOTATIONS = ("f:metadata", "f:annotations")


def ignored_pointers(rules: tuple[IgnoreRule, ...], manifest: Manifest) -> tuple[str, ...]:
    """Pointers of all rules whose target is this object, sorted."""
    found = {path for rule in rules if targets(rule, manifest) for path in rule.paths}
    return tuple(sorted(found))


def targets(rule: IgnoreRule, manifest: Manifest) -> bool:
    """Whether every part of the rule's target that is named fits; labels are those of Git."""
    ref = manifest.ref
    named = ((rule.kind, ref.kind), (rule.name, ref.name), (rule.namespace, ref.namespace))
    if any(wanted not in {"", given} for wanted, given in named):
        return False
    metadata = manifest.body.get("metadata") or {}
    return parse_selector(rule.label_selector).matches(metadata.get("labels")) and (
        parse_selector(rule.annotation_selector).matches(metadata.get("annotations"))
    )


def pointer_parts(pointer: str) -> tuple[str, ...]:
    """The keys of a JSON pointer; raises ValueError for anything else."""
    if not pointer.startswith("/") or pointer == "/":
        message = f"{pointer!r} is no JSON pointer: write /spec/replicas"
        raise ValueError(message)
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def ignored_paths(
    pointers: tuple[str, ...], payload: dict[str, Any], live: dict[str, Any], schema: ListSchema
) -> tuple[Path, ...]:
    """The pointers as field paths of this object, sorted; those that lead nowhere are left out.

    A position in a list with keys means the item that Git has there, else the live one. A
    field that is owned as a whole is ignored as a whole, however deep the pointer goes.
    """
    found = set()
    for pointer in pointers:
        parts = pointer_parts(pointer)
        for body in (payload, live):
            path = _path(parts, body, schema.root)
            if path:
                found.add(path)
                break
    return tuple(sorted(p for p in found if not any(_inside(p, o) for o in found if o != p)))


def _inside(path: Path, other: Path) -> bool:
    return path[: len(other)] == other


def _path(parts: tuple[str, ...], value: Any, kind: FieldType) -> Path:
    path: list[str] = []
    for part in parts:
        kind = kind.resolved(value)
        if path and (kind.atomic or kind.shape not in {MAP, LIST}):
            return tuple(path)
        if isinstance(value, dict):
            if part not in value:
                return ()
            path.append(f"f:{part}")
            value, kind = value[part], kind.member(part) or kind
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
            try:
                path.append(item_element(value, kind))
            except KeyProblem:
                return ()
            kind = kind.element or kind
        else:
            return ()
    return tuple(path)


def leave_alone(
    payload: dict[str, Any],
    live: dict[str, Any],
    manager: str,
    schema: ListSchema,
    paths: tuple[Path, ...],
    *,
    give_up: bool = False,
) -> dict[str, Any]:
    """The payload with what is ours live at these places, so that sending changes nothing there.

    With `give_up` places that somebody else owns too are left out instead: a write is due
    anyway, and then nobody need conflict with us over a field that we do not care for.
    """
    ours = owned(live, manager)
    rivals = [rival.fields for rival in rivals_of(live, manager)]
    result = payload
    for path in paths:
        value = value_at(ours, path, schema.root)
        if give_up and any(_owns(fields, path) for fields in rivals):
            value = None
        result = (
            drop(result, path, schema.root)
            if value is None
            else _put(result, path, value, schema.root)
        )
    mark = ((payload.get("metadata") or {}).get("annotations") or {}).get(OWNER)
    if mark is not None:
        place = (*_ANNOTATIONS, f"f:{OWNER}")
        result = _put(result, place, mark, schema.root)
    return result


def _owns(fields: FieldSet, path: Path) -> bool:
    """Whether the entry lists the place or anything below it."""
    node = fields.tree
    for element in path:
        if element not in node:
            return False
        node = node[element]
    return True


def _put(value: Any, path: Path, new: Any, kind: FieldType) -> Any:
    """The value with one field replaced; maps on the way are made, list items must be there."""
    if not path:
        return new
    element, rest = path[0], path[1:]
    kind = kind.resolved(value)
    if element.startswith("f:"):
        base = value if isinstance(value, dict) else {}
        key = element[2:]
        return {**base, key: _put(base.get(key), rest, new, kind.member(key) or kind)}
    if not isinstance(value, list):
        return [new] if not rest else value
    items = [
        _put(item, rest, new, kind.element or kind) if _named(item, element, kind) else item
        for item in value
    ]
    if not rest and not any(_named(item, element, kind) for item in value):
        items.append(new)
    return items


def _named(item: Any, element: str, kind: FieldType) -> bool:
    try:
        return item_element(item, kind) == element
    except KeyProblem:
        return False
