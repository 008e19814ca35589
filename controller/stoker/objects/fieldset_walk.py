"""Values seen through their types: their field sets, and the path elements of list items.

In: a value and its FieldType. Out: fieldsV1 trees and path elements. Used by field sets and
by the merge of server-side apply.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from stoker.objects.fieldset_trees import SELF, Tree, is_member
from stoker.objects.schema_table import LIST, MAP, SCALAR, FieldType

__all__ = ["KeyProblem", "item_element", "tree_from_value", "whole_tree", "with_named_fields"]


class KeyProblem(ValueError):  # noqa: N818 - translated by objects.ssa_typed before it leaves
    """A list item cannot be told from others: no key, or a value that can't be one."""


def tree_from_value(value: Any, kind: FieldType) -> Tree:
    """The fields that a value sets; for an atomic or scalar type that is empty (itself)."""
    kind = kind.resolved(value)
    if kind.shape == MAP:
        return _map_tree(value, kind) if isinstance(value, dict) and not kind.atomic else {}
    if kind.shape == LIST and isinstance(value, list) and not kind.atomic:
        return _list_tree(value, kind)
    return {}


def _map_tree(value: dict[str, Any], kind: FieldType) -> Tree:
    tree: Tree = {}
    fields, element, assumed = kind.fields, kind.element, kind.assumed
    for key, item in value.items():
        declared = fields.get(key)
        member = declared or element
        if member is None or member.shape == SCALAR:
            tree["f:" + key] = {}
            continue
        if member.shape == MAP and isinstance(item, dict) and not member.atomic:
            below = _map_tree(item, member)
        else:
            below = tree_from_value(item, member)
        named = declared is not None or assumed
        if below:
            tree["f:" + key] = below if named else {SELF: {}, **below}
        elif _is_leaf(item, member, declared=named):
            tree["f:" + key] = {}
    return tree


def _is_leaf(item: Any, member: FieldType, *, declared: bool) -> bool:
    """Whether a value that sets nothing below itself is owned as itself."""
    if item is None or item == {} or not declared:
        return True
    resolved = member.resolved(item)
    return resolved.shape == SCALAR or resolved.atomic


def _list_tree(value: list[Any], kind: FieldType) -> Tree:
    tree: Tree = {}
    repeated: set[str] = set()
    element = kind.element
    assert element is not None
    for item in value:
        key = item_element(item, kind)
        if key in tree:
            repeated.add(key)
            continue
        below = tree_from_value(item, element)
        tree[key] = {SELF: {}, **below} if below else {}
    for key in sorted(repeated):
        tree[key] = {}
    return tree


def whole_tree(value: Any, kind: FieldType) -> Tree:
    """Every path of a value, containers included: what appears when it is added whole."""
    kind = kind.resolved(value)
    fits = isinstance(value, dict) if kind.shape == MAP else isinstance(value, list)
    if kind.atomic or kind.shape == SCALAR or not value or not fits:
        return {}
    tree: Tree = {SELF: {}}
    if isinstance(value, dict):
        for key, item in value.items():
            member = kind.fields.get(key) or kind.element
            tree["f:" + key] = {} if member is None else whole_tree(item, member)
    else:
        assert kind.element is not None
        counts: dict[str, int] = {}
        for item in value:
            key = item_element(item, kind)
            counts[key] = counts.get(key, 0) + 1
            tree[key] = {} if counts[key] > 1 else whole_tree(item, kind.element)
    return tree


def item_element(item: Any, kind: FieldType) -> str:
    """The path element of an item of a keyed list or set; raises KeyProblem without one."""
    if not kind.keys:
        if isinstance(item, dict):
            raise KeyProblem("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise KeyProblem("not supported: associative list with lists as elements")
        if item is None:
            raise KeyProblem("associative list without keys has an element that's an explicit null")
        return _set_element(item) if isinstance(item, str) else "v:" + _compact(item)
    if item is None:
        raise KeyProblem("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise KeyProblem("associative list with keys may not have non-map elements")
    if len(kind.keys) == 1:
        value = item.get(kind.keys[0])
        if isinstance(value, str):
            return _named_element(kind.keys[0], value)
    found = {}
    for key in sorted(kind.keys):
        value = item.get(key, kind.key_defaults.get(key, _MISSING))
        if value is not _MISSING:
            found[key] = value
    if len(found) == 2 and all(type(value) in _KEY_TYPES for value in found.values()):
        (first, one), (second, other) = found.items()
        return _paired_element(first, one, second, other)
    if not found:
        names = " ".join(json.dumps(key) for key in kind.keys)
        raise KeyProblem(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return "k:" + _compact(found)


_MISSING = object()


@lru_cache(maxsize=4096)
def _named_element(key: str, value: str) -> str:
    return "k:" + _compact({key: value})


_KEY_TYPES = frozenset({str, int, bool})


@lru_cache(maxsize=4096, typed=True)
def _paired_element(key: str, value: Any, other_key: str, other: Any) -> str:
    """Of a list with two keys, such as the ports of a container."""
    return "k:" + _compact({key: value, other_key: other})


@lru_cache(maxsize=4096)
def _set_element(value: str) -> str:
    return "v:" + _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def with_named_fields(tree: Tree, kind: FieldType) -> Tree:
    """The same set, with every declared field that has members below it as a member too."""
    if not tree:
        return tree
    out: Tree = {}
    for element, node in tree.items():
        if element == SELF or not node:
            out[element] = node
            continue
        named = False
        if element.startswith("f:"):
            declared = kind.fields.get(element[2:])
            named = declared is not None or kind.assumed
            member = declared or kind.element
        else:
            member = kind.element
        below = node if member is None else with_named_fields(node, member.resolved({}))
        out[element] = {SELF: {}, **below} if named and not is_member(below) else below
    return out
