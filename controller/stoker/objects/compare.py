"""Every field in which what we would send differs from what is live, as people read it.

A payload, the live object and its schema come in. Out: `differences` with paths, what a
write would touch (for conflicts), and whether a dry run must settle the rest; `removals`
for what left Git; `field_changes` for print, with secrets hidden. Used by diff and apply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from stoker.model.change import FieldChange
from stoker.objects.canonical import Sameness, sameness
from stoker.objects.fieldset import FieldSet
from stoker.objects.fieldset_trees import Tree
from stoker.objects.fieldset_walk import KeyProblem, item_element, whole_tree
from stoker.objects.masks import HIDDEN, HIDDEN_CHANGED, hides_by_neighbour, masked
from stoker.objects.schema_table import ANY, LIST, MAP, FieldType, ListSchema

__all__ = [
    "Comparison",
    "Difference",
    "compare",
    "dotted",
    "field_changes",
    "keys_of",
    "live_has_more",
    "removals",
    "value_at",
]

_ABSENT: Any = object()
_PLAIN = frozenset({str, int, bool})
"""Equal values of these types are the same whatever the schema says: most fields, most days."""
_GRANULAR = frozenset({MAP, LIST})
_IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion", "managedFields"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One field. `elements` are fieldsV1 elements from the top, an index for items of lists
    that are owned as a whole. None means absent. Not yet masked: never print it.
    """

    elements: tuple[str, ...]
    before: Any = field(hash=False)
    after: Any = field(hash=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a write would change. `written` is the fieldsV1 tree of all it would touch."""

    differences: tuple[Difference, ...] = ()
    written: Tree = field(default_factory=dict, hash=False)
    settled: bool = True

    def __bool__(self) -> bool:
        return bool(self.differences)


def compare(payload: dict[str, Any], live: dict[str, Any], schema: ListSchema) -> Comparison:
    """Differences in the order of the payload; fields that only `live` has are not ours.

    apiVersion, kind, name and namespace are not compared, nor is `status` where the main
    resource ignores it.
    """
    walk = _Walk()
    skipped = {"apiVersion", "kind", "metadata", *(("status",) if schema.resets_status else ())}
    sent = {key: item for key, item in payload.items() if key not in skipped}
    metadata = {k: v for k, v in (payload.get("metadata") or {}).items() if k not in _IDENTITY}
    tree = walk.maps({"metadata": metadata, **sent}, live, schema.root, None)
    return Comparison(tuple(walk.found), tree, walk.settled)


_At: TypeAlias = "tuple[_At, str] | None"
"""Where a walk is: the place above and the element. Most places never become a path."""


def _path(at: _At) -> tuple[str, ...]:
    """The elements from the top."""
    elements: list[str] = []
    while at is not None:
        at, element = at
        elements.append(element)
    return tuple(reversed(elements))


class _Walk:
    """Collects differences; each method gives the tree of what a write would touch."""

    def __init__(self) -> None:
        self.found: list[Difference] = []
        self.settled = True

    def maps(self, sent: dict[str, Any], live: dict[str, Any], kind: FieldType, at: _At) -> Tree:
        touched: Tree = {}
        declared, other = kind.fields, kind.element
        if other is None and not sent.keys() <= declared.keys():
            self.settled = False  # refused by the server, or newer than our schema
        for key, item in sent.items():
            standing = live.get(key, _ABSENT)
            plain = type(item)
            if plain in _PLAIN and plain is type(standing) and item == standing:
                continue
            element = "f:" + key
            member = declared.get(key) or other or ANY
            below = self.value(item, standing, member, (at, element))
            if below is not None:
                touched[element] = below
        return touched

    def value(self, sent: Any, live: Any, kind: FieldType, at: _At) -> Tree | None:
        """None when a write would leave the value as it is."""
        resolved = kind.resolved(sent)
        granular = not resolved.atomic and resolved.shape in _GRANULAR
        if granular and sent is not None and live is not _ABSENT and live is not None:
            if resolved.shape == MAP and isinstance(sent, dict) and isinstance(live, dict):
                return self.maps(sent, live, resolved, at) or None
            if isinstance(sent, list) and isinstance(live, list):
                return self.items(sent, live, resolved, at)
        verdict = sameness(sent, None if live is _ABSENT else live, kind)
        if verdict is Sameness.UNSETTLED:
            self.settled = False
        if verdict is not Sameness.DIFFERENT:
            return None
        before = None if live is _ABSENT else live
        if granular and before is None and isinstance(sent, dict | list):
            if not _is_stored(sent, resolved):
                return None
            self.found.append(Difference(_path(at), None, sent))
            return whole_tree(sent, resolved)
        self._leaf(before, sent, at)
        return {}

    def _leaf(self, before: Any, after: Any, at: _At) -> None:
        """One field; of equally long lists the items that differ, if they stand alone."""
        path = _path(at)
        paired = isinstance(before, list) and isinstance(after, list) and len(before) == len(after)
        if paired and not hides_by_neighbour(before) and not hides_by_neighbour(after):
            for index, (old, new) in enumerate(zip(before, after, strict=True)):
                if old != new:
                    self.found.append(Difference((*path, f"i:{index}"), old, new))
        else:
            self.found.append(Difference(path, before, after))

    def items(self, sent: list[Any], live: list[Any], kind: FieldType, at: _At) -> Tree | None:
        assert kind.element is not None
        try:
            sent_items = {item_element(item, kind): item for item in sent}
            live_items = {item_element(item, kind): item for item in live}
        except KeyProblem:  # the server refuses it
            self.found.append(Difference(_path(at), live, sent))
            return {}
        touched: Tree = {}
        for element, item in sent_items.items():
            below = self._item(item, live_items.get(element, _ABSENT), kind, (at, element))
            if below is not None:
                touched[element] = below
        order = [element for element in live_items if element in sent_items]
        wanted = [element for element in sent_items if element in live_items]
        if order != wanted:
            before = [_element_text(element) for element in order]
            after = [_element_text(element) for element in wanted]
            self.found.append(Difference((*_path(at), _ORDER), before, after))
        return touched or None

    def _item(self, sent: Any, live: Any, kind: FieldType, at: tuple[_At, str]) -> Tree | None:
        assert kind.element is not None
        if live is _ABSENT:
            self.found.append(Difference(_path(at), None, sent))
            return whole_tree(sent, kind.element)
        if at[1].startswith("v:"):
            return None
        return self.value(sent, live, kind.element, at)


def _is_stored(sent: dict[str, Any] | list[Any], kind: FieldType) -> bool:
    """Whether the server keeps anything of a map or list that is not there yet."""
    if not isinstance(sent, dict):
        return True
    members = ((item, kind.member(key) or ANY) for key, item in sent.items())
    return any(sameness(item, None, member) is not Sameness.SAME for item, member in members)


def live_has_more(difference: Difference) -> bool:
    """Whether live has more than was sent in a field owned as a whole, as webhooks add it."""
    before, after = difference.before, difference.after
    grown = isinstance(before, list | dict) and type(before) is type(after)
    return grown and len(before) > len(after)


_ORDER = "f:(order)"


def removals(
    gone: FieldSet, rivals: Iterable[FieldSet], live: dict[str, Any], schema: ListSchema
) -> tuple[Difference, ...]:
    """What the next apply removes: fields of our entry that we send no more and nobody shares.

    `gone` is our entry without what is sent. A removed map or list item hides what is below
    it. Fields the object no longer holds are left out.
    """
    shared = tuple(rivals)
    found: list[Difference] = []
    for path in sorted(gone.elements(), key=len):
        if any(path in other for other in shared):
            continue
        if any(path[: len(d.elements)] == d.elements for d in found):
            continue
        before = value_at(live, path, schema.root)
        if before is not None:
            found.append(Difference(path, before, None))
    return tuple(sorted(found, key=lambda d: d.elements))


def value_at(value: Any, elements: tuple[str, ...], kind: FieldType) -> Any:
    """The value at a path, None where there is none."""
    for element in elements:
        kind = kind.resolved(value)
        if element.startswith("f:"):
            if not isinstance(value, dict) or element[2:] not in value:
                return None
            value = value[element[2:]]
            kind = kind.member(element[2:]) or kind
        else:
            item = _item_at(value, element, kind)
            if item is None:
                return None
            value = item
            kind = kind.element or kind
    return value


def _item_at(value: Any, element: str, kind: FieldType) -> Any:
    if not isinstance(value, list):
        return None
    if element.startswith("i:"):
        return value[int(element[2:])] if int(element[2:]) < len(value) else None
    wanted = json.loads(element[2:])
    for item in value:
        if element.startswith("v:"):
            if item == wanted:
                return item
        elif isinstance(item, dict):
            defaults = kind.key_defaults
            if all(item.get(key, defaults.get(key)) == part for key, part in wanted.items()):
                return item
    return None


def field_changes(kind: str, differences: Iterable[Difference]) -> tuple[FieldChange, ...]:
    """The differences of an object of that kind for print, secrets hidden."""
    return tuple(_field_change(kind, difference) for difference in differences)


def _field_change(kind: str, difference: Difference) -> FieldChange:
    keys = keys_of(difference.elements)
    before = masked(kind, keys, difference.before)
    after = masked(kind, keys, difference.after)
    if before is not None and before == after:
        after = HIDDEN_CHANGED if after == HIDDEN else f"{after} (changed)"
    return FieldChange(dotted(difference.elements), before, after)


_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")


def dotted(elements: Iterable[str]) -> str:
    """`spec.template.spec.containers[name=c].image`, `metadata.labels[stoker.dev/fleet]`."""
    text = ""
    for element in elements:
        key = element[2:]
        if not element.startswith("f:"):
            text += _element_text(element)
        elif _PLAIN_KEY.fullmatch(key) or element == _ORDER:
            text += f".{key}" if text else key
        else:
            text += f"[{key}]"
    return text


def keys_of(elements: Iterable[str]) -> tuple[str, ...]:
    """Map keys as they are, list items in brackets: what masks and impact look at."""
    return tuple(e[2:] if e.startswith("f:") else _element_text(e) for e in elements)


def _element_text(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "k":
        keys = json.loads(rest)
        return "[" + ",".join(f"{key}={keys[key]}" for key in sorted(keys)) + "]"
    return f"[{json.loads(rest)}]" if kind == "v" else f"[{rest}]"
