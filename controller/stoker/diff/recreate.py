"""Answers a change of a fixed field by delete and create, where Git consents to that.

A refused change comes in; a RECREATE goes out, once the API server has said that it would
take the new object: what is deleted must come back. Called by verdict for Deployments and
Jobs only (check refuses the consent on other kinds).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stoker.diff.dryrun import DryRun
from stoker.kube.errors import Invalid
from stoker.model.change import Action, Change, Impact
from stoker.model.live import LiveObject
from stoker.objects.compare import dotted
from stoker.objects.conflicts import REPLICAS

__all__ = ["recreated"]

_NAME_KEPT = 50
"""Characters of the name that the stand-in of a dry-run create keeps: Jobs allow 63."""


def recreated(change: Change, payload: dict[str, Any], live: LiveObject, dry_run: DryRun) -> Change:
    """The change as a RECREATE if the server refused it for a fixed field; else as it is.

    `payload` is the whole manifest. A count that somebody else owns starts where it stands.
    """
    if change.action is not Action.ERROR or change.code != Invalid.code:
        return change
    if change.impact is not Impact.RECREATE and "immutable" not in change.note:
        return change
    left = {path for path, _ in change.left_to_others}
    standing = (live.body.get("spec") or {}).get("replicas")
    if dotted(REPLICAS) in left and standing is not None:
        payload = {**payload, "spec": {**(payload.get("spec") or {}), "replicas": standing}}
    refusal = dry_run.create(_stand_in(payload), change.ref)
    if refusal is not None:
        note = f"not deleted, for it could not be made again: {refusal.note}"
        return replace(change, action=refusal.action, code=refusal.code, note=note)
    return replace(
        change,
        action=Action.RECREATE,
        payload=payload,
        impact=Impact.RECREATE,
        adopted=False,
        code="recreate-consented",
        note=_consequence(live),
    )


def _stand_in(payload: dict[str, Any]) -> dict[str, Any]:
    """The same object under a free name: only under another can its creation be asked for."""
    metadata = payload["metadata"]
    return {**payload, "metadata": {**metadata, "name": f"{metadata['name'][:_NAME_KEPT]}-check"}}


def _consequence(live: LiveObject) -> str:
    if live.ref.kind == "Job":
        return "deleted with its pods, and run again"
    count = (live.body.get("spec") or {}).get("replicas", 1)
    pods = f"its {count} pods stop" if count != 1 else "its pod stops"
    return (
        f"deleted and made again: {pods} at once, no PodDisruptionBudget and no floor "
        "holds that back, and none is Ready until new ones have started"
    )
