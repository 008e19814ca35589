"""What a fleet holds in the cluster, object by object, and by which proof or policy; pure.

The inventory and the differences of one pass come in; holdings as rows, text and JSON go
out. What is said here of an object is what the next pass does to it. Used by `inventory`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stoker.model.change import Action, Change, ChangeSet
from stoker.model.fleet import Desired
from stoker.model.refs import ObjectRef, UnitRef
from stoker.objects.inventory import INTENT, Inventory
from stoker.objects.names import API_VERSION

__all__ = ["Holding", "Standing", "holdings", "holdings_json", "holdings_names", "holdings_text"]


class Standing(StrEnum):
    """How an object stands to the fleet."""

    OWNED = "owned"
    """In Git, in the inventory, made by this fleet."""
    ADOPTED = "adopted"
    """In Git and in the inventory, made by somebody else: never deleted without consent."""
    LEFT_ALONE = "left-alone"
    """In Git, which says to leave it as it is live."""
    KEPT = "kept"
    """Left Git, and stays by policy or for want of consent."""
    ORPHANED = "orphaned"
    """Left Git, and is deleted, or waits to be; or bears the mark without an entry."""
    LEAVING = "leaving"
    """A Deployment of a service on its way out."""
    INTENT = "intent"
    """Was about to be made; without a UID the entry proves nothing."""
    UNKNOWN = "unknown"
    """What its unit wants could not be made out, so nothing is done to it."""


_STAYS = frozenset({"kept-by-policy", "needs-consent", "prune-never"})
"""Codes of objects that stay until a person says otherwise."""


@dataclass(frozen=True, slots=True)
class Holding:
    """One object. `uid` is empty where it is not known; `code` and `note` say why it stays."""

    unit: UnitRef
    ref: ObjectRef
    standing: Standing
    uid: str = ""
    code: str = ""
    note: str = ""


def holdings(inventory: Inventory, changes: ChangeSet) -> tuple[Holding, ...]:
    """Every object of the inventory, and every other that this fleet marks or leaves alone."""
    said = {(unit.unit, c.ref): c for unit in changes.units for c in unit.changes}
    leaving = {
        (unit.unit, retirement.ref_in(unit.unit.namespace))
        for unit in changes.units
        for retirement in unit.retirements
    }
    gone = set(changes.forgotten)
    found: dict[tuple[UnitRef, ObjectRef], Holding] = {}
    for unit in inventory.units:
        for ref, uid in inventory.objects(unit).items():
            key = (unit, ref)
            change = said.get(key)
            if key in gone and (change is None or change.code != "reconcile-disabled"):
                continue
            standing = _standing(change, uid, ref, inventory)
            if change is None and key in leaving:
                standing = Standing.LEAVING
            found[key] = _holding(unit, ref, standing, uid, change)
    for (unit, ref), change in said.items():
        if (unit, ref) in found:
            continue
        if change.code == "orphan":
            found[unit, ref] = _holding(unit, ref, Standing.ORPHANED, "", change)
        elif change.code in {"reconcile-disabled", "create-only"}:
            found[unit, ref] = _holding(unit, ref, Standing.LEFT_ALONE, "", change)
    return tuple(found[key] for key in sorted(found))


def _holding(
    unit: UnitRef, ref: ObjectRef, standing: Standing, uid: str, change: Change | None
) -> Holding:
    told = change is not None and (
        change.manifest is None
        or change.code == "create-only"
        or standing in {Standing.LEFT_ALONE, Standing.INTENT}
    )
    if change is None or not told:
        return Holding(unit, ref, standing, uid)
    note = change.note or ("deleted by the next pass" if change.action is Action.DELETE else "")
    return Holding(unit, ref, standing, uid or change.live_uid, change.code, note)


def _standing(change: Change | None, uid: str, ref: ObjectRef, inventory: Inventory) -> Standing:
    if change is not None and change.code == "reconcile-disabled":
        return Standing.LEFT_ALONE
    if uid == INTENT:
        return Standing.INTENT
    if change is None:
        return Standing.UNKNOWN
    if change.manifest is not None:
        adopted = change.adopted or ref in inventory.adopted
        return Standing.ADOPTED if adopted else Standing.OWNED
    if change.action is Action.KEEP and change.code == "live-state-unknown":
        return Standing.UNKNOWN
    kept = change.action is Action.KEEP and change.code in _STAYS
    return Standing.KEPT if kept else Standing.ORPHANED


def holdings_text(found: Iterable[Holding]) -> str:
    """A table, and how many there are of each standing."""
    rows = [(str(item.standing), _name(item.ref), str(item.unit), _why(item)) for item in found]
    if not rows:
        return "the fleet holds nothing in this cluster\n"
    head = ("STANDING", "OBJECT", "UNIT", "WHY")
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(3)]
    lines = [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]])
        for row in (head, *rows)
    ]
    counts = Counter(row[0] for row in rows)
    last = ", ".join(f"{counts[word]} {word}" for word in Standing if counts[word])
    return "".join(f"{line.rstrip()}\n" for line in lines) + f"{last}\n"


def _why(item: Holding) -> str:
    return f"{item.note} [{item.code}]" if item.code else item.note


def _name(ref: ObjectRef) -> str:
    return f"{ref.kind}/{ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind}/{ref.name}"


def holdings_names(found: Iterable[Holding]) -> str:
    """`STANDING KIND/NAMESPACE/NAME` a line, for scripts."""
    return "".join(f"{item.standing} {_name(item.ref)}\n" for item in found)


def holdings_json(found: Iterable[Holding], desired: Desired, fleet_id: str) -> dict[str, Any]:
    """The versioned JSON form: `stoker schema Inventory` describes it."""
    items = tuple(found)
    counts = Counter(str(item.standing) for item in items)
    return {
        "apiVersion": API_VERSION,
        "kind": "Inventory",
        "fleet": desired.fleet.name,
        "revision": str(desired.revision),
        "fleetId": fleet_id,
        "objects": [
            {
                "standing": str(item.standing),
                "unit": str(item.unit),
                "apiVersion": item.ref.api_version,
                "kind": item.ref.kind,
                "namespace": item.ref.namespace,
                "name": item.ref.name,
                "uid": item.uid,
                **({"code": item.code} if item.code else {}),
                **({"note": item.note} if item.note else {}),
            }
            for item in items
        ],
        "summary": {str(word): counts[str(word)] for word in Standing},
    }
