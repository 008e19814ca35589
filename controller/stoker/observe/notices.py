"""Notices that a node will go away, read from its taints, its deletion and its NodeState.

The projection keeps `NoticeFacts` of raw objects; nodes picks the most urgent one and
fills in when it was first seen, where the cluster itself does not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.model.snapshot import Notice
from stoker.model.times import instant_of
from stoker.objects.health_fields import items, mapping, text

__all__ = [
    "NoticeFacts",
    "hint_of_node",
    "hint_of_state",
    "notice_of_state",
    "notices_of_node",
    "urgent_notice",
]

_TAINTS: dict[str, tuple[str, int | None]] = {
    "aws-node-termination-handler/spot-itn": ("spot-interruption", 120_000),
    "aws-node-termination-handler/asg-lifecycle-termination": ("termination", None),
    "aws-node-termination-handler/scheduled-maintenance": ("maintenance", None),
    "cloud.google.com/impending-node-termination": ("termination", 30_000),
    "karpenter.sh/disrupted": ("disruption", None),
    "ToBeDeletedByClusterAutoscaler": ("scale-down", None),
    "node.kubernetes.io/out-of-service": ("out-of-service", 0),
}
"""Taint key to kind and lead time in ms (None: the cloud names none); semantics.md 1.12.

A rebalance recommendation is a hint that may never come true, so it is no notice.
"""
_CONDITIONS: dict[str, tuple[str, int | None]] = {
    "PreemptScheduled": ("spot-interruption", 30_000),
    "TerminateScheduled": ("termination", None),
    "RedeployScheduled": ("maintenance", None),
    "RebootScheduled": ("maintenance", None),
}
"""Conditions that a node problem detector sets from scheduled events of Azure, while True.

A freeze pauses a machine for seconds, so it is no notice.
"""
_VACATING = frozenset({"disruption", "scale-down", "deletion"})
"""Kinds of which a drainer that waits for budgets is the author; no deadline (design 4)."""
_HINTS = {"aws-node-termination-handler/rebalance-recommendation": "rebalance"}
"""Taint key to kind of hint."""


@dataclass(frozen=True, slots=True, order=True)
class NoticeFacts:
    """One notice as the cluster shows it. `at_ms` 0: it does not say since when.

    `lead_ms` counts from then; `deadline_ms` is absolute. Both None: no deadline is known.
    """

    kind: str
    at_ms: int = 0
    lead_ms: int | None = None
    deadline_ms: int | None = None


def notices_of_node(raw: dict[str, Any]) -> tuple[NoticeFacts, ...]:
    """Every notice that a raw Node shows, sorted."""
    found = set()
    for taint in items(mapping(raw, "spec"), "taints"):
        known = _TAINTS.get(text(taint, "key"))
        if known is not None:
            kind, lead = known
            at = instant_of(taint.get("timeAdded")) or _autoscaler_instant(taint)
            found.add(NoticeFacts(kind, at or 0, lead))
    for told in items(mapping(raw, "status"), "conditions"):
        known = _CONDITIONS.get(text(told, "type"))
        if known is not None and text(told, "status") == "True":
            kind, lead = known
            found.add(NoticeFacts(kind, instant_of(told.get("lastTransitionTime")) or 0, lead))
    deleted = instant_of(mapping(raw, "metadata").get("deletionTimestamp"))
    if deleted:
        found.add(NoticeFacts("deletion", deleted))
    return tuple(sorted(found, key=_order))


def notice_of_state(raw: dict[str, Any]) -> NoticeFacts | None:
    """The notice in a raw NodeState's status, if it has one with a kind."""
    notice = mapping(mapping(raw, "status"), "notice")
    kind = text(notice, "kind")
    if not kind:
        return None
    return NoticeFacts(
        kind, instant_of(notice.get("at")) or 0, deadline_ms=instant_of(notice.get("deadline"))
    )


def hint_of_node(raw: dict[str, Any]) -> str:
    """What hints by a taint that a raw Node may be taken back; empty for nothing."""
    keys = (text(taint, "key") for taint in items(mapping(raw, "spec"), "taints"))
    return next((_HINTS[key] for key in keys if key in _HINTS), "")


def hint_of_state(raw: dict[str, Any]) -> str:
    """The kind of the hint in a raw NodeState's status; empty for none."""
    return text(mapping(mapping(raw, "status"), "hint"), "kind")


def urgent_notice(
    facts: Iterable[NoticeFacts], first_seen_ms: Mapping[str, int], now_ms: int
) -> Notice | None:
    """The notice to act on: the earliest deadline, those without one last, of these the ones last

    that only ask to vacate; ties by kind.

    `first_seen_ms` by kind stands in where the cluster does not say since when: it is
    never before the true instant, so a lead counted from it never ends too early. So it does
    for an instant in the future: a clock that is ahead would move the end away.

    A deadline that has passed stays: the node may go at any moment, and it is still here.
    """
    found = []
    for fact in facts:
        seen = min(first_seen_ms.get(fact.kind, now_ms), now_ms)
        at = fact.at_ms if 0 < fact.at_ms <= now_ms else seen
        deadline = fact.deadline_ms
        if deadline is None and fact.lead_ms is not None:
            deadline = at + fact.lead_ms
        vacates = fact.kind in _VACATING and deadline is None
        found.append(Notice(fact.kind, at, deadline, vacates))
    return min(found, key=_urgency, default=None)


def _urgency(notice: Notice) -> tuple[bool, int, bool, int, str]:
    deadline = notice.deadline_ms
    return (deadline is None, deadline or 0, notice.vacates, notice.at_ms, notice.kind)


def _order(fact: NoticeFacts) -> tuple[str, int]:
    return (fact.kind, fact.at_ms)


def _autoscaler_instant(taint: dict[str, Any]) -> int | None:
    """The cluster autoscaler writes the instant as the taint's value, in seconds."""
    value = text(taint, "value")
    return int(value) * 1000 if value.isascii() and value.isdigit() and len(value) < 12 else None
