"""Set operations on fieldsV1 trees.

A node is a dict from path elements to nodes. A node is a member when it is empty (a leaf)
or holds the key "."; the root is never a member. Results share nodes with their inputs:
treat every tree as read-only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = [
    "SELF",
    "Tree",
    "difference",
    "insert",
    "intersection",
    "is_member",
    "members",
    "recursive_difference",
    "tree_from_paths",
    "union",
]

Tree = dict[str, Any]

SELF = "."


def is_member(node: Tree) -> bool:
    """Whether the path that ends here is in the set."""
    return not node or SELF in node


def union(one: Tree, two: Tree) -> Tree:
    """Paths in either tree."""
    if not one or one is two:
        return two
    if not two:
        return one
    merged = dict(one)
    for element, node in two.items():
        mine = merged.get(element)
        merged[element] = node if mine is None else _union(mine, node)
    return merged


def _union(one: Tree, two: Tree) -> Tree:
    if one is two:
        return one
    if not one:
        return two if not two or SELF in two else {SELF: {}, **two}
    if not two:
        return one if SELF in one else {SELF: {}, **one}
    return union(one, two)


def difference(one: Tree, two: Tree) -> Tree:
    """Paths of the first that are not in the second."""
    if not one or not two:
        return one
    return _difference(one, two, SELF in one) or {}


def _difference(one: Tree, two: Tree, member: bool) -> Tree | None:
    """The node that is left, or None; `member` says whether the node itself stays one."""
    left: Tree = {}
    for element, node in one.items():
        if element == SELF:
            continue
        other = two.get(element)
        if other is None:
            left[element] = node
            continue
        rest = _difference(node, other, is_member(node) and not is_member(other))
        if rest is not None:
            left[element] = rest
    if member:
        return {SELF: {}, **left} if left else {}
    return left or None


def recursive_difference(one: Tree, two: Tree) -> Tree:
    """Paths of the first that are neither in the second nor below one of its paths."""
    left: Tree = {}
    for element, node in one.items():
        other = two.get(element)
        if other is None or element == SELF:
            left[element] = node
        elif not is_member(other):
            rest = recursive_difference(node, other)
            if rest or not node:
                left[element] = {} if list(rest) == [SELF] else rest
    return left


def intersection(one: Tree, two: Tree) -> Tree:
    """Paths in both trees."""
    common: Tree = {}
    for element, node in one.items():
        other = two.get(element)
        if other is None or element == SELF:
            continue
        below = intersection(node, other)
        if is_member(node) and is_member(other):
            common[element] = {SELF: {}, **below} if below else {}
        elif below:
            common[element] = below
    return common


def insert(tree: Tree, path: tuple[str, ...]) -> None:
    """Make a path a member, in place (only for trees being built)."""
    node = tree
    for depth, element in enumerate(path):
        below = node.get(element)
        if below is None:
            if depth and not node:
                node[SELF] = {}
            below = node[element] = _chain(path[depth + 1 :])
            return
        node = below
    if node:
        node[SELF] = {}


def _chain(path: tuple[str, ...]) -> Tree:
    node: Tree = {}
    for element in reversed(path):
        node = {element: node}
    return node


def tree_from_paths(paths: Iterable[tuple[str, ...]]) -> Tree:
    """A tree with these members."""
    tree: Tree = {}
    for path in paths:
        insert(tree, path)
    return tree


def members(tree: Tree, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every member path: at each level first the members, then what lies below, sorted."""
    elements = sorted((e for e in tree if e != SELF), key=_order)
    for element in elements:
        if is_member(tree[element]):
            yield (*prefix, element)
    for element in elements:
        if tree[element]:
            yield from members(tree[element], (*prefix, element))


def _order(element: str) -> tuple[int, Any]:
    """Fields, then keyed items by their key fields, then set values, then indexes."""
    kind, _, rest = element.partition(":")
    if kind == "k":
        return 1, [(key, _comparable(value)) for key, value in sorted(json.loads(rest).items())]
    if kind == "v":
        return 2, _comparable(json.loads(rest))
    return (0, rest) if kind == "f" else (3, int(rest))


def _comparable(value: Any) -> tuple[int, Any]:
    """Numbers before texts before booleans, as the server compares values."""
    if isinstance(value, bool):
        return 2, value
    return (1, value) if isinstance(value, str) else (0, value)
