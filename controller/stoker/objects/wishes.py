"""What people ask of a running controller: annotations on the mirrors of fleet and services.

Written by `stoker suspend`, `override` and `reconcile`, read by observe. Each value is JSON
for people and programs: `{"reason": …, "since": …, "until": …, "replicas": …}`, or with
`whenFull` in place of `replicas`. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stoker.model.flow import Override, Suspension, UnreadOverride, WhenFullOverride
from stoker.model.limits import WhenFull
from stoker.model.refs import UnitRef
from stoker.model.times import instant_of, rfc3339

__all__ = [
    "OVERRIDE",
    "RECONCILE",
    "SUSPEND",
    "WHEN_FULL",
    "asks_for_a_node",
    "override_from",
    "suspension_from",
    "text_of_override",
    "text_of_suspension",
    "text_of_when_full",
    "when_full_from",
]

SUSPEND = "stoker.dev/suspend"
OVERRIDE = "stoker.dev/override"
WHEN_FULL = "stoker.dev/override-when-full"
RECONCILE = "stoker.dev/reconcile-requested-at"
"""Any new value asks for a pass now; the Fleet's status.lastHandledReconcileAt repeats it."""

MAX_REASON = 200
MOST_REPLICAS = 10_000


def suspension_from(ref: UnitRef, annotations: Mapping[str, Any]) -> Suspension | None:
    """The suspension that the annotations ask for, None for none.

    What cannot be read still suspends: somebody wanted this left alone.
    """
    text = annotations.get(SUSPEND)
    if text is None:
        return None
    found = _read(text)
    if found is None:
        return Suspension(ref, f"annotation {SUSPEND} cannot be read")
    until_ms = instant_of(found.get("until"))
    if until_ms is None and found.get("until"):
        return Suspension(ref, f"the end in annotation {SUSPEND} cannot be read")
    return Suspension(ref, _reason(found), instant_of(found.get("since")), until_ms)


def override_from(ref: UnitRef, annotations: Mapping[str, Any]) -> Override | UnreadOverride | None:
    """The override that the annotations ask for; None for none, unread for one that is not whole.

    One without an end would last for ever unseen, so it is not obeyed either.
    """
    text = annotations.get(OVERRIDE)
    if text is None:
        return None
    found = _read(text) or {}
    replicas, until_ms = found.get("replicas"), instant_of(found.get("until"))
    if type(replicas) is not int or not 0 <= replicas <= MOST_REPLICAS or until_ms is None:
        return UnreadOverride(ref, _line(str(text)))
    return Override(ref, replicas, until_ms, _reason(found), instant_of(found.get("since")))


def when_full_from(
    ref: UnitRef, annotations: Mapping[str, Any]
) -> WhenFullOverride | UnreadOverride | None:
    """The same of what happens to a replica that fits nowhere."""
    text = annotations.get(WHEN_FULL)
    if text is None:
        return None
    found = _read(text) or {}
    asked, until_ms = found.get("whenFull"), instant_of(found.get("until"))
    if asked not in tuple(WhenFull) or until_ms is None:
        return UnreadOverride(ref, _line(str(text)), of_when_full=True)
    since_ms = instant_of(found.get("since"))
    return WhenFullOverride(ref, WhenFull(asked), until_ms, _reason(found), since_ms)


def text_of_suspension(reason: str, since_ms: int, until_ms: int | None) -> str:
    """The value of the annotation."""
    data = {"reason": reason[:MAX_REASON], "since": rfc3339(since_ms)}
    if until_ms is not None:
        data["until"] = rfc3339(until_ms)
    return json.dumps(data)


def text_of_override(replicas: int, reason: str, since_ms: int, until_ms: int) -> str:
    """The value of the annotation."""
    return _until({"replicas": replicas}, reason, since_ms, until_ms)


def text_of_when_full(when_full: WhenFull, reason: str, since_ms: int, until_ms: int) -> str:
    """The value of the annotation."""
    return _until({"whenFull": when_full.value}, reason, since_ms, until_ms)


def asks_for_a_node(name: str) -> str:
    """The command that asks for a node for a service that is held for want of one."""
    return f"stoker override {name} --when-full {WhenFull.UNPINNED} --for 4h --reason TEXT"


def _until(asked: dict[str, Any], reason: str, since_ms: int, until_ms: int) -> str:
    told = {"reason": reason[:MAX_REASON], "since": rfc3339(since_ms), "until": rfc3339(until_ms)}
    return json.dumps(asked | told)


def _read(text: object) -> dict[str, Any] | None:
    if not isinstance(text, str):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _reason(found: Mapping[str, Any]) -> str:
    """One line of at most 200 characters; anybody with rights on the mirror may have typed it."""
    text = found.get("reason")
    return _line(text if isinstance(text, str) else "")


def _line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text[:MAX_REASON]).strip()
