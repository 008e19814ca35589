"""What is done for a replica that fits nowhere: what Git says, or for a time what people ask.

`stoker override --when-full` asks by an annotation on the mirror that lapses. What came of it
stays: a replica on a node that was added stands there like any other; one that is still without a
node goes (fate). Where no node may be asked for at all the override is refused by name. Called by decide for each service before its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from stoker.decide.case import Case
from stoker.decide.closed import Closed
from stoker.decide.place import Index
from stoker.model.fleet import Pin, PlacementMode, WhenFull
from stoker.model.flow import UnreadOverride, WhenFullOverride
from stoker.model.refs import UnitRef
from stoker.model.snapshot import Snapshot
from stoker.model.times import rfc3339, span

__all__ = ["AskedWhenFull", "new_node", "when_full_asked", "with_when_full"]

AskedWhenFull: TypeAlias = WhenFullOverride | UnreadOverride | None
"""What people ask of a service that is full; None for nothing."""


def when_full_asked(snapshot: Snapshot, now_ms: int) -> Mapping[UnitRef, AskedWhenFull]:
    """What is asked of each service now; what has lapsed is left out."""
    unread = (each for each in snapshot.unread_overrides if each.of_when_full)
    asked: dict[UnitRef, AskedWhenFull] = {each.ref: each for each in unread}
    return asked | {each.ref: each for each in snapshot.when_full_overrides if each.holds(now_ms)}


def with_when_full(case: Case, asked: AskedWhenFull) -> Case:
    """The service as it is meanwhile, and the words for it; as Git has it where nothing is asked,
    or what is asked cannot be read or obeyed.
    """
    if asked is None:
        return case
    if isinstance(asked, UnreadOverride):
        told = f"not obeyed, its annotation cannot be read: {asked.text}"
        return replace(case, when_full=told, when_full_unread=True)
    told = f"{asked.when_full} until {rfc3339(asked.until_ms)}"
    refused = _refused(case)
    told += f": refused, {refused}" if refused else f", Git says {case.spec.when_full}"
    if asked.reason:
        told += f" ({asked.reason})" if refused else f": {asked.reason}"
    spec = case.spec if refused else replace(case.spec, when_full=asked.when_full)
    return replace(case, spec=spec, when_full=told)


def new_node(case: Case, index: Index, closed: Closed) -> str:
    """How long a replica on a node that is asked for would take and what it costs, for people;
    empty where none would come, or one is asked for already.
    """
    pool = next(
        (p for p in case.ask.pools if p.pin is not Pin.REQUIRED and closed.pool(p.name) is None),
        None,
    )
    if pool is None or case.spec.when_full is not WhenFull.HOLD or _refused(case):
        return ""
    told = f"about {span(index.readiness_of_new(case).p50_ms)}"
    if pool.price_per_gpu_hour is None:
        return told
    return f"{told}, +{float(pool.price_per_gpu_hour) * case.gpus:.2f} USD/h"


def _refused(case: Case) -> str:
    """Why no node is ever asked for; empty where one may be."""
    if case.spec.placement_mode is not PlacementMode.NODES:
        return "placement.mode Scheduler leaves nodes to Kubernetes"
    return "a group starts whole in one domain or not at all" if case.spec.nodes > 1 else ""
