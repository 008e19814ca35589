"""What the watch threads tell the loop: which object changed, and whether it matters.

Changes of a cache come in, `ObjectEvent`s go out through the observer's `on_event`. Only
changes that can alter a decision or a report are told; the rest would wake passes for
nothing (heartbeats of nodes, status of strangers' pods, an autoscaler's measurements).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

import msgspec

from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects.health import HealthVerdict, health_of
from stoker.objects.health_rules import HealthRules
from stoker.observe.keys import CRDS, WatchKey
from stoker.observe.nodes import NodeFacts, StateFacts
from stoker.observe.pods import PodFacts
from stoker.observe.projection import Entry
from stoker.observe.store import Changed
from stoker.observe.wishes import MirrorFacts

__all__ = ["ObjectEvent", "events_from"]


@dataclass(frozen=True, slots=True, order=True)
class ObjectEvent:
    """Something changed. An empty name in `ref` means the whole kind (in that namespace).

    `unit` is the unit whose object or pod it is, None for others. `notice` is True when a
    node got a notice that it did not have: such an event is acted on at once.
    """

    ref: ObjectRef
    unit: UnitRef | None = None
    deleted: bool = False
    notice: bool = False

    @property
    def detail(self) -> str:
        """The node of a notice, else the object, as people write it."""
        return self.ref.name if self.notice else str(self.ref)


def events_from(
    key: WatchKey,
    changes: Iterable[Changed],
    rules: HealthRules | None = None,
    awaited: Container[UnitRef] = (),
) -> tuple[ObjectEvent, ...]:
    """The events worth telling, in the order of the changes; `rules` judge custom kinds.

    Of `awaited` units every change is: an expression may ask of any field of their objects.
    """
    found = []
    for change in changes:
        entry = change.after or change.before
        if entry is not None and (key == CRDS or _matters(change, rules, awaited)):
            found.append(
                ObjectEvent(
                    ref=key.ref(entry.namespace, entry.name),
                    unit=_unit_of(entry),
                    deleted=change.after is None,
                    notice=_has_new_notice(change),
                )
            )
    return tuple(found)


def _matters(change: Changed, rules: HealthRules | None, awaited: Container[UnitRef]) -> bool:
    before, after = change.before, change.after
    if any(isinstance(e.facts, MirrorFacts) for e in (before, after) if e is not None):
        return _asks(before) != _asks(after)
    if before is None or after is None or before.uid != after.uid:
        return True
    if before.facts != after.facts or before.owner != after.owner or after.unit in awaited:
        return True
    if not after.whole and not before.whole:
        return False
    return before.content != after.content or _health(before, rules) != _health(after, rules)


def _asks(entry: Entry | None) -> tuple[tuple[str, str], ...]:
    """What people ask for on a mirror; everything else on it we wrote ourselves."""
    facts = entry.facts if entry is not None else None
    return facts.asks if isinstance(facts, MirrorFacts) else ()


def _health(entry: Entry, rules: HealthRules | None) -> HealthVerdict:
    """All that a report shows of a status. Both bodies are whole by now."""
    return health_of(msgspec.json.decode(entry.body), rules)


def _unit_of(entry: Entry) -> UnitRef | None:
    own = entry.facts.own if isinstance(entry.facts, PodFacts) else None
    if entry.unit is None and own is not None and own.service:
        return UnitRef("ModelService", entry.namespace, own.service)
    return entry.unit


def _has_new_notice(change: Changed) -> bool:
    return bool(_notices(change.after) - _notices(change.before))


def _notices(entry: Entry | None) -> set[str]:
    if entry is None:
        return set()
    if isinstance(entry.facts, NodeFacts):
        return {notice.kind for notice in entry.facts.notices}
    if isinstance(entry.facts, StateFacts) and entry.facts.notice is not None:
        return {entry.facts.notice.kind}
    return set()
