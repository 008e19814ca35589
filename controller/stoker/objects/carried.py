"""Turns a live object into the manifest that Git would have held for it.

A live object with its managedFields, and what its tool says it applied last, come in; a
`Carried` goes out: the fields that somebody meant, with the values that are live, so that
applying them changes nothing. Status, defaults, what controllers wrote and secrets are left
out. Used by the command line for `import`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from stoker.model.change import FieldChange
from stoker.objects.compare import compare, dotted, field_changes, keys_of, value_at
from stoker.objects.conflicts import REPLICAS
from stoker.objects.fieldset import EMPTY, FieldSet, fieldset_from_manifest
from stoker.objects.fieldset_trees import Tree, tree_from_paths
from stoker.objects.masks import masked
from stoker.objects.owned import BEFORE_FIRST_APPLY, Owner, owners, projected, schema_of
from stoker.objects.schema_table import FieldType, ListSchema
from stoker.objects.takeover import LAST_APPLIED, TRACKING_MARKS, gives_way

__all__ = ["Carried", "carry", "last_applied"]

Fill = Callable[[dict[str, Any]], dict[str, Any]]
"""Gives a manifest with the defaults that the server would fill in."""

_WRITES_WHOLE = frozenset(
    {"kubectl-client-side-apply", "helm", "helm-controller", "argocd-controller"}
)
"""Their Update entries list every default of the object beside what was meant."""

_NOT_OURS: dict[str, frozenset[str]] = {
    "f:annotations": frozenset(
        {
            *TRACKING_MARKS["annotations"],
            "autoscaling.alpha.kubernetes.io/conditions",
            "deployment.kubernetes.io/revision",
            "meta.helm.sh/release-name",
            "meta.helm.sh/release-namespace",
            "pv.kubernetes.io/bind-completed",
            "pv.kubernetes.io/bound-by-controller",
            "volume.kubernetes.io/selected-node",
            "volume.kubernetes.io/storage-provisioner",
        }
    ),
    "f:labels": frozenset(TRACKING_MARKS["labels"]),
}
"""Marks by which other tools find their objects, and notes that controllers keep."""

_SERVER_MADE = (
    ("f:status",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "generateName",
            "ownerReferences",
        )
    ),
)

_ALLOCATED: dict[str, frozenset[str]] = {
    "PersistentVolumeClaim": frozenset({"f:volumeName"}),
    "Service": frozenset(
        {
            "f:clusterIP",
            "f:clusterIPs",
            "f:healthCheckNodePort",
            "f:ipFamilies",
            "f:ipFamilyPolicy",
        }
    ),
}
"""Fields of spec that the server or a controller fills in once and for all."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The manifest, and what it does not say.

    `secrets` are places whose value would have stood in Git in clear. `drift` is where the
    live value (`before`) is another than the one applied last (`after`): the live one is
    carried. Both are fit for print.
    """

    manifest: dict[str, Any] = field(hash=False)
    secrets: tuple[str, ...] = ()
    drift: tuple[FieldChange, ...] = ()


def carry(
    live: dict[str, Any],
    *,
    applied: dict[str, Any] | None = None,
    fill: Fill = lambda manifest: manifest,
    counted_elsewhere: bool = False,
) -> Carried:
    """Make the manifest of a live object.

    `applied` is what a Helm release says; without it the last-applied annotation counts,
    then the entries of appliers, and of persons who changed a field since. `fill` tells
    defaults from wishes where an object was written whole. With `counted_elsewhere` the
    count of replicas is somebody else's and is left out.
    """
    schema = schema_of(live)
    known = applied if applied is not None else last_applied(live)
    meant, guessed = _meant(live, known, schema)
    paths = [path for path in meant.elements() if _belongs(path, live, schema)]
    if counted_elsewhere:
        paths = [path for path in paths if path != REPLICAS]
    kind = str(live.get("kind", ""))
    secrets = sorted({found for path in paths if (found := _secret(kind, path, live, schema))})
    paths = [path for path in paths if not any(path[: len(s)] == s for s in secrets)]
    manifest = _manifest(live, tree_from_paths(paths), schema)
    if guessed:
        manifest = _without_defaults(manifest, fill, schema)
    drift = () if known is None else _drift(live, known, schema, counted_elsewhere)
    return Carried(manifest, tuple(dotted(path) for path in secrets), drift)


def last_applied(live: dict[str, Any]) -> dict[str, Any] | None:
    """What client-side apply noted of the object; None where there is no such note."""
    notes = (live.get("metadata") or {}).get("annotations") or {}
    try:
        found = json.loads(notes[LAST_APPLIED])
    except (KeyError, TypeError, ValueError):
        return None
    same = isinstance(found, dict) and found.get("kind") == live.get("kind")
    return found if same else None


def _meant(
    live: dict[str, Any], known: dict[str, Any] | None, schema: ListSchema
) -> tuple[FieldSet, bool]:
    """Fields that people and their tools meant, and whether defaults may be among them."""
    found = EMPTY if known is None else fieldset_from_manifest(known, schema)
    guessed = False
    for owner in owners(live):
        if owner.subresource or not gives_way(owner.manager):
            continue
        if not owner.is_apply and known is not None and _wrote_whole(owner):
            continue
        found = found.union(owner.fields)
        guessed |= not owner.is_apply
    if not found:
        everything = fieldset_from_manifest(live, schema)
        return _without_allocated(everything, str(live.get("kind", ""))), True
    return found, guessed


def _without_allocated(fields: FieldSet, kind: str) -> FieldSet:
    names = _ALLOCATED.get(kind, ())
    return fields.without_below(FieldSet(tree_from_paths(("f:spec", name) for name in names)))


def _wrote_whole(owner: Owner) -> bool:
    return owner.manager in _WRITES_WHOLE or owner.manager == BEFORE_FIRST_APPLY


def _belongs(path: tuple[str, ...], live: dict[str, Any], schema: ListSchema) -> bool:
    """Whether a field stands in the object and may stand in Git."""
    if any(path[: len(made)] == made for made in _SERVER_MADE):
        return False
    if _is_mark(path):
        return False
    return value_at(live, path, schema.root) is not None


def _secret(
    kind: str, path: tuple[str, ...], live: dict[str, Any], schema: ListSchema
) -> tuple[str, ...]:
    """The smallest field to leave out so that a secret does not stand in Git; empty for none."""
    value = value_at(live, path, schema.root)
    if isinstance(value, dict | list) and not _is_whole(path, schema):
        return ()  # its parts are looked at one by one
    if masked(kind, keys_of(path), value) == value:
        return ()
    in_entry = len(path) > 1 and path[-1] == "f:value" and path[-2].startswith("k:")
    return path[:-1] if in_entry else path


def _is_whole(path: tuple[str, ...], schema: ListSchema) -> bool:
    """Whether the field at the path is owned as one: its parts have no owners of their own."""
    kind = schema.root
    for element in path:
        below = kind.member(element[2:]) if element.startswith("f:") else kind.element
        if below is None:
            return True
        kind = below
    return kind.atomic or not (kind.fields or kind.element)


def _manifest(live: dict[str, Any], tree: Tree, schema: ListSchema) -> dict[str, Any]:
    """The live object cut down to the tree, its name first."""
    part = projected(live, tree, schema.root)
    metadata = live.get("metadata") or {}
    own = {k: v for k, v in (part.get("metadata") or {}).items() if v not in ({}, None)}
    identity = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    rest = {k: v for k, v in part.items() if k not in {"apiVersion", "kind", "metadata"}}
    head = {"apiVersion": live.get("apiVersion", ""), "kind": live.get("kind", "")}
    return {**head, "metadata": {**identity, **own}, **rest}


def _without_defaults(manifest: dict[str, Any], fill: Fill, schema: ListSchema) -> dict[str, Any]:
    """The manifest without every field that the server would put back as it is.

    What is owned as one stays whole: with less in it an apply would be a conflict.
    """
    whole = fill(manifest)
    for path in list(_map_paths(manifest, ())):
        if path[0] in {"apiVersion", "kind", "metadata"} or _is_within_whole(path, schema):
            continue
        less = _less(manifest, path)
        if path[-1] in _EMPTY_ALIKE and not _at(manifest, path):
            manifest, whole = less, fill(less)
        elif fill(less) == whole:
            manifest = less
    return manifest


_EMPTY_ALIKE = frozenset({"metadata", "resources", "securityContext", "status", "strategy"})
"""Maps that say nothing when they are empty, and that the server stores all the same."""


def _is_within_whole(path: tuple[Any, ...], schema: ListSchema) -> bool:
    """Whether a key stands inside a map or list that is owned as one."""
    kind: FieldType | None = schema.root
    for key in path:
        if kind is None or kind.atomic:
            return True
        kind = kind.member(key) if isinstance(key, str) else kind.element
    return False


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _map_paths(value: Any, at: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
    """Every key of every map below, inner ones first."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield from _map_paths(item, (*at, key))
        if isinstance(value, dict):
            yield (*at, key)


def _less(value: Any, path: tuple[Any, ...]) -> Any:
    """A copy without one key."""
    key, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_less(item, rest) if n == key else item for n, item in enumerate(value)]
    if not rest:
        return {k: item for k, item in value.items() if k != key}
    return {k: _less(item, rest) if k == key else item for k, item in value.items()}


def _drift(
    live: dict[str, Any], known: dict[str, Any], schema: ListSchema, counted_elsewhere: bool
) -> tuple[FieldChange, ...]:
    """Where the live object is no longer what was applied."""
    found = [
        difference
        for difference in compare(known, live, schema).differences
        if not (counted_elsewhere and difference.elements == REPLICAS)
        and not _is_mark(difference.elements)
    ]
    return field_changes(str(live.get("kind", "")), found)


def _is_mark(path: tuple[str, ...]) -> bool:
    """Whether it is a label or annotation by which a tool, or Stoker itself, finds its objects."""
    if path[0] != "f:metadata" or len(path) < 3:
        return False
    key = path[2][2:]
    return key in _NOT_OURS.get(path[1], ()) or key.startswith("stoker.dev/")
