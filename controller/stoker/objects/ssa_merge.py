"""Merging, comparing and cutting values by their types: the mechanics of server-side apply.

In: values and FieldTypes. Out: new values that share what did not change with their inputs
(never change a value in place), and Differences as fieldsV1 trees. Used by objects.ssa only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker.objects.fieldset_trees import SELF, Tree
from stoker.objects.fieldset_walk import item_element, whole_tree
from stoker.objects.schema_table import LIST, MAP, SCALAR, FieldType

__all__ = ["Difference", "compare", "merge", "remove_paths", "same_value"]


def same_value(one: Any, two: Any) -> bool:
    """Equality of JSON values: numbers by value, but true is not 1."""
    if one is two:
        return True
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, dict):
        return (
            isinstance(two, dict)
            and len(one) == len(two)
            and all(key in two and same_value(item, two[key]) for key, item in one.items())
        )
    if isinstance(one, list):
        return (
            isinstance(two, list)
            and len(one) == len(two)
            and all(same_value(a, b) for a, b in zip(one, two, strict=True))
        )
    return bool(one == two)


# ------------------------------------------------------------------------------ merge


def merge(live: Any, sent: Any, kind: FieldType) -> Any:
    """`live` with `sent` laid over it; `live` itself when that changes nothing.

    Maps and keyed lists merge, everything else is replaced. A null sent over a map or keyed
    list leaves it as it is (what it owned is pruned later), over anything else it stands.
    """
    kind = kind.resolved(sent)
    if kind.shape == MAP and not kind.atomic:
        if isinstance(live, dict) and live:
            return _merge_maps(live, sent, kind) if isinstance(sent, dict) else live
    elif kind.shape == LIST and not kind.atomic and isinstance(live, list) and live:
        return _merge_lists(live, sent, kind) if isinstance(sent, list) else live
    return live if type(live) is type(sent) and same_value(live, sent) else sent


def _merge_maps(live: dict[str, Any], sent: dict[str, Any], kind: FieldType) -> dict[str, Any]:
    out: dict[str, Any] | None = None
    for key, item in sent.items():
        if key not in live:
            out = dict(live) if out is None else out
            out[key] = item
            continue
        member = kind.fields.get(key) or kind.element
        mine = live[key]
        merged = item if member is None else merge(mine, item, member)
        if merged is not mine:
            out = dict(live) if out is None else out
            out[key] = merged
    return live if out is None else out


def _merge_lists(live: list[Any], sent: list[Any], kind: FieldType) -> list[Any]:
    """Items of both; the order of `sent` for what it has, `live`'s own items in between."""
    assert kind.element is not None
    sent_keys = [item_element(item, kind) for item in sent]
    live_keys = [item_element(item, kind) for item in live]
    sent_items = dict(zip(sent_keys, sent, strict=True))
    live_items: dict[str, Any] = {}
    for key, item in zip(live_keys, live, strict=True):
        live_items[key] = None if key in live_items else item  # a repeated item is not merged
    shared = [key for key in sent_keys if key in live_items]
    shared.reverse()
    next_shared = shared.pop() if shared else None
    done: set[str] = set()
    out: list[Any] = []

    def take(key: str) -> None:
        done.add(key)
        mine = live_items.get(key)
        item = sent_items[key]
        out.append(item if mine is None else merge(mine, item, kind.element or kind))

    at_live = at_sent = 0
    while at_live < len(live) or at_sent < len(sent):
        if at_live < len(live) and at_sent < len(sent):
            key = live_keys[at_live]
            if key == sent_keys[at_sent]:
                take(key)
                at_live += 1
                at_sent += 1
                next_shared = shared.pop() if shared else None
                continue
            if key in sent_items and next_shared is not None and next_shared != key:
                at_live += 1  # its turn comes where `sent` has it
                continue
        if at_live < len(live):
            key = live_keys[at_live]
            if key not in sent_items:
                out.append(live[at_live])
                at_live += 1
                continue
            if key in done:
                at_live += 1
        if at_sent < len(sent):
            key = sent_keys[at_sent]
            take(key)
            at_sent += 1
            if next_shared == key:
                next_shared = shared.pop() if shared else None
    unchanged = len(out) == len(live) and all(a is b for a, b in zip(out, live, strict=True))
    return live if unchanged else out


# ---------------------------------------------------------------------------- compare


@dataclass(slots=True)
class Difference:
    """Paths that differ between two values, as fieldsV1 trees."""

    added: Tree = field(default_factory=dict)
    removed: Tree = field(default_factory=dict)
    modified: Tree = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.modified)


def compare(old: dict[str, Any], new: dict[str, Any], kind: FieldType) -> Difference:
    """What differs from `old` to `new`, containers that came or went included."""
    found = Difference()
    _compare_maps(old, new, kind, (found.added, found.removed, found.modified))
    return found


_Trees = tuple[Tree, Tree, Tree]


def _compare_maps(old: Any, new: Any, kind: FieldType, trees: _Trees) -> None:
    for key, item in new.items():
        mine = old.get(key, old)  # `old` itself cannot be its own member: it marks absence
        if mine is item:
            continue
        member = kind.fields.get(key) or kind.element
        if member is None:
            continue
        if mine is old:
            trees[0]["f:" + key] = whole_tree(item, member)
        else:
            _compare("f:" + key, mine, item, member, trees)
    for key, item in old.items():
        if key not in new:
            member = kind.fields.get(key) or kind.element
            if member is not None:
                trees[1]["f:" + key] = whole_tree(item, member)


def _compare(element: str, old: Any, new: Any, kind: FieldType, trees: _Trees) -> None:
    """Compare two present values and hang what differs under `element`."""
    old_kind, kind = kind.resolved(old), kind.resolved(new)
    if kind.shape == SCALAR or kind.atomic or old_kind is not kind or not (old or new):
        if not same_value(old, new):
            trees[2][element] = {}
            if old_kind is not kind:  # a map became a list or scalar: its inside is gone
                _hang(trees[1], element, whole_tree(old, old_kind))
                _hang(trees[0], element, whole_tree(new, kind))
        return
    below: _Trees = ({}, {}, {})
    if kind.shape == MAP:
        _compare_maps(old or {}, new or {}, kind, below)
    else:
        _compare_lists(old or [], new or [], kind, below)
    for tree, part in zip(trees, below, strict=True):
        if part:
            tree[element] = part


def _hang(tree: Tree, element: str, whole: Tree) -> None:
    """Hang the inside of a value, without the value itself."""
    inside = {key: node for key, node in whole.items() if key != SELF}
    if inside:
        tree[element] = inside


def _compare_lists(old: list[Any], new: list[Any], kind: FieldType, trees: _Trees) -> None:
    assert kind.element is not None
    before = _by_key(old, kind)
    after = _by_key(new, kind)
    for key in {**before, **after}:
        one, two = before.get(key, []), after.get(key, [])
        if len(one) <= 1 and len(two) <= 1:
            if not one:
                trees[0][key] = whole_tree(two[0], kind.element)
            elif not two:
                trees[1][key] = whole_tree(one[0], kind.element)
            elif one[0] is not two[0]:
                _compare(key, one[0], two[0], kind.element, trees)
        elif len(one) > 1 and len(two) > 1:
            if not same_value(one, two):
                trees[2][key] = {}
        elif len(one) > 1:  # repeated before: the marker goes, what is left comes in whole
            if two:
                trees[0][key] = whole_tree(two[0], kind.element)
            trees[1][key] = {}
        else:
            if one:
                trees[1][key] = whole_tree(one[0], kind.element)
            trees[0][key] = {}


def _by_key(items: list[Any], kind: FieldType) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(item_element(item, kind), []).append(item)
    return found


# ----------------------------------------------------------------------------- remove


def remove_paths(value: Any, paths: Tree, kind: FieldType) -> Any:
    """The value without those paths; a map or list that is emptied becomes null."""
    kind = kind.resolved(value)
    if kind.shape == SCALAR or not paths:
        return value
    if kind.atomic or not value:
        return None
    if kind.shape == MAP and isinstance(value, dict):
        left: dict[str, Any] = {}
        for key, item in value.items():
            node = paths.get("f:" + key)
            if node is None:
                left[key] = item
            elif node and SELF not in node:
                member = kind.fields.get(key) or kind.element
                left[key] = item if member is None else remove_paths(item, node, member)
        return left or None
    if kind.shape == LIST and isinstance(value, list):
        assert kind.element is not None
        kept: list[Any] = []
        for item in value:
            node = paths.get(item_element(item, kind))
            if node is None:
                kept.append(item)
            elif node and SELF not in node:
                kept.append(remove_paths(item, node, kind.element))
        return kept or None
    return None
