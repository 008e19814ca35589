"""Shows that names are free before objects are created under them.

Refs to be created come in; for each taken name the metadata of what stands there goes out.
One metadata LIST per kind and namespace: an unforced apply silently merges into a foreign
object (ssa-facts 4). Called by apply before its first stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker.errors import StokerError, Waiting
from stoker.kube.errors import Forbidden
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef

__all__ = ["Looked", "Place", "look", "places_of"]

Place = tuple[str, str, str, str]
"""Group, kind, version, namespace."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What one look at a place showed: taken names with their metadata, or an error."""

    refs: tuple[ObjectRef, ...]
    taken: dict[ObjectRef, dict[str, Any]] = field(default_factory=dict, hash=False)
    error: StokerError | None = field(default=None, hash=False)


def places_of(refs: Iterable[ObjectRef]) -> tuple[tuple[Place, tuple[ObjectRef, ...]], ...]:
    """The refs by kind and namespace, sorted."""
    found: dict[Place, list[ObjectRef]] = {}
    for ref in sorted(refs):
        found.setdefault((ref.group, ref.kind, ref.version, ref.namespace), []).append(ref)
    return tuple((place, tuple(found[place])) for place in sorted(found))


def look(cluster: Cluster, place: Place, refs: Sequence[ObjectRef]) -> Looked:
    """Which of the names are taken. A kind or namespace that is not there takes none.

    Whoever may not list may still read the single names.
    """
    group, kind, version, namespace = place
    try:
        page = cluster.list(group, kind, namespace, version=version, metadata_only=True)
    except Waiting:
        return Looked(tuple(refs))
    except Forbidden:
        return _one_by_one(cluster, refs)
    except StokerError as error:
        return Looked(tuple(refs), error=error)
    standing = {item["metadata"]["name"]: item for item in page.items}
    taken = {ref: standing[ref.name] for ref in refs if ref.name in standing}
    return Looked(tuple(refs), taken)


def _one_by_one(cluster: Cluster, refs: Sequence[ObjectRef]) -> Looked:
    taken: dict[ObjectRef, dict[str, Any]] = {}
    for ref in refs:
        try:
            taken[ref] = cluster.get(ref)
        except Waiting:
            continue
        except StokerError as error:
            return Looked(tuple(refs), error=error)
    return Looked(tuple(refs), taken)
