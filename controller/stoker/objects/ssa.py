"""Server-side apply as a pure function: merge, prune, ownership, conflicts.

In: a live object with its managedFields entries, what is sent, and by whom. Out: the object
and the entries as the API server makes them (1.37, before defaults and validation), or the
conflicts it refuses with. Used by the in-memory API server; diff may ask it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from stoker.errors import Refused, Retryable
from stoker.objects.fieldset import NEVER_OWNED, path_text
from stoker.objects.fieldset_trees import (
    Tree,
    difference,
    intersection,
    members,
    recursive_difference,
    union,
)
from stoker.objects.fieldset_walk import tree_from_value, with_named_fields
from stoker.objects.schema_table import FieldType
from stoker.objects.ssa_entries import APPLY, UPDATE, Entries, Entry, Owner, capped
from stoker.objects.ssa_merge import Difference, compare, merge, remove_paths
from stoker.objects.ssa_typed import problem_text, typed_problems

__all__ = [
    "Applied",
    "FieldConflict",
    "FieldConflicts",
    "TypedPatchRefused",
    "Writer",
    "apply_manifest",
    "conflict_message",
    "track_update",
]

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The owner the server invents for the fields of an object without entries."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, and when (RFC 3339). `subresource` is empty for the main resource."""

    manager: str
    api_version: str
    subresource: str = ""
    time: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The merged object (no managedFields in it) and the entries it has now."""

    object: dict[str, Any] = field(hash=False)
    entries: Entries = field(hash=False)


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that another owner set to another value; `path` as the server prints it."""

    owner: Owner
    path: str
    elements: tuple[str, ...] = ()


class FieldConflicts(Retryable):
    """An unforced apply met other owners; `conflicts` are sorted by owner, then path."""

    code = "conflict"

    def __init__(self, conflicts: tuple[FieldConflict, ...]) -> None:
        super().__init__(conflict_message(conflicts))
        self.conflicts = conflicts


class TypedPatchRefused(Refused):
    """What was sent doesn't fit the kind's types; the text is the server's."""

    code = "invalid-object"


def conflict_message(conflicts: tuple[FieldConflict, ...]) -> str:
    """The server's text for these conflicts."""
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {only.owner}: {only.path}"
    lines: list[str] = []
    owner: Owner | None = None
    for conflict in conflicts:
        if conflict.owner != owner:
            owner = conflict.owner
            lines.append(f"conflicts with {owner}:")
        lines.append(f"- {conflict.path}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def apply_manifest(
    live: dict[str, Any],
    entries: Entries,
    sent: dict[str, Any],
    root: FieldType,
    writer: Writer,
    *,
    force: bool = False,
    reset: Tree | None = None,
    empty: dict[str, Any] | None = None,
) -> Applied:
    """Apply `sent` to `live` (an empty dict where there is none).

    `live` must not hold managedFields. `reset` are the fields that this endpoint never
    records (`status` on the main resource). `empty` is what an object of the kind has before
    anything is set; everything else in a `live` without entries belongs to before-first-apply.
    Raises TypedPatchRefused, then FieldConflicts.
    """
    problems = typed_problems(sent, root)
    if problems:
        raise TypedPatchRefused(problem_text(problems))
    owner = Owner(writer.manager, APPLY, "", writer.subresource)
    if not entries:
        first = replace(writer, manager=BEFORE_FIRST_APPLY)
        entries = track_update(empty or {}, live, {}, root, first, reset=reset, creating=True)
    last = entries[owner].fields if owner in entries else {}
    sets = recursive_difference(tree_from_value(sent, root), reset or {})
    everyone = {**entries, owner: Entry(owner, writer.api_version, writer.time, sets)}
    merged = merge(live, sent, root)
    merged = _prune(merged, last, sets, everyone, root)
    after = everyone
    if len(everyone) > 1:
        after, _ = _settle(live, merged, everyone, owner, root, force=force, reset=reset or {})
    own = difference(after[owner].fields, NEVER_OWNED.tree)
    after = {**after, owner: after[owner].with_fields(own)}
    return Applied(merged, capped(_without_empty(after)))


def track_update(
    old: dict[str, Any],
    new: dict[str, Any],
    entries: Entries,
    root: FieldType,
    writer: Writer,
    *,
    reset: Tree | None = None,
    creating: bool = False,
) -> Entries:
    """The entries after a create, PUT or patch made `new` out of `old`.

    The writer gets what it changed, everyone else loses it. An object whose entries are gone
    stays without (unless it is being created).
    """
    if not entries and not creating:
        return entries
    reset = reset or {}
    owner = Owner(writer.manager, UPDATE, writer.api_version, writer.subresource)
    current = Owner("", UPDATE, writer.api_version, writer.subresource)
    after, changed = _settle(old, new, entries, current, root, force=True, reset=reset)
    taken = union(changed.added, changed.modified)
    taken = difference(recursive_difference(taken, reset), NEVER_OWNED.tree)
    if taken:
        mine = after.get(owner)
        fields = union(mine.fields, taken) if mine else taken
        after = {**after, owner: Entry(owner, writer.api_version, writer.time, fields)}
    return capped(_without_empty(after))


def _settle(
    old: dict[str, Any],
    new: dict[str, Any],
    entries: Entries,
    writer: Owner,
    root: FieldType,
    *,
    force: bool,
    reset: Tree,
) -> tuple[Entries, Difference]:
    """Take what changed from the other owners; unforced, conflicts are raised instead."""
    changed = compare(old, new, root)
    if not changed:
        return entries, changed
    if reset:
        changed.added = recursive_difference(changed.added, reset)
        changed.removed = recursive_difference(changed.removed, reset)
        changed.modified = recursive_difference(changed.modified, reset)
    written = union(changed.modified, changed.added)
    after: Entries = {}
    conflicts: list[FieldConflict] = []
    for owner, entry in entries.items():
        if owner == writer:
            after[owner] = entry
            continue
        lost = intersection(entry.fields, written)
        if lost and not force:
            conflicts += (FieldConflict(owner, path_text(p), p) for p in members(lost))
        left = difference(difference(entry.fields, lost), changed.removed)
        after[owner] = entry if left is entry.fields else entry.with_fields(left)
    if conflicts:
        conflicts.sort(key=lambda c: c.owner.sort_key)
        raise FieldConflicts(tuple(conflicts))
    return after, changed


def _without_empty(entries: Entries) -> Entries:
    return {owner: entry for owner, entry in entries.items() if entry.fields}


def _prune(
    merged: dict[str, Any], last: Tree, sets: Tree, everyone: Entries, root: FieldType
) -> dict[str, Any]:
    """Remove what the applier owned before, sends no more, and nobody else owns.

    An item goes as a whole, unowned and defaulted fields inside it included, unless another
    owner holds the item itself.
    """
    if not last or not difference(last, sets):
        return merged
    lasting = with_named_fields(last, root)
    # 1. Without everything it owned; 2. with what anyone owns now put back: this set.
    everything = with_named_fields(tree_from_value(merged, root), root)
    bare = remove_paths(merged, lasting, root) or {}
    owned: Tree = {}
    for entry in everyone.values():
        owned = union(owned, entry.fields)
    kept = union(
        with_named_fields(tree_from_value(bare, root), root), with_named_fields(owned, root)
    )
    pruned = remove_paths(merged, difference(everything, kept), root) or {}
    # 3. Only what it owned may go.
    left = with_named_fields(tree_from_value(pruned, root), root)
    gone = intersection(difference(everything, left), lasting)
    cut: dict[str, Any] = remove_paths(merged, gone, root) or {}
    return cut
