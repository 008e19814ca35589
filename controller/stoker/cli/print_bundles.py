"""What a plan does to the units that decide nothing: Bundles, and units that left Git; pure.

A ChangeSet comes in, lines for `stoker plan` and rows for its JSON go out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from stoker.model.change import Action, ChangeSet, UnitChanges

__all__ = ["bundle_text", "bundles_json"]

_WORDS = {
    Action.CREATE: "to create",
    Action.CHANGE: "to change",
    Action.RECREATE: "to recreate",
    Action.DELETE: "to delete",
    Action.WAIT: "waiting",
    Action.ERROR: "in error",
}
"""What is worth a word, in this order."""


def bundle_text(changes: ChangeSet) -> str:
    """A line for each Bundle with something to do, and how many have nothing; else empty.

    The last line counts objects that Git says to leave as they are.
    """
    units = _bundles(changes)
    busy = [unit for unit in units if not unit.in_sync]
    lines = [f"{unit.unit.kind} {unit.unit.short}: {_words(unit)}" for unit in busy]
    idle = len(units) - len(busy)
    if idle:
        lines.append(f"{idle} bundle{'' if idle == 1 else 's'} unchanged")
    left = Counter(
        change.code
        for unit in units
        for change in unit.changes
        if change.action is Action.UNCHANGED and change.code
    )
    if left:
        words = ", ".join(f"{count} {code}" for code, count in sorted(left.items()))
        lines.append(f"left as they are: {words}")
    return "".join(f"{line}\n" for line in lines)


def bundles_json(changes: ChangeSet) -> list[dict[str, Any]]:
    """Every Bundle with how many of its objects meet which fate."""
    return [
        {
            "unit": str(unit.unit),
            "objects": {str(action): _counts(unit)[action] for action in Action},
        }
        for unit in _bundles(changes)
    ]


def _bundles(changes: ChangeSet) -> list[UnitChanges]:
    return [unit for unit in changes.units if unit.unit.kind == "Bundle"]


def _counts(unit: UnitChanges) -> Counter[Action]:
    return Counter(change.action for change in unit.changes)


def _words(unit: UnitChanges) -> str:
    counts = _counts(unit)
    found = [f"{counts[action]} {word}" for action, word in _WORDS.items() if counts[action]]
    if not unit.complete:
        found.append("not all of it is known")
    return ", ".join(found) or "nothing to write"
