"""What people ask of a running controller: annotations on the mirrors of fleet and services.

Written by `stoker suspend`, `override` and `reconcile`, read by observe. Each value is JSON
for people and programs: `{"reason": …, "since": …, "until": …, "replicas": …}`. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stoker.model.flow import Override, Suspension, UnreadOverride
from stoker.model.refs import UnitRef
from stoker.model.times import instant_of, rfc3339

__all__ = [
    "OVERRIDE",
    "RECONCILE",
    "SUSPEND",
    "override_from",
    "suspension_from",
    "text_of_override",
    "text_of_suspension",
]

SUSPEND = "stoker.dev/suspend"
OVERRIDE = "stoker.dev/override"
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


def text_of_suspension(reason: str, since_ms: int, until_ms: int | None) -> str:
    """The value of the annotation."""
    data = {"reason": reason[:MAX_REASON], "since": rfc3339(since_ms)}
    if until_ms is not None:
        data["until"] = rfc3339(until_ms)
    return json.dumps(data)


def text_of_override(replicas: int, reason: str, since_ms: int, until_ms: int) -> str:
    """The value of the annotation."""
    data = {
        "replicas": replicas,
        "reason": reason[:MAX_REASON],
        "since": rfc3339(since_ms),
        "until": rfc3339(until_ms),
    }
    return json.dumps(data)


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
