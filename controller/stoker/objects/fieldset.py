"""Field sets: which fields of one object somebody owns, as managedFields' fieldsV1 has them.

In: fieldsV1 dicts, or a manifest and its kind's schema. Out: immutable FieldSets with the
set operations. The foundation of ownership in diff, of server-side apply in objects.ssa and
of the in-memory API server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from stoker.objects.fieldset_trees import (
    Tree,
    difference,
    intersection,
    members,
    recursive_difference,
    tree_from_paths,
    union,
)
from stoker.objects.fieldset_walk import tree_from_value
from stoker.objects.schema_table import ListSchema

__all__ = [
    "EMPTY",
    "NEVER_OWNED",
    "FieldSet",
    "element_text",
    "fieldset_from_manifest",
    "parse_fields_v1",
    "path_text",
]


class FieldSet:
    """An immutable set of field paths.

    A path is a tuple of elements in fieldsV1 spelling (`f:spec`, `k:{"name":"c"}`,
    `v:"a"`); `path_text` prints it as the server does. `tree` is the fieldsV1 dict itself
    and must not be changed; `to_v1` gives a copy.
    """

    __slots__ = ("tree",)

    tree: Tree

    def __init__(self, tree: Tree | None = None) -> None:
        object.__setattr__(self, "tree", tree or {})

    def __setattr__(self, name: str, value: object) -> None:
        message = f"FieldSet is immutable ({name})"
        raise AttributeError(message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.tree == other.tree

    def __hash__(self) -> int:
        return hash(json.dumps(self.tree, sort_keys=True))

    def __bool__(self) -> bool:
        return bool(self.tree)

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(self.paths())})"

    def __contains__(self, path: tuple[str, ...]) -> bool:
        """Whether exactly this path is a member (its parents and children need not be)."""
        node = self.tree
        for element in path:
            if element not in node:
                return False
            node = node[element]
        return bool(path) and (not node or "." in node)

    def elements(self) -> Iterator[tuple[str, ...]]:
        """Every member path, sorted as the server sorts: a map's own fields first."""
        return members(self.tree)

    def paths(self) -> tuple[str, ...]:
        """Every member path as the server prints it, in the same order as `elements`."""
        return tuple(path_text(path) for path in self.elements())

    def to_v1(self) -> dict[str, Any]:
        """A fresh fieldsV1 dict."""
        copied: dict[str, Any] = json.loads(json.dumps(self.tree))
        return copied

    def union(self, other: FieldSet) -> FieldSet:
        """Paths in either."""
        return FieldSet(union(self.tree, other.tree))

    def intersection(self, other: FieldSet) -> FieldSet:
        """Paths in both."""
        return FieldSet(intersection(self.tree, other.tree))

    def difference(self, other: FieldSet) -> FieldSet:
        """Paths in this one only; children of a removed path stay."""
        return FieldSet(difference(self.tree, other.tree))

    def without_below(self, other: FieldSet) -> FieldSet:
        """Paths in this one that are neither in `other` nor below a path of it."""
        return FieldSet(recursive_difference(self.tree, other.tree))

    def issubset(self, other: FieldSet) -> bool:
        """Whether every path of this one is in the other."""
        return not difference(self.tree, other.tree)


EMPTY: Final = FieldSet()

NEVER_OWNED: Final = FieldSet(
    tree_from_paths(
        (
            ("f:apiVersion",),
            ("f:kind",),
            ("f:metadata",),
            *(
                ("f:metadata", f"f:{name}")
                for name in (
                    "name",
                    "namespace",
                    "creationTimestamp",
                    "selfLink",
                    "uid",
                    "clusterName",
                    "generation",
                    "managedFields",
                    "resourceVersion",
                )
            ),
        )
    )
)
"""What the server strips from every entry (seen on 1.37: ssa-facts rule 2)."""

_STATUS: Final = FieldSet({"f:status": {}})


def fieldset_from_manifest(
    manifest: dict[str, Any], schema: ListSchema, *, subresource: str = ""
) -> FieldSet:
    """Exactly the fields the server records for an applied manifest.

    Empty maps and null values count as themselves, empty keyed lists and sets as nothing,
    empty atomic lists as themselves; keys of list items that were left to their defaults
    name the item but are not owned. `status` sent to the main resource is never owned.
    """
    owned = FieldSet(tree_from_value(manifest, schema.root)).difference(NEVER_OWNED)
    if schema.resets_status and not subresource and "status" in manifest:
        owned = owned.without_below(_STATUS)
    return owned


def parse_fields_v1(fields: dict[str, Any] | None) -> FieldSet:
    """Read the fieldsV1 of a managedFields entry (None is the empty set)."""
    return FieldSet(fields)


def path_text(path: Iterable[str]) -> str:
    """A path as the server spells it: `.spec.containers[name="c"].image`."""
    return "".join(element_text(element) for element in path)


def element_text(element: str) -> str:
    """One element of a path as the server spells it."""
    kind, _, rest = element.partition(":")
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            keys = json.loads(rest)
            return "[" + ",".join(f"{k}={_literal(keys[k])}" for k in sorted(keys)) + "]"
        case "v":
            return f"[={_literal(json.loads(rest))}]"
        case _:
            return f"[{rest}]"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
