"""Jobs that fetch ahead of starts, as decisions see them.

The projection keeps `PrefetchFacts` of Jobs that are ours; observe calls `prefetches_from`
with every cache of Jobs and puts the result into the Snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.model.fleet import Desired, ModelService
from stoker.model.prefetch import LivePrefetch, PrefetchState
from stoker.model.refs import UnitRef
from stoker.objects import names
from stoker.objects.health_fields import condition, items, mapping, text
from stoker.observe.keys import WatchKey
from stoker.observe.pods import instant

__all__ = ["PrefetchFacts", "job_keys", "prefetch_facts", "prefetches_from"]

_DONE = ("Complete", "SuccessCriteriaMet")
_FAILED = ("Failed", "FailureTarget")


@dataclass(frozen=True, slots=True)
class PrefetchFacts:
    """A Job that our owner mark proves to be a unit's, and that is not being deleted."""

    prefetch: LivePrefetch


def job_keys(desired: Desired) -> tuple[WatchKey, ...]:
    """Jobs of the namespaces in which something is fetched ahead."""
    spaces = {
        unit.ref.namespace
        for unit in desired.units
        if isinstance(unit.spec, ModelService) and unit.spec.cache.prefetch_nodes
    }
    return tuple(WatchKey("batch", "Job", "v1", space) for space in sorted(spaces))


def prefetch_facts(raw: dict[str, Any], unit: UnitRef) -> PrefetchFacts | None:
    """Keep what decisions need of a raw Job of ours; None for one that fetches nothing ahead."""
    metadata = mapping(raw, "metadata")
    if names.PREFETCH_LABEL not in mapping(metadata, "labels") or unit.kind != "ModelService":
        return None
    if metadata.get("deletionTimestamp"):
        return None
    annotations = mapping(metadata, "annotations")
    uri, _, revision = text(annotations, names.PREFETCH_MODEL).partition("@")
    state, since_ms = _state(raw)
    pod = mapping(mapping(mapping(raw, "spec"), "template"), "spec")
    return PrefetchFacts(
        LivePrefetch(
            unit=unit,
            name=text(metadata, "name"),
            uid=text(metadata, "uid"),
            node=text(annotations, names.NODE),
            node_uid=text(annotations, names.NODE_UID),
            image=next((text(each, "image") for each in items(pod, "containers")), ""),
            model_uri=uri,
            model_revision=revision,
            state=state,
            since_ms=since_ms,
        )
    )


def prefetches_from(facts: Iterable[object]) -> tuple[LivePrefetch, ...]:
    """Those among the facts of Jobs, each once, sorted by unit and name."""
    found = {
        (each.prefetch.unit, each.prefetch.name): each.prefetch
        for each in facts
        if isinstance(each, PrefetchFacts)
    }
    return tuple(found[key] for key in sorted(found))


def _state(raw: dict[str, Any]) -> tuple[PrefetchState, int]:
    for kinds, state in ((_DONE, PrefetchState.DONE), (_FAILED, PrefetchState.FAILED)):
        for kind in kinds:
            entry = condition(raw, kind)
            if entry.get("status") == "True":
                return state, instant(entry.get("lastTransitionTime"))
    return PrefetchState.RUNNING, instant(mapping(raw, "metadata").get("creationTimestamp"))
