"""The conflict table: which fields Git takes back, and which are left to their owners.

A payload, the live object, our manager and what diff left to others come in; a Settlement
goes out: what to send, and whether it must be forced. Used by diff to foresee a conflict
and by apply after a 409. Owners are computed from managedFields: the causes' paths are
ambiguous, and their order varies (ssa-facts 24, 26).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from stoker.errors import Refused
from stoker.model.refs import ObjectRef
from stoker.objects.compare import compare, dotted, value_at
from stoker.objects.fieldset_trees import Tree, intersection, members
from stoker.objects.fieldset_walk import KeyProblem, item_element
from stoker.objects.names import ADOPT, OWNER, fleet_of_mark
from stoker.objects.owned import BEFORE_FIRST_APPLY, Owner, owners
from stoker.objects.schema_table import LIST, FieldType, ListSchema

__all__ = [
    "REPLICAS",
    "AdoptionRequired",
    "Settlement",
    "adoption_required",
    "drop",
    "is_persons_tool",
    "rivals_of",
    "settle",
]

REPLICAS = ("f:spec", "f:replicas")

_PERSONS_TOOLS = ("kubectl*", "helm", "kluctl*", "rancher", "k9s", BEFORE_FIRST_APPLY)
"""Managers behind which a person types: what they write by hand is drift."""


class AdoptionRequired(Refused):
    """The name is in use by an object that does not bear this fleet's owner mark."""

    code = "adoption-required"


@dataclass(frozen=True, slots=True)
class Settlement:
    """What to send. `taken` and `left` are (path, owner) as people read them, sorted.

    `payload` has no field of `left`; it must be forced exactly when `taken` is not empty.
    """

    payload: dict[str, Any] = field(hash=False)
    taken: tuple[tuple[str, str], ...] = ()
    left: tuple[tuple[str, str], ...] = ()


def is_persons_tool(manager: str) -> bool:
    """Whether that manager's writes are a person's, typed by hand."""
    return any(fnmatchcase(manager, pattern) for pattern in _PERSONS_TOOLS)


def rivals_of(live: dict[str, Any], manager: str) -> tuple[Owner, ...]:
    """Every entry but our Apply entry on the object itself."""
    return tuple(o for o in owners(live) if not (o.manager == manager and o.is_apply))


def settle(
    payload: dict[str, Any],
    live: dict[str, Any],
    manager: str,
    schema: ListSchema,
    *,
    left_alone: Collection[str] = (),
    written: Tree | None = None,
) -> Settlement:
    """Divide the conflicts of an unforced apply between Git and the other owners.

    `written` is what `compare` said a write would touch, where the caller has asked already.
    `left_alone` are paths (dotted) that facts gave to somebody else, whatever the table
    says. A person's tool, and our own name under another operation or subresource, lose
    the field to Git; so does whoever wrote spec.replicas through the scale subresource,
    for diff asked the facts before it put the count into the payload. Everybody else keeps
    it. A field with several owners goes to Git only if all of them give way.
    """
    taken: list[tuple[str, str]] = []
    left: list[tuple[str, str]] = []
    if written is None:
        written = compare(payload, live, schema).written
    if not written:
        return Settlement(payload)
    for path, holders in _conflicts(written, rivals_of(live, manager)):
        text = dotted(path)
        keepers = [o for o in holders if not _gives_way(o, path, manager)]
        if value_at(live, path, schema.root) is None:
            keepers = []  # an empty map that somebody named: nobody loses a value
        if text in left_alone or keepers:
            names = sorted({str(o) for o in keepers or holders})
            left.append((text, ", ".join(names)))
            payload = drop(payload, path, schema.root)
        else:
            taken.append((text, ", ".join(sorted({str(o) for o in holders}))))
    return Settlement(payload, tuple(sorted(taken)), tuple(sorted(left)))


def _conflicts(written: Tree, rivals: Iterable[Owner]) -> list[tuple[tuple[str, ...], list[Owner]]]:
    """Fields that a write would change and others own, each with its owners."""
    found: dict[tuple[str, ...], list[Owner]] = {}
    for owner in rivals:
        common: Tree = intersection(owner.fields.tree, written)
        for path in members(common):
            found.setdefault(path, []).append(owner)
    return sorted(found.items(), key=lambda pair: pair[0])


def _gives_way(owner: Owner, path: tuple[str, ...], manager: str) -> bool:
    if owner.manager == manager or is_persons_tool(owner.manager):
        return True
    return path == REPLICAS and owner.subresource == "scale"


def drop(value: dict[str, Any], path: tuple[str, ...], kind: FieldType) -> dict[str, Any]:
    """The value without one field; maps that this empties go too, list items stay.

    An emptied map would be owned as itself; an item of a list keeps its keys, for dropping
    it would take other managers' fields inside it along (ssa-facts 65).
    """
    result = _drop(value, path, kind)
    return result if isinstance(result, dict) else {}


def _drop(value: Any, path: tuple[str, ...], kind: FieldType) -> Any:
    """What is left of the value, None for nothing."""
    element, rest = path[0], path[1:]
    kind = kind.resolved(value)
    if element.startswith("f:") and isinstance(value, dict):
        key = element[2:]
        if key not in value:
            return value
        others = {name: item for name, item in value.items() if name != key}
        member = kind.member(key)
        left = _drop(value[key], rest, member) if rest and member is not None else None
        return {**others, key: left} if left is not None else others or None
    if isinstance(value, list) and kind.shape == LIST:
        items = [
            left for item in value if (left := _drop_in_item(item, element, rest, kind)) is not None
        ]
        return items or None
    return value


def _drop_in_item(item: Any, element: str, rest: tuple[str, ...], kind: FieldType) -> Any:
    try:
        if item_element(item, kind) != element:
            return item
    except KeyProblem:
        return item
    return _drop(item, rest, kind.element) if rest and kind.element is not None else None


def adoption_required(ref: ObjectRef, live: dict[str, Any]) -> AdoptionRequired:
    """The refusal to touch an object that somebody else made, naming who owns it."""
    names = sorted({o.manager for o in owners(live) if not o.subresource})
    mark = (live.get("metadata", {}).get("annotations") or {}).get(OWNER, "")
    other = f" (owner mark {mark})" if mark else ""
    return AdoptionRequired(
        f"{ref} exists and does not belong to this fleet{other}; its fields are owned by "
        + ", ".join(names),
        hint="let the other fleet give it up, or rename ours"
        if fleet_of_mark(mark, ref)
        else f"{ADOPT}: enabled on its manifest takes it over; or rename ours",
    )
