"""What an adopted object needs beyond its fields: that nobody else answers for them.

A live object to adopt comes in and whoever still writes it goes out; a judged change comes
in and goes out as a write where only ownership is left to take. Called by diff and verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stoker.diff.dryrun import DryRun, refusal_of
from stoker.diff.ground import Ground
from stoker.errors import StokerError
from stoker.model.change import Action, Change, FieldChange
from stoker.model.live import LiveObject
from stoker.objects.takeover import Rival, controllers_of, predecessors

__all__ = ["contested", "taking_over"]


def contested(live: LiveObject, ground: Ground, dry_run: DryRun) -> Change | None:
    """Why the object must not be taken over now; None when nobody else writes it."""
    try:
        writers = _writers(live, dry_run)
    except StokerError as error:
        return refusal_of(live.ref, error)
    if not writers:
        return None
    labels = (live.body.get("metadata") or {}).get("labels") or {}
    found = ground.rivals.objection(live.ref, writers, labels)
    if found is None:
        return None
    return Change(live.ref, found.action, code=found.code, note=found.note)


def _writers(live: LiveObject, dry_run: DryRun) -> tuple[Rival, ...]:
    """GitOps controllers with fields in it; caches hold no entries of objects not ours yet."""
    key = (live.uid, live.content_version)
    known = dry_run.memo.controllers.get(live.ref)
    if known is not None and known[0] == key:
        return known[1]
    body = live.body
    if not (body.get("metadata") or {}).get("managedFields"):
        body = dry_run.cluster.get(live.ref)
    found = controllers_of(body)
    dry_run.memo.controllers[live.ref] = (key, found)
    return found


def taking_over(change: Change, payload: dict[str, Any], live: LiveObject, manager: str) -> Change:
    """Make a write of an adopted object in sync whose fields others still share."""
    if not change.adopted or change.action is not Action.UNCHANGED:
        return change
    others = ", ".join(predecessors(live.body, manager))
    if not others:
        return change
    return replace(
        change,
        action=Action.CHANGE,
        payload=payload,
        fields=(FieldChange("metadata.managedFields", others, manager),),
        note=f"takes the place of {others}",
    )
