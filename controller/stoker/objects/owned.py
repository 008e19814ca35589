"""What of a live object is ours: managedFields entries, and the projection onto one of them.

A live manifest with managedFields comes in; entries and `owned(live, manager)` go out. The
projection is the frozen template and the payload for an old rev (design section 6). Used
by diff and apply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stoker.objects.fieldset import EMPTY, FieldSet, fieldset_from_manifest, parse_fields_v1
from stoker.objects.fieldset_trees import SELF, Tree
from stoker.objects.fieldset_walk import KeyProblem, item_element
from stoker.objects.schema_table import LIST, MAP, SCALAR, FieldType, ListSchema, schema_for

__all__ = [
    "BEFORE_FIRST_APPLY",
    "Owner",
    "apply_entries",
    "is_applied_by",
    "our_fields",
    "owned",
    "owners",
    "projected",
    "schema_of",
]

BEFORE_FIRST_APPLY = "before-first-apply"
"""Who owns everything of an object without entries, in the server's words (ssa-facts 21)."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One managedFields entry: who wrote, how, through which subresource, which fields."""

    manager: str
    operation: str
    subresource: str
    fields: FieldSet = field(compare=False)
    api_version: str = ""

    @property
    def is_apply(self) -> bool:
        """Whether the entry comes from server-side apply on the object itself."""
        return self.operation == "Apply" and not self.subresource

    def __str__(self) -> str:
        """`kubectl-edit`, or `kube-controller-manager (scale)` for a subresource."""
        return f"{self.manager} ({self.subresource})" if self.subresource else self.manager


def schema_of(manifest: dict[str, Any]) -> ListSchema:
    """The schema of a manifest's kind in the version that the manifest speaks.

    Another version's rules would be wrong: HorizontalPodAutoscaler v1 owns its target as a
    whole, v2 field by field.
    """
    group, _, version = str(manifest.get("apiVersion", "")).rpartition("/")
    return schema_for(group, str(manifest.get("kind", "")), version)


def owners(live: dict[str, Any]) -> tuple[Owner, ...]:
    """Every entry, in the server's order; `before-first-apply` for an object without any."""
    entries = live.get("metadata", {}).get("managedFields") or ()
    found = tuple(
        Owner(
            manager=str(entry.get("manager", "")),
            operation=str(entry.get("operation", "")),
            subresource=str(entry.get("subresource", "")),
            fields=parse_fields_v1(entry.get("fieldsV1")),
            api_version=str(entry.get("apiVersion", "")),
        )
        for entry in entries
    )
    if found:
        return found
    everything = fieldset_from_manifest(live, schema_of(live))
    return (Owner(BEFORE_FIRST_APPLY, "Update", "", everything),)


def is_applied_by(live: dict[str, Any], manager: str) -> bool:
    """Whether the manager has applied the object: an owner mark can be typed by anybody."""
    return next(apply_entries(live, manager), None) is not None


def our_fields(live: dict[str, Any], manager: str) -> FieldSet:
    """The fields that the manager's Apply entry on the object itself lists; empty without."""
    entry = next(apply_entries(live, manager), None)
    return EMPTY if entry is None else parse_fields_v1(entry.get("fieldsV1"))


def apply_entries(live: dict[str, Any], manager: str) -> Iterator[dict[str, Any]]:
    """The manager's raw entries from server-side apply on the object itself: one, if any."""
    for entry in live.get("metadata", {}).get("managedFields") or ():
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ):
            yield entry


def owned(live: dict[str, Any], manager: str) -> dict[str, Any]:
    """The live object cut down to the fields of the manager's Apply entry.

    Sent again by that manager it changes nothing, ownership included: key fields of list
    items that the server filled in are left out, and owned fields that the server does not
    store (empty maps, lists and texts) come back empty. apiVersion, kind, name and
    namespace are always there. Lists keep the live order. Nothing is shared with `live`
    that may be changed: treat the result as read-only too.
    """
    metadata = live.get("metadata", {})
    identity = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    part = projected(live, our_fields(live, manager).tree, schema_of(live).root)
    own = part.get("metadata")
    return {
        **part,
        "apiVersion": live.get("apiVersion", ""),
        "kind": live.get("kind", ""),
        "metadata": {**(own if isinstance(own, dict) else {}), **identity},
    }


def projected(value: dict[str, Any], tree: Tree, kind: FieldType | None) -> dict[str, Any]:
    """The part of a map that a fieldsV1 tree names, as `owned` makes it."""
    return _map(value, tree, None if kind is None else kind.resolved(value))


def _value(value: Any, tree: Tree, kind: FieldType | None) -> Any:
    """The part of a value that the tree names; without children the value as its type counts."""
    first = next((element for element in tree if element != SELF), "")
    if first.startswith("f:"):
        below = None if kind is None else kind.resolved(value)
        return _map(value if isinstance(value, dict) else {}, tree, below)
    if first:
        below = None if kind is None else kind.resolved(value)
        return _list(value if isinstance(value, list) else [], tree, below)
    if kind is None or kind.shape not in {SCALAR, MAP, LIST}:
        return value
    if kind.shape == SCALAR:
        return _ZEROS.get(kind.code) if value is None else value
    if kind.atomic and value is not None:
        return value
    return {} if kind.shape == MAP else []


_ZEROS = {"s": "", "z": 0, "y": False, "d": ""}
"""What an owned scalar that the server does not store was sent as; null for all others."""


def _map(value: dict[str, Any], tree: Tree, kind: FieldType | None) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for element, node in tree.items():
        if element != SELF:
            key = element[2:]
            result[key] = _value(value.get(key), node, None if kind is None else kind.member(key))
    return result


def _list(value: list[Any], tree: Tree, kind: FieldType | None) -> list[Any]:
    element_kind = None if kind is None else kind.element
    result: list[Any] = []
    for item in value:
        element = _element_of(item, tree, kind)
        if element is None:
            continue
        if element.startswith("v:"):
            result.append(item)
        else:
            result.append(_item(item, element, tree[element], kind, element_kind))
    return result


def _element_of(item: Any, tree: Tree, kind: FieldType | None) -> str | None:
    """The element of the tree that names the item; by its own keys where no type is known."""
    if kind is not None and kind.shape == LIST and not kind.atomic:
        try:
            element = item_element(item, kind)
        except KeyProblem:
            return None
        return element if element in tree else None
    for element in tree:
        if element.startswith("k:") and isinstance(item, dict):
            keys = json.loads(element[2:])
            if all(item.get(key) == wanted for key, wanted in keys.items()):
                return element
        if element.startswith("v:") and json.loads(element[2:]) == item:
            return element
    return None


def _item(
    item: dict[str, Any],
    element: str,
    tree: Tree,
    kind: FieldType | None,
    element_kind: FieldType | None,
) -> dict[str, Any]:
    """An item of a keyed list, with the key fields that name it and are not defaults."""
    projected = _map(item, tree, element_kind)
    defaults = {} if kind is None else kind.key_defaults
    for key, wanted in json.loads(element[2:]).items():
        if key not in projected and defaults.get(key) != wanted:
            projected[key] = wanted
    return projected
