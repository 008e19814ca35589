"""Takes over an object that somebody else made, and remembers for good that it was so.

A judged change and its live object come in; the change goes out with who gives the object
up. The memory is an annotation that the payload carries from then on, and the inventory's
mark. Called by verdict.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Any

from stoker.model.change import Action, Change
from stoker.model.live import LiveObject
from stoker.objects.conflicts import AdoptionRequired
from stoker.objects.names import ADOPTED, OWNER
from stoker.objects.owned import owners

__all__ = ["Adoption", "adopting", "with_memory"]


class Adoption(IntEnum):
    """Where an object stands on its way to us."""

    NO = 0
    """This fleet made it, as far as the inventory tells."""
    NOW = 1
    """Somebody else made it, and Git consents to taking it over."""
    BEFORE = 2
    """It was taken over in an earlier pass."""


def with_memory(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload with the annotation by which an adopted object is known."""
    metadata = payload.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), ADOPTED: "true"}
    return {**payload, "metadata": {**metadata, "annotations": annotations}}


def adopting(change: Change, live: LiveObject, manager: str, adoption: Adoption) -> Change:
    """Say of a judged change that the object is or was somebody else's.

    Where another manager would keep our owner mark, nothing can prove the object ours
    afterwards: then it is not taken over.
    """
    if adoption is Adoption.NO:
        return change
    if adoption is Adoption.BEFORE or change.action is not Action.CHANGE:
        return replace(change, adopted=True)
    kept = next((who for path, who in change.left_to_others if OWNER in path), "")
    if kept:
        note = f"{change.ref} cannot be adopted: {kept} ({OWNER})"
        return replace(
            change,
            action=Action.ERROR,
            payload=None,
            code=AdoptionRequired.code,
            note=note,
        )
    makers = sorted({o.manager for o in owners(live.body) if not o.subresource} - {manager})
    notes = [f"adopts it from {', '.join(makers)}" if makers else "adopts it", change.note]
    return replace(
        change, adopted=True, code="adopt-consented", note="; ".join(n for n in notes if n)
    )
