"""Leaves a cluster: finds everything a fleet holds, and gives it up without touching a value.

The inventory's places come in; held objects, then what came of each go out. Called by the
command line for `stoker uninstall`, never by a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stoker.apply.free_names import Place
from stoker.apply.pool import run_chains
from stoker.errors import Retryable, StokerError, Waiting
from stoker.kube.errors import Invalid, NotFound
from stoker.model.ports import Cluster
from stoker.model.refs import ObjectRef
from stoker.objects.kinds import pod_template_paths
from stoker.objects.names import manager_of
from stoker.objects.paths import value_under
from stoker.objects.release import is_held, release_patch

__all__ = ["Held", "Release", "held_objects", "release_objects"]

ATTEMPTS = 5
"""How often an object that others write at the same time is read again."""


@dataclass(frozen=True, slots=True)
class Held:
    """One object that the fleet holds, as it was seen: whole with pods, else its metadata."""

    ref: ObjectRef
    body: dict[str, Any] = field(hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class Release:
    """What came of one object. `restarted` are its pods, if the answer shows another pod
    template than the one read: nothing of ours does that, a webhook may.
    """

    ref: ObjectRef
    restarted: int = 0
    error: StokerError | None = field(default=None, hash=False)


def held_objects(cluster: Cluster, fleet_id: str, places: Iterable[Place]) -> tuple[Held, ...]:
    """Everything of the fleet in these places, sorted: one LIST each.

    Raises what the Cluster port raises, for what cannot be read cannot be given up; a kind
    or namespace that is gone holds nothing.
    """
    found: dict[ObjectRef, Held] = {}
    for group, kind, version, namespace in sorted(set(places)):
        bare = not pod_template_paths(group, kind)
        try:
            page = cluster.list(group, kind, namespace, version=version, metadata_only=bare)
        except Waiting:
            continue
        for item in page.items:
            metadata = item["metadata"]
            space = str(metadata.get("namespace", ""))
            ref = ObjectRef(group, kind, space, str(metadata["name"]), version)
            if is_held(item, ref, fleet_id):
                found.setdefault(ref, Held(ref, item))
    return tuple(found[ref] for ref in sorted(found))


def release_objects(
    cluster: Cluster,
    fleet_id: str,
    held: Sequence[Held],
    *,
    checkpoint: Callable[[], None] = lambda: None,
) -> tuple[Release, ...]:
    """Give each up; an object that is gone is given up too. Sorted by ref.

    `checkpoint` is asked between requests and ends the work by raising.
    """
    done: list[Release] = []
    jobs = [partial(_release, cluster, fleet_id, item) for item in held]
    run_chains([[jobs]], done.append, checkpoint)
    return tuple(sorted(done, key=lambda item: item.ref))


def _release(cluster: Cluster, fleet_id: str, held: Held) -> Release:
    """One patch; read again and repeated where somebody wrote in between."""
    body, ref = held.body, held.ref
    for _ in range(ATTEMPTS):
        try:
            patch = release_patch(body, ref, fleet_id)
            answer = cluster.patch(ref, "json", patch, manager=manager_of(fleet_id))
        except NotFound:
            return Release(ref)
        except Invalid:  # a test of the patch failed
            try:
                body = cluster.get(ref)
            except NotFound:
                return Release(ref)
            except StokerError as error:
                return Release(ref, error=error)
            if not is_held(body, ref, fleet_id):
                return Release(ref)
        except StokerError as error:
            return Release(ref, error=error)
        else:
            return Release(ref, _restarted(ref, body, answer))
    busy = Retryable(f"{ref} is written by others all the time", code="conflict")
    return Release(ref, error=busy)


def _restarted(ref: ObjectRef, before: dict[str, Any], after: dict[str, Any]) -> int:
    """Pods that a changed template makes anew; the generation tells nothing, for annotations
    of a Deployment move it too.
    """
    for path in pod_template_paths(ref.group, ref.kind):
        if value_under(before, path) != value_under(after, path):
            return int((after.get("spec") or {}).get("replicas", 1))
    return 0
